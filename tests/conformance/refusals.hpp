// What the tests of refused calls share: a group in which every rank makes the same small calls, and the check that a
// call was refused by name and did not happen.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "railhead/railhead.hpp"
#include "tests/support/cluster.hpp"
#include "tests/support/faults.hpp"

namespace railhead::test {

inline constexpr std::uint32_t kSmallTokens = 3;
inline constexpr std::uint32_t kSmallTopk = 2;
inline constexpr std::uint32_t kSmallHidden = 16;
inline constexpr std::uint32_t kSmallExperts = 4;
inline constexpr std::uint32_t kSmallSide = 8;
inline constexpr std::uint32_t kSmallHandles = 4;

// On one host, on two, and on two whose writes come late, twice and out of order.
struct RefusalHosts {
  std::uint32_t hosts;
  bool faults = false;
};

class Refused : public testing::TestWithParam<RefusalHosts> {
 protected:
  [[nodiscard]] static std::uint16_t last_host() { return static_cast<std::uint16_t>(GetParam().hosts - 1); }
  Cluster cluster_{{.hosts = GetParam().hosts, .fault = GetParam().faults ? all_faults(41) : ""}};
};

inline auto refusal_hosts() {
  return testing::Values(RefusalHosts{1}, RefusalHosts{2}, RefusalHosts{2, true});
}

inline std::string refusal_name(const testing::TestParamInfo<RefusalHosts>& info) {
  return std::to_string(info.param.hosts) + (info.param.faults ? "UnderFaults" : "");
}

inline rh_group_config small_config(std::uint32_t ranks, std::uint32_t rank) {
  auto config = make<rh_group_config>();
  config.ranks = ranks;
  config.rank = rank;
  config.experts = kSmallExperts;
  config.hidden = kSmallHidden;
  config.topk = kSmallTopk;
  config.side_bytes = kSmallSide;
  config.max_handles = kSmallHandles;
  config.op_timeout_ms = 30'000;
  config.join_timeout_ms = 30'000;
  return config;
}

// Hosts of ranks that are dealt out in turns.
inline std::vector<std::uint16_t> in_turns(std::uint32_t ranks, std::uint32_t hosts) {
  std::vector<std::uint16_t> out;
  for (std::uint32_t r = 0; r < ranks; ++r) out.push_back(static_cast<std::uint16_t>(r % hosts));
  return out;
}

// One rank's buffers and good arguments: row t of every rank is filled with t + 1, all go to experts 0 and 2.
struct SmallCall {
  std::vector<float> x, y;
  std::vector<std::int64_t> ids;
  std::vector<std::uint8_t> side;
  rh_dispatch_args args = make<rh_dispatch_args>();

  SmallCall() : y(kSmallTokens * kSmallHidden), side(kSmallTokens * kSmallSide, 7) {
    for (std::uint32_t t = 0; t < kSmallTokens; ++t) {
      x.insert(x.end(), kSmallHidden, static_cast<float>(t + 1));
      ids.insert(ids.end(), {0, 2});
    }
    args.x = x.data();
    args.type = RH_FP32;
    args.tokens = kSmallTokens;
    args.ids = ids.data();
    args.side = side.data();
    args.side_bytes = kSmallSide;
    args.layout = RH_LAYOUT_EXPERT;
  }
  SmallCall(const SmallCall&) = delete;
  SmallCall& operator=(const SmallCall&) = delete;

  // Of the rows as they came back from dispatch: y[t] is twice x[t].
  rh_combine_args combine_args(const rh_dispatch_result& got, rh_handle* handle) {
    auto out = make<rh_combine_args>();
    out.handle = handle;
    out.rows = got.rows;
    out.row_count = got.row_count;
    out.type = RH_FP32;
    out.wire_type = RH_FP32;
    out.y = y.data();
    return out;
  }
};

// A bad call, by what spoils the arguments of the good one, and how it is refused.
template <class Arguments>
struct Spoiled {
  const char* what;
  std::function<void(Arguments&)> spoil;
  std::vector<std::string> says;
  rh_status status = RH_INVALID_ARGUMENT;
};

// A value that an enumeration does not have, as a C program can pass it.
template <class Enum>
void put(Enum& field, std::uint32_t value) {
  static_assert(sizeof(Enum) == sizeof(value));
  std::memcpy(&field, &value, sizeof(value));
}

// The corrected call: a dispatch and a combine with right values.
inline void good_round(rh_group* group) {
  SmallCall call;
  auto result = make<rh_dispatch_result>();
  rh_handle* handle = nullptr;
  ASSERT_EQ(rh_dispatch(group, &call.args, &result, &handle, nullptr), RH_OK) << rh_last_error();
  const Handle owner(handle);
  const rh_combine_args combine = call.combine_args(result, handle);
  ASSERT_EQ(rh_combine(group, &combine, nullptr), RH_OK) << rh_last_error();
  for (std::size_t i = 0; i < call.y.size(); ++i) ASSERT_EQ(call.y[i], 2 * call.x[i]) << i;
}

// The call was refused with this status, the sentence has these pieces, and no operation was used for it.
inline void expect_refused(rh_group* group, const std::string& what, rh_status got, rh_status want,
                           const std::vector<std::string>& says, std::uint64_t completed) {
  EXPECT_EQ(got, want) << what << ": " << rh_last_error();
  const std::string sentence = rh_last_error();
  for (const std::string& piece : says) EXPECT_NE(sentence.find(piece), std::string::npos) << what << ": " << sentence;
  auto info = make<rh_group_info>();
  ASSERT_EQ(rh_group_query(group, &info), RH_OK);
  EXPECT_EQ(info.completed, completed) << what;
  EXPECT_EQ(rh_group_status(group), RH_OK) << what;
}

inline std::uint64_t completed(rh_group* group) {
  auto info = make<rh_group_info>();
  EXPECT_EQ(rh_group_query(group, &info), RH_OK);
  return info.completed;
}

}  // namespace railhead::test
