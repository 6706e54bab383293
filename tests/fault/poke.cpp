#include "tests/fault/poke.hpp"

#include <atomic>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "ipc/layout/group_segment.hpp"
#include "ipc/shared_word.hpp"
#include "ipc/wire.hpp"

namespace railhead::test {
namespace {

struct Mapping {
  std::byte* data = nullptr;
  std::uint64_t bytes = 0;
};

// The last mapping with this name in its path.
Mapping mapping(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  Mapping found;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(name) == std::string::npos) continue;
    unsigned long begin = 0;
    unsigned long end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2) continue;
    found = {reinterpret_cast<std::byte*>(begin), end - begin};
  }
  if (found.data == nullptr) throw std::runtime_error("no mapping " + name);
  return found;
}

ipc::GroupSegment words_of(const rh_group_config& config) {
  ipc::GroupParams params;
  params.ranks = config.ranks;
  params.experts = config.experts;
  params.hidden = config.hidden;
  params.topk = config.topk;
  if (config.depth != 0) params.depth = config.depth;
  if (config.channels != 0) params.channels = config.channels;
  const ipc::GroupMap one_host{1, std::vector<std::uint16_t>(config.ranks, 0)};
  return {mapping("railhead-group").data, ipc::GroupShape(params, one_host), 0};
}

void offer_nonsense(const ipc::GroupSegment& words, std::uint32_t rank) {
  auto* const header = const_cast<ipc::OpHeader*>(words.header(rank, 1).header);
  header->rows_span = ipc::SpanRef::make(0, 0).word;
  header->meta_span = ipc::SpanRef::make(0, mapping("railhead-receive").bytes).word;
  ipc::store_release(header->span_rows, std::uint64_t{1} << 62);
}

}  // namespace

void poke(const rh_group_config& config, const std::string& what) {
  const ipc::GroupSegment words = words_of(config);
  if (what == "slice") {
    auto* const slice = const_cast<std::uint32_t*>(words.header(config.rank, 1).slice);
    for (std::uint32_t expert = 0; expert < config.experts; ++expert) ipc::store_release(slice[expert], 0x10000000U);
  } else if (what == "span") {
    offer_nonsense(words, config.rank);
  } else if (what == "poison") {
    ipc::store_release(*reinterpret_cast<std::uint64_t*>(mapping("railhead-group").data), std::uint64_t{1} << 63);
  } else if (what == "wake") {
    // release: as the daemon's.
    ipc::shared(words.live(0).wake.value).fetch_or(ipc::kPoisonBit, std::memory_order_release);
  } else if (what == "completed") {
    ipc::store_release(words.live(0).completed, std::uint64_t{77});
  } else {
    throw std::runtime_error("nothing is called " + what);
  }
}

}  // namespace railhead::test
