// ZeroMQ fails under the mesh thread of one daemon: the daemon says so, ends what spans hosts and serves its own.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <zmq.h>

#include <array>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <string>

#include "tests/conformance/one_call.hpp"
#include "tests/support/operator.hpp"

namespace {

enum class Host0 { unknown, known, fails };

// The mesh thread of the daemon that was started first, and what becomes of its calls.
std::atomic<Host0> host0{Host0::unknown};
pthread_t mesh_of_host0;

}  // namespace

// In place of ZeroMQ's, also for the daemons.
extern "C" int zmq_poll(zmq_pollitem_t* items, int count, long timeout) {
  using Poll = int (*)(zmq_pollitem_t*, int, long);
  static const auto real = reinterpret_cast<Poll>(::dlsym(RTLD_NEXT, "zmq_poll"));
  if (host0 == Host0::unknown) {
    mesh_of_host0 = ::pthread_self();
    host0 = Host0::known;
    host0.notify_all();
  }
  const int ready = real(items, count, timeout);
  if (host0 != Host0::fails || ::pthread_equal(mesh_of_host0, ::pthread_self()) == 0) return ready;
  errno = ENOMEM;
  return -1;
}

namespace railhead::test {
namespace {

using testing::HasSubstr;

Cluster two_hosts() {
  ClusterOptions options;
  options.hosts = 2;
  options.adjust = [](config::Config&) {
    // Before the second daemon is started, the first has shown its thread.
    static int made = 0;
    if (made++ == 1) host0.wait(Host0::unknown);
  };
  return Cluster(options);
}

void one_round(const Group& group) {
  Calls calls(group.get());
  ASSERT_EQ(calls.dispatch(), RH_OK) << rh_last_error();
  ASSERT_EQ(calls.combine(), RH_OK) << rh_last_error();
  ASSERT_EQ(calls.release(), RH_OK) << rh_last_error();
  calls.expect_right_values();
}

TEST(MeshFailure, IsSaidAndCostsOnlyWhatSpansHosts) {
  testing::internal::CaptureStderr();
  {
    Cluster cluster = two_hosts();
    std::barrier<> all(3);
    cluster.run({0, 1, 1}, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
      const Group group(session, id, small_config(3, rank));
      one_round(group);
      all.arrive_and_wait();  // complete for rank 0, the round may not be so yet for the others
      if (rank == 0) host0 = Host0::fails;
      Calls calls(group.get());
      rh_status status = RH_OK;
      while (status == RH_OK) {
        status = calls.dispatch();
        if (status == RH_OK) status = calls.combine();
        if (status == RH_OK) status = calls.release();
      }
      EXPECT_EQ(status, RH_PEER_LOST) << rh_last_error();
    });

    const Json status = snapshot(cluster.socket(0), "status");
    EXPECT_EQ(status["state"], "DEGRADED");
    EXPECT_THAT(status["reasons"].dump(), HasSubstr("no other daemon can be reached any more"));
    EXPECT_THAT(status["reasons"].dump(), HasSubstr("Cannot allocate memory"));
    EXPECT_EQ(snapshot(cluster.socket(1), "status")["state"], "READY");

    // A new group over both hosts is refused where the mesh has ended, and misses that rank on the other.
    cluster.run({1, 0}, [](std::uint32_t rank, const Session& session, const UniqueId& id) {
      rh_group_config config = small_config(2, rank);
      if (rank == 0) config.join_timeout_ms = 1'000;
      rh_group* group = nullptr;
      EXPECT_EQ(rh_group_create(session.get(), &id, &config, &group), rank == 0 ? RH_TIMEOUT : RH_PEER_LOST);
      EXPECT_THAT(rh_last_error(), HasSubstr(rank == 0 ? "not there: rank 1" : "the mesh has stopped"));
    });
    cluster.run({0, 0}, [](std::uint32_t rank, const Session& session, const UniqueId& id) {
      one_round(Group(session, id, small_config(2, rank)));
    });
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("no other daemon can be reached any more: the mesh thread ends: Cannot allocate memory"));
}

}  // namespace
}  // namespace railhead::test
