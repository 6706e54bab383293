// The library's own bookkeeping finds no memory in the middle of a call: that call fails, nothing else does.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

#include "tests/conformance/refusals.hpp"
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
  config.op_timeout_ms = 2000;
  return config;
}

// After the refusal of too small a place the progress thread carries the operation on, also when there was no memory
// for the sentence.
TEST(NoMemory, ForTheSentenceOfATooSmallPlace) {
  Cluster cluster{{.hosts = 1}};
  std::atomic<bool> more{true};
  for (long n = 0; more && n < 200; ++n) {
    cluster.run({0, 0}, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
      const Group group(session, id, config_of(rank));
      SmallCall call;
      std::vector<float> out(std::size_t{64} * kSmallHidden);
      auto result = make<rh_dispatch_result>();
      rh_handle* handle = nullptr;
      if (rank == 1) {
        std::this_thread::sleep_for(20ms);  // the other is to wait by then, which nothing but `epctl why` shows
        rh_dispatch(group.get(), &call.args, &result, &handle, nullptr);
        return;
      }
      call.args.out = out.data();
      call.args.out_rows = 1;
      more = with_failing(n, [&] { rh_dispatch(group.get(), &call.args, &result, &handle, nullptr); });
      rh_event* event = nullptr;
      if (!more || handle == nullptr) return;
      if (rh_dispatch_run(group.get(), handle, out.data(), 64, &result, &event) != RH_OK) return;
      EXPECT_TRUE(eventually([&] { return completed(group.get()) == 1; }, 1s))
          << "allocation " << n << ": the progress thread does not step";
      rh_event_wait(event, UINT64_MAX);
    });
  }
}

// A combine that fails so and is made again: it works, or the group ends; nobody crashes.
TEST(NoMemory, InACombineThatIsMadeAgain) {
  Cluster cluster{{.hosts = 1}};
  std::atomic<bool> more{true};
  for (long n = 0; more && n < 200; ++n) {
    cluster.run({0, 0}, [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
      const Group group(session, id, config_of(rank));
      SmallCall call;
      const auto [result, handle] = group.dispatch(call.args);
      const rh_combine_args combine = call.combine_args(result, handle.get());
      rh_status status = RH_OK;
      const auto made = [&] { status = rh_combine(group.get(), &combine, nullptr); };
      if (rank == 0) {
        more = with_failing(n, made);
        if (!more) return;
      }
      if (status != RH_OK || rank == 1) made();
    });
  }
}

}  // namespace
}  // namespace railhead::test
