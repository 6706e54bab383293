// The library's own bookkeeping finds no memory somewhere in a call. Either the call did not happen and can be
// repeated, or its operation flies already and the group ends, with a sentence on every rank.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <latch>
#include <new>
#include <string>
#include <vector>

#include "tests/conformance/one_call.hpp"
#include "tests/conformance/refusals.hpp"
#include "tests/conformance/waits.hpp"
#include "tests/support/processes.hpp"

namespace {

// The n-th allocation of this thread from now on fails, once; -1: none.
thread_local long allocations_left = -1;

}  // namespace

// g++ inlines one of the pair and then misses the other.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void* operator new(std::size_t bytes) {
  if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
  if (void* const memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
// The other form whose memory the operators below free.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  if (allocations_left >= 0 && allocations_left-- == 0) return nullptr;
  return std::malloc(bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace railhead::test {
namespace {

using namespace std::chrono_literals;

// True when allocation n was made, and failed.
template <class Call>
bool with_failing(long n, Call call) {
  allocations_left = n;
  call();
  const bool failed = allocations_left < 0;
  allocations_left = -1;
  return failed;
}

rh_group_config config_of(std::uint32_t rank) {
  rh_group_config config = small_config(2, rank);
  config.op_timeout_ms = 8'000;
  return config;
}

// After the refusal of too small a place the progress thread carries the operation on, also when there was no memory
// for the sentence.
TEST(NoMemory, ForTheSentenceOfATooSmallPlace) {
  Cluster cluster{{.hosts = 1}};
  std::atomic<bool> more{true};
  for (long n = 0; more && n < 200; ++n) {
    std::atomic<bool> returned{false};  // refused, so that it never waits
    cluster.run({0, 0}, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
      const Group group(session, id, config_of(rank));
      SmallCall call;
      std::vector<float> out(std::size_t{64} * kSmallHidden);
      auto result = make<rh_dispatch_result>();
      rh_handle* handle = nullptr;
      if (rank == 1) {
        EXPECT_TRUE(eventually([&] { return returned || waits_for_calls(cluster.socket(0), 1, 1); }));
        rh_dispatch(group.get(), &call.args, &result, &handle, nullptr);
        return;
      }
      call.args.out = out.data();
      call.args.out_rows = 1;
      more = with_failing(n, [&] { rh_dispatch(group.get(), &call.args, &result, &handle, nullptr); });
      returned = true;
      rh_event* event = nullptr;
      if (!more || handle == nullptr) return;
      if (rh_dispatch_run(group.get(), handle, out.data(), 64, &result, &event) != RH_OK) return;
      EXPECT_TRUE(eventually([&] { return completed(group.get()) == 1; }, 1s))
          << "allocation " << n << ": the progress thread does not step";
      rh_event_wait(event, UINT64_MAX);
    });
  }
}

// Whatever a call took before it was refused is free again: all there is can be had in one piece, and nothing grows.
void expect_arena_free(rh_group* group) {
  auto before = make<rh_group_info>();
  ASSERT_EQ(rh_group_query(group, &before), RH_OK);
  for (const auto& [arena, bytes] :
       {std::pair(RH_ARENA_RECEIVE, before.receive_bytes), std::pair(RH_ARENA_COMBINE, before.combine_bytes)}) {
    void* all = nullptr;
    if (bytes == 0) continue;
    ASSERT_EQ(rh_alloc(group, arena, bytes, &all), RH_OK) << rh_last_error();
    EXPECT_EQ(rh_free(group, all), RH_OK) << rh_last_error();
  }
  auto after = make<rh_group_info>();
  ASSERT_EQ(rh_group_query(group, &after), RH_OK);
  EXPECT_EQ(after.receive_bytes, before.receive_bytes);
  EXPECT_EQ(after.combine_bytes, before.combine_bytes);
}

TEST(NoMemory, LeavesNothingOfARefusedDispatchInTheArena) {
  Cluster cluster{{.hosts = 2}};
  std::atomic<int> refused{0};
  std::latch rounds(2);
  cluster.run({0, 1}, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    const Group group(session, id, config_of(rank));
    good_round(group.get());   // the next dispatch has this one's rows to go by, and takes a place beforehand
    rounds.arrive_and_wait();  // the group may end from here on
    SmallCall call;
    auto result = make<rh_dispatch_result>();
    rh_handle* handle = nullptr;
    rh_status status = RH_OUT_OF_MEMORY;
    const auto dispatch = [&] { status = rh_dispatch(group.get(), &call.args, &result, &handle, nullptr); };
    for (long n = 0; status != RH_OK && rh_group_status(group.get()) == RH_OK; ++n) {
      SCOPED_TRACE("allocation " + std::to_string(n));
      if (rank == 1) {
        dispatch();
        break;
      }
      if (!with_failing(n, dispatch) || rh_group_status(group.get()) != RH_OK) break;
      ++refused;
      expect_arena_free(group.get());
    }
    rh_handle_release(handle);
  });
  EXPECT_GT(refused, 0);
}

// One round of two ranks in a group of their own, in which allocation n of rank 0's call `spoiled` fails. False: that
// call made fewer.
bool spoil(Cluster& cluster, const std::vector<std::uint16_t>& hosts, const Script& script, std::size_t spoiled,
           long n) {
  std::atomic<bool> more{true};
  cluster.run(hosts, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    rh_group_config config = config_of(rank);
    config.max_handles = 1;  // a handle that is lost is one too many for the next dispatch
    const Group group(session, id, config);
    Calls calls(group.get());
    rh_status status = RH_OK;
    for (std::size_t i = 0; i < script.calls.size() && status == RH_OK; ++i) {
      const auto call = [&] { status = (calls.*script.calls[i])(); };
      if (rank == 1 || i != spoiled) {
        call();
        continue;
      }
      const Calls::Outputs before = calls.outputs();
      more = with_failing(n, call);
      if (status == RH_OK || rh_group_status(group.get()) != RH_OK) continue;
      EXPECT_EQ(status, RH_OUT_OF_MEMORY) << rh_last_error();
      EXPECT_EQ(calls.outputs(), before) << "a call that did not happen gave something";
      call();
      EXPECT_EQ(status, RH_OK) << "repeated: " << rh_last_error();
    }
    if (status == RH_OK) {
      calls.expect_right_values();
      return;
    }
    EXPECT_EQ(rh_group_status(group.get()), RH_OUT_OF_MEMORY) << rh_last_error();
    EXPECT_NE(std::string(rh_last_error()).find("rank 0"), std::string::npos) << rh_last_error();
  });
  return more;
}

class NoMemoryAnywhere : public testing::TestWithParam<Script> {};

TEST_P(NoMemoryAnywhere, RefusesTheCallOrEndsTheGroup) {
  for (const std::uint32_t hosts : {1U, 2U}) {
    Cluster cluster{{.hosts = hosts}};
    for (std::size_t spoiled = GetParam().first; spoiled < GetParam().calls.size(); ++spoiled) {
      // Twice too few: how many there are hangs on who is quicker, this call, the other rank or the progress thread.
      long made = 0;
      for (long n = 0; n < made + 2 && !HasFailure(); ++n) {
        SCOPED_TRACE(std::to_string(hosts) + " hosts, call " + std::to_string(spoiled) + ", allocation " +
                     std::to_string(n));
        if (spoil(cluster, {0, static_cast<std::uint16_t>(hosts - 1)}, GetParam(), spoiled, n)) made = n + 1;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Calls, NoMemoryAnywhere, testing::ValuesIn(scripts()),
                         [](const testing::TestParamInfo<Script>& script) { return script.param.name; });

}  // namespace
}  // namespace railhead::test
