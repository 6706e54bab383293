// A round of small calls, one at a time, for tests that spoil one of them.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/refusals.hpp"

namespace railhead::test {

// One rank's side of a round; every call uses what the calls before it gave.
class Calls {
 public:
  explicit Calls(rh_group* group) : group_(group) {}

  rh_status dispatch() { return rh_dispatch(group_, &small_.args, &result_, &handle_, nullptr); }
  rh_status dispatch_async() { return rh_dispatch(group_, &small_.args, &result_, &handle_, &event_); }
  rh_status dispatch_cached() {
    rh_dispatch_args args = small_.args;
    args.cached = handle_;
    return rh_dispatch(group_, &args, &result_, &handle_, nullptr);
  }
  rh_status plan() { return rh_dispatch_plan(group_, &small_.args, &rows_, &handle_); }
  rh_status run() { return rh_dispatch_run(group_, handle_, nullptr, 0, &result_, nullptr); }
  rh_status run_async() { return rh_dispatch_run(group_, handle_, nullptr, 0, &result_, &event_); }
  rh_status combine() {
    const rh_combine_args args = small_.combine_args(result_, handle_);
    return rh_combine(group_, &args, nullptr);
  }
  rh_status combine_async() {
    const rh_combine_args args = small_.combine_args(result_, handle_);
    return rh_combine(group_, &args, &event_);
  }
  rh_status wait() {
    const rh_status status = rh_event_wait(event_, UINT64_MAX);
    if (status == RH_OK) event_ = nullptr;
    return status;
  }
  rh_status release() {
    const rh_status status = rh_handle_release(handle_);
    if (status == RH_OK) handle_ = nullptr;
    return status;
  }

  // What the calls gave so far.
  using Outputs = std::pair<rh_handle*, rh_event*>;
  [[nodiscard]] Outputs outputs() const { return {handle_, event_}; }
  void expect_right_values() const {
    for (std::size_t i = 0; i < small_.y.size(); ++i) ASSERT_EQ(small_.y[i], 2 * small_.x[i]) << i;
  }

 private:
  rh_group* group_;
  SmallCall small_;
  rh_dispatch_result result_ = make<rh_dispatch_result>();
  std::uint64_t rows_ = 0;
  rh_handle* handle_ = nullptr;
  rh_event* event_ = nullptr;
};

// The calls of a round. Each releases its handle and makes another, so that a lost one is found out.
struct Script {
  std::string name;
  std::vector<rh_status (Calls::*)()> calls;
  std::size_t first = 0;  // the ones before are those of another script
};

inline std::vector<Script> scripts() {
  using C = Calls;
  const auto twice = [](std::vector<rh_status (C::*)()> calls) {
    const std::vector<rh_status (C::*)()> once = calls;
    calls.insert(calls.end(), once.begin(), once.end());
    return calls;
  };
  return {
      {"Blocking", twice({&C::dispatch, &C::combine, &C::release})},
      {"Asynchronous", twice({&C::dispatch_async, &C::wait, &C::combine_async, &C::wait, &C::release})},
      {"Planned", twice({&C::plan, &C::run, &C::combine, &C::release})},
      {"PlannedAsynchronous", twice({&C::plan, &C::run_async, &C::wait, &C::combine, &C::release}), 1},
      {"Cached", twice({&C::dispatch, &C::dispatch_cached, &C::combine, &C::release}), 1},
  };
}

}  // namespace railhead::test
