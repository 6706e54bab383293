// The forwarder of a dispatch reads chunks of another host: whatever they hold, it writes rows of the promised places
// or ends with an error.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "ipc/layout/rail_words.hpp"
#include "kernels/host/dispatch_roles.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace railhead::test {
namespace {

using kernels::ChunkForm;
using kernels::Step;

constexpr std::uint32_t kHidden = 8;
constexpr std::uint32_t kRowBytes = kHidden * 2;
constexpr std::uint32_t kTokens = 5;
constexpr std::uint32_t kHome = 2;  // the only rank of domain 1
constexpr std::size_t kGuard = 256;
constexpr std::byte kPattern{0x5a};

ipc::GroupShape shape() {
  ipc::GroupParams params;
  params.ranks = 3;
  params.experts = 6;
  params.hidden = kHidden;
  params.topk = 2;
  params.channels = 1;
  return {params, ipc::GroupMap{7, {0, 0, 1}}};
}

// Memory of one rank's rail.
struct Rail {
  Rail(const ipc::GroupShape& s, std::uint32_t rank)
      : layout(s, rank),
        words_layout(s, rank),
        bytes(layout.bytes()),
        words(words_layout.bytes() / 8 + 8),
        base(reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(words.data()) + 63) / 64 * 64)) {
    daemon = std::make_unique<ipc::RailWordsDaemon>(*ipc::RailWordsDaemon::attach(base, words_layout, 1));
    port = std::make_unique<kernels::RailPort>(s, rank, bytes.data(),
                                               *ipc::RailWordsClient::attach(base, words_layout, 1), [] {});
  }
  ipc::RailSegmentLayout layout;
  ipc::RailWordsLayout words_layout;
  std::vector<std::byte> bytes;
  std::vector<std::uint64_t> words;
  std::byte* base;
  std::unique_ptr<ipc::RailWordsDaemon> daemon;
  std::unique_ptr<kernels::RailPort> port;
};

// Memory with a guard on both sides.
struct Guarded {
  explicit Guarded(std::size_t inner) : bytes(inner + 2 * kGuard, kPattern), size(inner) {}
  std::byte* data() { return bytes.data() + kGuard; }
  [[nodiscard]] bool whole() const {
    for (std::size_t i = 0; i < kGuard; ++i) {
      if (bytes[i] != kPattern || bytes[kGuard + size + i] != kPattern) return false;
    }
    return true;
  }
  std::vector<std::byte> bytes;
  std::size_t size;
};

// One dispatch from kHome into domain 0, for one layout.
class Dispatch {
 public:
  explicit Dispatch(ipc::Layout layout)
      : shape_(shape()),
        map_(*kernels::ExpertMap::create(6, {0, 0, 1}, shape_.expert_rank())),
        sender_(shape_, kHome),
        forwarder_(ipc::forwarder(shape_, kHome, 0, 0)),
        receiver_(shape_, forwarder_) {
    const std::int64_t ids[kTokens * 2] = {0, 1, 2, 3, 0, 3, 1, -1, 3, 2};
    kernels::Routing routing;
    routing.ids = ids;
    routing.tokens = kTokens;
    routing.top_k = 2;
    routing.id_pitch = 2;
    kernels::Routing nothing;
    nothing.top_k = 2;
    std::vector<kernels::Plan> plans(3);
    for (std::uint32_t r = 0; r < 3; ++r) EXPECT_TRUE(plans[r].build(r == kHome ? routing : nothing, map_, 1).ok());
    std::vector<const std::uint32_t*> slices;
    for (const auto& plan : plans) slices.push_back(plan.slice(0).data());
    route_.op = 4;
    route_.layout = layout;
    route_.topk = 2;
    EXPECT_TRUE(route_.rank_bases.compute(map_, 0, slices).ok());
    EXPECT_TRUE(route_.expert_bases.compute(map_, 0, slices, 1).ok());
    expected_ = static_cast<std::uint32_t>(plans[kHome].runs(0, 0).size());
    form_.op = 4;
    form_.epoch = 7;
    form_.record = ipc::DispatchRecordLayout(2, 0, kRowBytes);
    form_.topk = 2;
    form_.row_bytes = kRowBytes;
    send(plans[kHome]);
  }

  std::byte* slot() { return receiver_.bytes.data() + receiver_.layout.rx_slot(rx_, 0); }
  [[nodiscard]] std::size_t used_bytes() const { return good_.size(); }
  void restore() { std::memcpy(slot(), good_.data(), good_.size()); }

  // The forwarder's part on the slot as it is; whether every guard is whole is for the caller to ask.
  Result<Step> forward() {
    outputs_.clear();
    std::vector<kernels::Output> outputs;
    for (std::uint32_t l = 0; l < 2; ++l) {
      const std::uint32_t rows = route_.output_rows(l);
      const kernels::RowMeta fields(rows, 2, 0, route_.layout);
      outputs_.emplace_back(Guarded(std::size_t{rows} * kRowBytes), Guarded(fields.bytes()));
      outputs.push_back({outputs_[l].first.data(), outputs_[l].second.data(), fields});
    }
    std::vector<void*> targets;
    kernels::RowWriter writer(map_, 0, route_, outputs, kRowBytes, kernels::StoreMode::temporal, targets);
    const auto& rings = receiver_.port->rings();
    kernels::ForwardRole role(rings.as_forwarder()[0], rx_, expected_, map_);
    kernels::ForwardTokens kept;
    // A port of its own, as its sequences run on.
    kernels::RailPort port(shape_, forwarder_, receiver_.bytes.data(),
                           *ipc::RailWordsClient::attach(receiver_.base, receiver_.words_layout, 1), [] {});
    return role.step(form_, map_, route_, port, writer, &kept);
  }
  [[nodiscard]] bool guards_whole() const {
    for (const auto& [rows, meta] : outputs_) {
      if (!rows.whole() || !meta.whole()) return false;
    }
    return true;
  }

 private:
  void send(const kernels::Plan& plan) {
    const std::vector<std::byte> x(kTokens * kRowBytes, std::byte{0x11});
    kernels::SendRole role(sender_.port->rings().as_home()[0], 0);
    EXPECT_EQ(role.step(form_, plan, {x.data(), kRowBytes, nullptr, 0}, *sender_.port), Step::done);
    const std::byte* const from = sender_.bytes.data() + sender_.layout.tx_slot(0, 0);
    ipc::ChunkHeader header;
    std::memcpy(&header, from, sizeof(header));
    good_.assign(from, from + header.bytes);
    receiver_.daemon->publish_arrived(rx_, 1);
    restore();
  }

  ipc::GroupShape shape_;
  kernels::ExpertMap map_;
  Rail sender_;
  std::uint32_t forwarder_;
  Rail receiver_;
  std::uint32_t rx_ = 0;
  kernels::Route route_;
  ChunkForm form_;
  std::uint32_t expected_ = 0;
  std::vector<std::byte> good_;
  std::vector<std::pair<Guarded, Guarded>> outputs_;
};

class ForwardFuzz : public testing::TestWithParam<ipc::Layout> {};

TEST_P(ForwardFuzz, GarbageChunks) {
  Fuzz fuzz("forwarded chunks", 20000);
  Dispatch dispatch(GetParam());
  const auto whole = dispatch.forward();
  ASSERT_TRUE(whole) << whole.error().message();
  ASSERT_EQ(*whole, Step::done);
  int errors = 0;
  for (int i = 0; i < fuzz.rounds(); ++i) {
    dispatch.restore();
    if (i % 4 == 0) {
      fuzz.damage(dispatch.slot(), dispatch.used_bytes());
    } else {
      fuzz.damage(dispatch.slot() + sizeof(ipc::ChunkHeader), dispatch.used_bytes() - sizeof(ipc::ChunkHeader));
    }
    if (i % 2 == 0) {
      ipc::ChunkHeader header;
      std::memcpy(&header, dispatch.slot(), sizeof(header));
      ipc::seal(header);
      std::memcpy(dispatch.slot(), &header, sizeof(header));
    }
    const auto step = dispatch.forward();
    ASSERT_TRUE(dispatch.guards_whole()) << "round " << i;
    if (step) continue;
    ++errors;
    ASSERT_EQ(step.error().code(), Code::protocol);
  }
  EXPECT_GT(errors, 0);
}

INSTANTIATE_TEST_SUITE_P(Layouts, ForwardFuzz, testing::Values(ipc::Layout::rank, ipc::Layout::expert),
                         [](const auto& i) { return i.param == ipc::Layout::rank ? "rank" : "expert"; });

}  // namespace
}  // namespace railhead::test
