#include "tools/ep-bench/rank/verify.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

namespace railhead::bench {
namespace {

constexpr std::uint32_t kTokensAtOnce = 64;  // of a combine check: bounds the memory of the model

// The first place where two arrays differ, by bits (weights may be NaN patterns).
template <class T, class U>
Status same(const char* what, const std::vector<T>& want, const U* got) {
  if (want.empty()) return {};
  if (got == nullptr) return {Code::internal, std::string(what) + " is NULL"};
  for (std::size_t i = 0; i < want.size(); ++i) {
    const auto expected = static_cast<U>(want[i]);
    if (std::memcmp(&expected, &got[i], sizeof(U)) == 0) continue;  // NOLINT(bugprone-suspicious-memory-comparison)
    return {Code::internal, std::string(what) + "[" + std::to_string(i) + "] is " + std::to_string(got[i]) +
                                ", must be " + std::to_string(expected)};
  }
  return {};
}

Status same_number(const char* what, std::uint64_t want, std::uint64_t got) {
  if (want == got) return {};
  return {Code::internal, std::string(what) + " is " + std::to_string(got) + ", must be " + std::to_string(want)};
}

Status first_failure(std::initializer_list<Status> checks) {
  const auto bad = std::find_if(checks.begin(), checks.end(), [](const Status& s) { return !s.ok(); });
  return bad == checks.end() ? Status() : *bad;
}

Status in_batch(std::uint64_t batch, const Status& status) {
  if (status.ok()) return {};
  return {status.code(), "batch " + std::to_string(batch) + ": " + status.message()};
}

}  // namespace

reference::Case Verifier::empty_case() const {
  reference::Case test;
  test.domain_of_rank = work_.domain_of_rank;
  test.rank_of_expert = reference::default_rank_of_expert(work_.experts, work_.ranks());
  test.top_k = work_.top_k;
  test.hidden = work_.hidden;
  test.type = number_type(work_.type);
  test.layout = work_.layout == RH_LAYOUT_RANK ? reference::Layout::rank : reference::Layout::expert;
  test.align = work_.align;
  test.inputs.resize(work_.ranks());
  return test;
}

// The model gets rows of no bytes: it says which token every row must be, and the bytes are compared with the tokens.
Status Verifier::received(std::uint64_t batch, const rh_dispatch_result& result) const {
  reference::Case test = empty_case();
  test.hidden = 0;
  for (std::uint32_t rank = 0; rank < work_.ranks(); ++rank) {
    Routing routing = routing_.draw(rank, batch, work_.tokens[rank]);
    test.inputs[rank] = {work_.tokens[rank], {}, std::move(routing.ids), std::move(routing.weights), {}};
  }
  const reference::Received want = std::move(reference::dispatch(test)[rank_]);
  const bool by_rank = work_.layout == RH_LAYOUT_RANK;
  if (Status sizes = first_failure({same_number("row_count", want.rows, result.row_count),
                                    same_number("received", want.received, result.received),
                                    same_number("local_experts", want.expert_counts.size(), result.local_experts)});
      !sizes.ok()) {
    return in_batch(batch, sizes);
  }
  const auto& offsets = by_rank ? want.offsets : want.padded_offsets;
  return in_batch(
      batch, first_failure(
                 {same("expert_counts", want.expert_counts, result.expert_counts),
                  same("expert_offsets", offsets, result.expert_offsets),
                  same("expert_offsets64", offsets, result.expert_offsets64),
                  same("row_rank", want.source_rank, result.row_rank), same("row_token", want.token, result.row_token),
                  same("row_slot", want.slot, result.row_slot), same("row_weight", want.weight, result.row_weight),
                  same("local_ids", want.local_experts, result.local_ids),
                  same("local_weights", want.local_weights, result.local_weights), rows_match(want, batch, result)}));
}

Status Verifier::rows_match(const reference::Received& want, std::uint64_t batch,
                            const rh_dispatch_result& result) const {
  const reference::Bytes zero(work_.row_bytes());
  const auto* const rows = static_cast<const std::byte*>(result.rows);
  if (want.rows != 0 && rows == nullptr) return {Code::internal, "rows is NULL"};
  for (std::size_t row = 0; row < want.rows; ++row) {
    const bool padding = want.token[row] < 0;
    const auto expected = padding ? std::span<const std::byte>(zero)
                                  : payload_.row(static_cast<std::uint32_t>(want.source_rank[row]), batch,
                                                 static_cast<std::uint32_t>(want.token[row]));
    const std::span<const std::byte> got(rows + row * work_.row_bytes(), work_.row_bytes());
    if (std::memcmp(expected.data(), got.data(), got.size()) == 0) continue;
    const auto where = reference::first_difference(reference::NumberType::raw, expected, got);
    return {Code::internal, "row " + std::to_string(row) +
                                (padding ? " (padding)"
                                         : " (rank " + std::to_string(want.source_rank[row]) + ", token " +
                                               std::to_string(want.token[row]) + ")") +
                                ": " + where.value_or("differs")};
  }
  return {};
}

// Tokens are independent of each other, and with identity experts of what other ranks send: the model sees this rank's
// tokens alone, a few at a time.
Status Verifier::combined(std::uint64_t batch, const std::byte* y) const {
  const Routing routing = routing_.draw(rank_, batch, work_.tokens[rank_]);
  const reference::CombineOptions options{.input = number_type(work_.type),
                                          .output = number_type(work_.type),
                                          .wire = number_type(work_.wire),
                                          .hidden = work_.hidden,
                                          .weighted = work_.layout == RH_LAYOUT_EXPERT};
  for (std::uint32_t first = 0; first < routing.tokens; first += kTokensAtOnce) {
    const std::uint32_t count = std::min(kTokensAtOnce, routing.tokens - first);
    reference::Case test = empty_case();
    reference::RankInput& own = test.inputs[rank_];
    own.tokens = count;
    const auto slots = [&](const auto& all) {
      const auto begin = all.begin() + std::ptrdiff_t{first} * work_.top_k;
      return std::vector(begin, begin + std::ptrdiff_t{count} * work_.top_k);
    };
    own.ids = slots(routing.ids);
    own.weights = slots(routing.weights);
    for (std::uint32_t token = first; token < first + count; ++token) {
      const auto row = payload_.row(rank_, batch, token);
      own.x.insert(own.x.end(), row.begin(), row.end());
    }
    const auto received = reference::dispatch(test);
    std::vector<reference::Bytes> rows;
    rows.reserve(received.size());
    for (const auto& one : received) rows.push_back(one.x);
    const reference::Bytes want = reference::combine(test, received, rows, options)[rank_];
    const std::span<const std::byte> got(y + first * work_.row_bytes(), want.size());
    if (const auto where = reference::first_difference(options.output, want, got)) {
      return in_batch(batch, {Code::internal, "combined tokens from " + std::to_string(first) + " on: " + *where});
    }
  }
  return {};
}

}  // namespace railhead::bench
