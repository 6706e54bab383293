#include <algorithm>
#include <map>
#include <tuple>

#include "tests/reference/model.hpp"

namespace railhead::reference {
namespace {

// One row that a token gets back.
struct Term {
  std::uint32_t rank = 0;    // who holds the row
  std::int32_t expert = -1;  // local id on that rank (ascending as global ids are); -1 in rank layout
  std::size_t row = 0;
  float weight = 1;
};

using Sum = std::vector<float>;  // hidden values; empty: nothing was added yet

void add(Sum& sum, const Sum& values) {
  if (sum.empty()) {
    sum = values;
    return;
  }
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = sum[i] + values[i];
}

Sum value_of(const Term& term, const std::vector<Bytes>& rows, const CombineOptions& options) {
  Sum values(options.hidden);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = load(options.input, rows[term.rank].data(), term.row * options.hidden + i);
    if (options.weighted) values[i] = term.weight * values[i];
  }
  return values;
}

void round_to(NumberType type, Sum& values) {
  std::byte word[4];
  for (float& value : values) {
    store(type, word, 0, value);
    value = load(type, word, 0);
  }
}

// The token's rows on every rank, ordered by (rank, expert).
std::map<std::tuple<std::int32_t, std::int32_t>, std::vector<Term>> terms_by_token(
    const std::vector<Received>& received) {
  std::map<std::tuple<std::int32_t, std::int32_t>, std::vector<Term>> terms;
  for (std::uint32_t rank = 0; rank < received.size(); ++rank) {
    const Received& here = received[rank];
    for (std::size_t row = 0; row < here.rows; ++row) {
      if (here.token[row] < 0) continue;  // padding
      Term term{.rank = rank, .expert = -1, .row = row, .weight = 1};
      if (!here.expert.empty()) term.expert = here.expert[row];
      if (!here.weight.empty()) term.weight = here.weight[row];
      terms[{here.source_rank[row], here.token[row]}].push_back(term);
    }
  }
  for (auto& [token, list] : terms) {
    std::sort(list.begin(), list.end(),
              [](const Term& a, const Term& b) { return std::tie(a.rank, a.expert) < std::tie(b.rank, b.expert); });
  }
  return terms;
}

Sum combine_token(const Case& test, std::uint32_t home_domain, const std::vector<Term>& terms,
                  const std::vector<Bytes>& rows, const CombineOptions& options) {
  std::map<std::uint32_t, Sum> partials;  // by domain, ascending
  for (const Term& term : terms) add(partials[test.domain_of_rank[term.rank]], value_of(term, rows, options));
  Sum y;
  for (auto& [domain, partial] : partials) {
    if (domain != home_domain) round_to(options.wire, partial);
    add(y, partial);
  }
  if (y.empty()) y.resize(options.hidden);  // +0
  return y;
}

}  // namespace

std::vector<Bytes> combine(const Case& test, const std::vector<Received>& received, const std::vector<Bytes>& rows,
                           const CombineOptions& options) {
  auto terms = terms_by_token(received);
  std::vector<Bytes> all(test.ranks());
  for (std::uint32_t home = 0; home < test.ranks(); ++home) {
    const std::uint32_t tokens = test.inputs[home].tokens;
    all[home].resize(tokens * std::size_t{options.hidden} * size_of(options.output));
    for (std::uint32_t token = 0; token < tokens; ++token) {
      const auto& mine = terms[{static_cast<std::int32_t>(home), static_cast<std::int32_t>(token)}];
      const Sum y = combine_token(test, test.domain_of_rank[home], mine, rows, options);
      for (std::size_t i = 0; i < y.size(); ++i) store(options.output, all[home].data(), token * y.size() + i, y[i]);
    }
  }
  return all;
}

}  // namespace railhead::reference
