// NIC-registered memory of a rank: the formula of docs/memory.md, whatever a call sends, and gone with the group.
#include <unistd.h>

#include <fstream>

#include "ipc/layout/shape.hpp"
#include "tests/fault/world.hpp"

namespace railhead::test {
namespace {

constexpr std::uint32_t kDepth = 2;
constexpr std::uint32_t kSlots = 3;

struct RailCase {
  std::string name;
  std::vector<std::uint32_t> host_of_rank;  // numbered in the order in which they appear
  std::uint32_t channels;
  [[nodiscard]] std::uint32_t hosts() const { return 1 + *std::ranges::max_element(host_of_rank); }
};

// F: who forwards is (index of the home rank in its host x C + channel) mod ranks of the forwarder's host.
std::uint64_t forwards(const RailCase& c, std::size_t rank) {
  const auto index_in_host = [&](std::size_t r) {
    return static_cast<std::size_t>(
        std::count(c.host_of_rank.begin(), c.host_of_rank.begin() + static_cast<std::ptrdiff_t>(r), c.host_of_rank[r]));
  };
  const auto locals = static_cast<std::size_t>(std::ranges::count(c.host_of_rank, c.host_of_rank[rank]));
  std::uint64_t pairs = 0;
  for (std::size_t home = 0; home < c.host_of_rank.size(); ++home) {
    if (c.host_of_rank[home] == c.host_of_rank[rank]) continue;
    for (std::uint32_t channel = 0; channel < c.channels; ++channel) {
      pairs += (index_in_host(home) * c.channels + channel) % locals == index_in_host(rank) ? 1 : 0;
    }
  }
  return pairs;
}

std::uint64_t formula(const RailCase& c, const ipc::GroupShape& shape, std::size_t rank) {
  const std::uint64_t others = c.hosts() - 1;
  const std::uint64_t slot = shape.slot_bytes();
  const std::uint64_t header = shape.header_bytes();
  const std::uint64_t bytes =
      2 * kSlots * slot * (c.channels * others + forwards(c, rank)) + others * (2 * kDepth + 1) * header;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

// What the kernel says the daemon has mapped of rail segments: what it registers, it maps.
std::uint64_t mapped_rails(Epd& host) {
  std::ifstream maps("/proc/" + std::to_string(host.process().pid()) + "/maps");
  std::uint64_t sum = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(":railhead-rail ") == std::string::npos) continue;
    std::size_t dash = 0;
    const std::uint64_t from = std::stoull(line, &dash, 16);
    sum += std::stoull(line.substr(dash + 1), nullptr, 16) - from;
  }
  return sum;
}

class RailMemory : public testing::TestWithParam<RailCase> {
 protected:
  RailMemory() : world_(GetParam().hosts()) {
    const RailCase& c = GetParam();
    world_.populate(c.host_of_rank, "depth=" + std::to_string(kDepth) + " slots=" + std::to_string(kSlots) +
                                        " channels=" + std::to_string(c.channels));
    ipc::GroupParams params;
    params.ranks = static_cast<std::uint32_t>(c.host_of_rank.size());
    params.experts = 2 * params.ranks;
    params.hidden = 64;
    params.topk = 2;
    params.channels = c.channels;
    params.depth = kDepth;
    params.ring_slots = kSlots;
    ipc::GroupMap map;
    for (const std::uint32_t host : c.host_of_rank) map.domain_of_rank.push_back(static_cast<std::uint16_t>(host));
    shape_ = ipc::GroupShape(params, map);
  }

  // As each rank is told, as operators are shown it, and as the kernel counts the daemon's mappings.
  void expect_formula(const std::string& when) {
    std::map<std::uint32_t, std::uint64_t> of_host;
    for (std::size_t r = 0; r < world_.ranks(); ++r) {
      const std::uint64_t due = formula(GetParam(), shape_, r);
      EXPECT_EQ(world_.rank(r).ask("registered").text, std::to_string(due)) << when << ", rank " << r;
      of_host[GetParam().host_of_rank[r]] += due;
      for (const Json& arena : world_.host(GetParam().host_of_rank[r]).snapshot("arenas")["arenas"]) {
        if (arena.value("rank", 0U) != r) continue;
        EXPECT_EQ(arena.value("rail_bytes", std::uint64_t{1}), due) << when << ", rank " << r;
      }
    }
    for (const auto& [host, due] : of_host) {
      EXPECT_EQ(mapped_rails(world_.host(host)), due) << when << ", host " << host;
    }
  }

  World world_;
  ipc::GroupShape shape_;
};

TEST_P(RailMemory, FollowsTheFormulaWhateverACallSendsAndGoesWithTheGroup) {
  expect_formula("new group");
  world_.expect_good(world_.everybody(), "round tokens=4097");
  expect_formula("after an operation of 4097 tokens");
  world_.expect_good(world_.everybody(), "close");
  for (std::uint32_t h = 0; h < world_.hosts(); ++h) {
    EXPECT_TRUE(eventually([&] { return mapped_rails(world_.host(h)) == 0; }))
        << "host " << h << " still maps " << mapped_rails(world_.host(h)) << " bytes of rails";
    EXPECT_TRUE(eventually([&] { return world_.host(h).snapshot("arenas")["arenas"].empty(); })) << "host " << h;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, RailMemory,
                         testing::Values(RailCase{"OneHost", {0, 0, 0}, 3}, RailCase{"TwoHosts", {0, 1}, 1},
                                         RailCase{"TwoHostsUneven", {0, 0, 1, 0, 0}, 3},
                                         RailCase{"ThreeHosts", {0, 1, 2}, 3},
                                         RailCase{"ThreeHostsUneven", {0, 1, 1, 2, 2, 2, 2}, 1},
                                         RailCase{"ThreeHostsUnevenThreeChannels", {0, 1, 1, 2, 2, 2, 2}, 3}),
                         [](const auto& i) { return i.param.name; });

}  // namespace
}  // namespace railhead::test
