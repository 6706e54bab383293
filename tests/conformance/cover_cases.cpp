#include "tests/conformance/cover_cases.hpp"

#include <algorithm>
#include <set>
#include <sstream>

#include "tests/conformance/pairwise.hpp"

namespace railhead::test {
namespace {

using reference::Layout;
using reference::NumberType;

enum Factor : std::size_t {
  kShape,
  kTokens,
  kTokenPattern,
  kTopk,
  kHidden,
  kExperts,
  kMap,
  kLayout,
  kType,
  kWire,
  kSide,
  kChannels,
  kDepth,
  kSlots,
  kChunk,
  kIds,
  kRouting,
  kStyle,
  kWeighted,
  kPitch,
  kCombine,
  kWeights,
  kCallTopk,
  kFactors
};

// Host of every rank: 1, 2, 3, 5, 8 and 12 ranks on one to three hosts, uneven (3+5, 1+2+4) and interleaved.
const std::vector<std::vector<std::uint16_t>> kShapes = {
    {0},
    {0, 0},
    {0, 0, 0},
    {0, 0, 0, 0, 0},
    {0, 0, 0, 0, 0, 0, 0, 0},
    {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {0, 1},
    {1, 0, 1},
    {0, 1, 0, 1, 0},
    {0, 0, 0, 1, 1, 1, 1, 1},
    {1, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 1},
    {0, 1, 2},
    {2, 0, 1, 0, 2},
    {0, 1, 1, 2, 2, 2, 2},
    {0, 1, 2, 0, 1, 2, 0, 1},
    {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2},
};
constexpr std::uint32_t kTokenLevels[] = {0, 1, 2, 3, 7, 31, 63, 64, 65, 127, 128, 129, 255, 1023, 4095, 4096, 4097};
constexpr std::uint32_t kTopkLevels[] = {1, 2, 6, 8, 9, 16, 22};
constexpr std::uint32_t kHiddenLevels[] = {1, 16, 130, 2880, 7168};
constexpr std::uint32_t kAlignLevels[] = {0, 1, 3, 16};  // 0: layout rank
constexpr NumberType kTypeLevels[] = {NumberType::bf16, NumberType::fp16, NumberType::fp32, NumberType::raw};
constexpr NumberType kCombineLevels[] = {NumberType::bf16, NumberType::fp16, NumberType::fp32};
constexpr std::uint32_t kSideLevels[] = {0, 1, 16, 57};
constexpr std::uint32_t kSlotLevels[] = {1, 2, 4};
constexpr std::uint32_t kPitchLevels[] = {0, 12};

enum TokenPattern : std::size_t { kEqual, kOneRank, kMixed };
enum Routing : std::size_t { kPlain, kUsual, kSparse, kRepeats, kOneExpert, kNothing };

const std::vector<std::size_t>& level_counts() {
  static const std::vector<std::size_t> counts = {
      kShapes.size(),
      std::size(kTokenLevels),
      3,
      std::size(kTopkLevels),
      std::size(kHiddenLevels),
      6,
      3,
      std::size(kAlignLevels),
      std::size(kTypeLevels),
      2,
      std::size(kSideLevels),
      5,
      3,
      std::size(kSlotLevels),
      3,
      2,
      6,
      6,
      2,
      std::size(kPitchLevels),
      std::size(kCombineLevels),
      2,
      2,
  };
  return counts;
}

std::size_t or_zero(std::size_t level) {
  return level == kUnset ? 0 : level;
}

std::uint32_t experts_of(std::size_t level, std::uint32_t ranks) {
  switch (level) {
    case 0: return 1;
    case 1: return std::max(1U, ranks - 1);  // fewer experts than ranks
    case 2: return 2 * ranks + 1;
    case 3: return 7;
    case 4: return 31;
    default: return 61;
  }
}

// About how many bytes the product and the model move; an unset factor counts as its cheapest level.
std::uint64_t cost(const Levels& row) {
  const auto ranks = kShapes[or_zero(row[kShape])].size();
  const std::uint64_t most = kTokenLevels[or_zero(row[kTokens])];
  const std::size_t pattern = row[kTokenPattern] == kUnset ? kOneRank : row[kTokenPattern];
  const std::uint64_t tokens = pattern == kEqual ? most * ranks : most + (pattern == kMixed ? 64 * ranks : 0);
  const std::uint64_t topk = kTopkLevels[or_zero(row[kTopk])];
  const std::uint64_t element = row[kType] == kUnset ? 1 : reference::size_of(kTypeLevels[row[kType]]);
  const std::uint64_t combined = reference::size_of(kCombineLevels[or_zero(row[kCombine])]);
  const std::uint64_t hidden = kHiddenLevels[or_zero(row[kHidden])];
  const bool by_rank = row[kLayout] == kUnset || kAlignLevels[row[kLayout]] == 0;
  const auto experts = experts_of(or_zero(row[kExperts]), static_cast<std::uint32_t>(ranks));
  std::uint64_t copies = std::min<std::uint64_t>(topk, by_rank ? std::min<std::uint64_t>(ranks, experts) : experts);
  if (row[kRouting] == kUnset || row[kRouting] == kNothing) copies = 0;
  if (row[kRouting] == kOneExpert) copies = 1;
  return tokens * (hidden * (element * (1 + copies) + combined * copies) + 64 * topk);
}

std::vector<std::uint32_t> tokens_of(std::size_t pattern, std::uint32_t most, std::size_t ranks, Dice& dice) {
  std::vector<std::uint32_t> tokens(ranks, pattern == kEqual ? most : 0);
  if (pattern == kMixed) {
    for (auto& t : tokens) t = std::min(most, kTokenLevels[dice.below(10)]);
  }
  tokens[dice.below(ranks)] = most;
  return tokens;
}

std::vector<std::uint16_t> map_of(std::size_t level, std::uint32_t experts, std::size_t ranks, Dice& dice) {
  std::vector<std::uint16_t> map;
  if (level == 0) return map;
  for (std::uint32_t e = 0; e < experts; ++e) {
    const std::size_t rank = level == 1 ? dice.below(ranks) : ranks - 1;
    map.push_back(static_cast<std::uint16_t>(rank));
  }
  return map;
}

reference::Oddities oddities_of(std::size_t routing, std::uint32_t experts, Dice& dice) {
  reference::Oddities odd;
  switch (routing) {
    case kPlain: odd = {0, 0, 0, 0, -1}; break;
    case kSparse: odd = {600, 300, 50, 20, -1}; break;
    case kRepeats: odd.repeated_slots = 600; break;
    case kOneExpert: odd.only_expert = static_cast<std::int64_t>(dice.below(experts)); break;
    case kNothing: odd.unused_tokens = 1000; break;
    default: break;
  }
  return odd;
}

// Bytes of one record with a payload of the usual element: with 1 the product makes chunks of one token.
std::uint32_t chunk_of(std::size_t level, const CaseSpec& spec) {
  if (level == 0) return 1;
  return level == 1 ? 0 : 3 * (spec.hidden * 2 + spec.topk * 16 + spec.side_bytes + 128);
}

CoverCase case_of(const Levels& row, std::uint64_t seed) {
  Dice dice(seed);
  CoverCase out;
  CaseSpec& spec = out.spec;
  spec.host_of_rank = kShapes[row[kShape]];
  out.hosts = static_cast<std::uint32_t>(std::set(spec.host_of_rank.begin(), spec.host_of_rank.end()).size());
  const auto ranks = static_cast<std::uint32_t>(spec.host_of_rank.size());
  spec.tokens = tokens_of(row[kTokenPattern], kTokenLevels[row[kTokens]], ranks, dice);
  spec.topk = kTopkLevels[row[kTopk]];
  spec.call_topk = row[kCallTopk] == 0 ? 0 : static_cast<std::uint32_t>(1 + dice.below(spec.topk));
  spec.hidden = kHiddenLevels[row[kHidden]];
  spec.experts = experts_of(row[kExperts], ranks);
  spec.rank_of_expert = map_of(row[kMap], spec.experts, ranks, dice);
  spec.layout = kAlignLevels[row[kLayout]] == 0 ? Layout::rank : Layout::expert;
  spec.align = std::max(1U, kAlignLevels[row[kLayout]]);
  spec.type = kTypeLevels[row[kType]];
  spec.combine = kCombineLevels[row[kCombine]];
  spec.wire = row[kWire] == 0 ? NumberType::bf16 : NumberType::fp32;
  spec.side_bytes = kSideLevels[row[kSide]];
  spec.channels = static_cast<std::uint32_t>(row[kChannels]) + 1;
  spec.depth = static_cast<std::uint32_t>(row[kDepth]) + 1;
  spec.ring_slots = kSlotLevels[row[kSlots]];
  spec.chunk_bytes = chunk_of(row[kChunk], spec);
  spec.int32_ids = row[kIds] == 1;
  spec.odd = oddities_of(row[kRouting], spec.experts, dice);
  spec.weights = row[kWeights] == 1;
  spec.weighted = row[kWeighted] == 1;
  spec.pitch_extra = kPitchLevels[row[kPitch]];
  spec.seed = seed;
  spec.rounds = 2;
  const auto style = static_cast<std::uint8_t>(row[kStyle]);
  out.styles = {static_cast<CallStyle>(style), static_cast<CallStyle>((style + 1) % 6)};
  return out;
}

}  // namespace

std::string Cover::summary(std::uint64_t seed, std::uint64_t cap) const {
  std::ostringstream text;
  text << "pairwise cover: seed " << seed << ", " << cases.size() << " cases for " << pairs << " pairs of "
       << std::size_t{kFactors} << " factors, cap " << (cap >> 20) << " MiB per case rules out " << impossible;
  return text.str();
}

Cover make_cover(std::uint64_t seed, std::uint64_t cap) {
  const PairwiseCover rows(level_counts(), seed, [cap](const Levels& row) { return cost(row) <= cap; });
  Cover out;
  out.pairs = rows.pairs();
  out.impossible = rows.impossible();
  for (std::size_t i = 0; i < rows.rows().size(); ++i) out.cases.push_back(case_of(rows.rows()[i], seed + i));
  return out;
}

}  // namespace railhead::test
