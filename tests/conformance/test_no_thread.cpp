// The group's progress thread cannot be started. A call that needs it is refused before anything happened; where that
// shows too late, the group ends.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <cerrno>
#include <string>
#include <vector>

#include "tests/conformance/one_call.hpp"
#include "tests/conformance/refusals.hpp"

namespace {

// This thread may start no others.
thread_local bool no_threads = false;

}  // namespace

// In place of the C library's, also for librailhead.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                              void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto real = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
  return no_threads ? EAGAIN : real(thread, attributes, start, argument);
}

namespace railhead::test {
namespace {

template <class Call>
rh_status without_threads(Call call) {
  no_threads = true;
  const rh_status status = call();
  no_threads = false;
  return status;
}

TEST(NoThread, BlockingCallsNeedNone) {
  Cluster cluster{{.hosts = 1}};
  cluster.run({0, 0}, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, small_config(2, rank));
    no_threads = true;
    good_round(group.get());
    no_threads = false;
  });
}

// The session's own: refused as the system's doing, nothing is left behind, and the next try works.
TEST(NoThread, ASessionNeedsOne) {
  Cluster cluster{{.hosts = 1}};
  auto config = make<rh_session_config>();
  config.daemon = cluster.socket(0).c_str();
  rh_session* session = nullptr;
  EXPECT_EQ(without_threads([&] { return rh_session_open(&config, &session); }), RH_SYSTEM) << rh_last_error();
  EXPECT_EQ(session, nullptr);
  ASSERT_EQ(rh_session_open(&config, &session), RH_OK) << rh_last_error();
  EXPECT_EQ(rh_session_close(session), RH_OK);
}

// Refused on rank 0, and repeated.
TEST(NoThread, RefusesACallThatNeedsIt) {
  using Call = rh_status (Calls::*)();
  const struct {
    std::vector<Call> calls;
    std::size_t refused;
  } rounds[] = {
      {{&Calls::dispatch_async, &Calls::wait, &Calls::combine, &Calls::release}, 0},
      {{&Calls::plan, &Calls::run, &Calls::combine, &Calls::release}, 0},
      {{&Calls::dispatch, &Calls::combine_async, &Calls::wait, &Calls::release}, 1},
  };
  Cluster cluster{{.hosts = 1}};
  for (const auto& round : rounds) {
    cluster.run({0, 0}, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
      rh_group_config config = small_config(2, rank);
      config.max_handles = 1;  // a handle that is lost is one too many
      const Group group(session, id, config);
      Calls calls(group.get());
      for (std::size_t i = 0; i < round.calls.size(); ++i) {
        const auto call = [&] { return (calls.*round.calls[i])(); };
        if (rank == 0 && i == round.refused) {
          const Calls::Outputs before = calls.outputs();
          expect_refused(group.get(), "no thread", without_threads(call), RH_SYSTEM,
                         {"rank 0", "progress thread", "errno 11"}, i);
          EXPECT_EQ(calls.outputs(), before);
        }
        ASSERT_EQ(call(), RH_OK) << rh_last_error();
      }
      calls.expect_right_values();
      good_round(group.get());
    });
  }
}

// The others wait for what this rank sends while its caller looks for a larger place, and nobody would send it.
TEST(NoThread, EndsTheGroupWhereAPlaceIsTooSmall) {
  Cluster cluster{{.hosts = 1}};
  cluster.run({0, 0}, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, small_config(2, rank));
    SmallCall call;
    std::vector<float> place(5 * kSmallHidden);
    auto result = make<rh_dispatch_result>();
    rh_handle* handle = nullptr;
    if (rank == 0) {
      call.args.out = place.data();
      call.args.out_rows = 5;
    }
    const auto dispatch = [&] { return rh_dispatch(group.get(), &call.args, &result, &handle, nullptr); };
    EXPECT_EQ(rank == 0 ? without_threads(dispatch) : dispatch(), RH_SYSTEM) << rh_last_error();
    const std::string sentence = rh_last_error();
    for (const char* piece : {"rank 0", "progress thread", "errno 11"}) {
      EXPECT_NE(sentence.find(piece), std::string::npos) << sentence;
    }
    EXPECT_EQ(rh_group_status(group.get()), RH_SYSTEM) << rh_last_error();
  });
}

}  // namespace
}  // namespace railhead::test
