// The rings of one group as the proxy keeps them: its own counters, which no rank can reach.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/fabric/fabric.hpp"
#include "daemon/proxy/ring_numbers.hpp"
#include "daemon/proxy/rx_window.hpp"
#include "ipc/layout/rail_words.hpp"
#include "ipc/layout/rings.hpp"

namespace railhead::daemon::rail {

struct Path;
struct Rail;

enum class Role : std::uint8_t { tx_chunk, tx_header, rx_chunk, rx_header };

// What all have in common. A write's context is the address of its ring; an rx ring writes credits.
struct Ring {
  Role role;
  Path* path = nullptr;
  RingName name;  // chosen by the receiving daemon
};

struct TxRing : Ring {
  Rail* rail = nullptr;
  std::uint32_t index = 0;
  fabric::RemoteKey slots;      // of the peer's rx ring; base = slot 0
  std::uint64_t submitted = 0;  // by the rank
  std::uint64_t posted = 0;     // accepted by the fabric; less while writes are queued
  std::uint64_t granted = 0;
};

struct HeaderTx : Ring {
  Rail* rail = nullptr;
  std::uint32_t index = 0;  // n-th other domain
  fabric::RemoteKey slots;
  std::uint64_t submitted = 0;  // the last operation
  std::uint64_t posted = 0;
  std::uint64_t reported = 0;  // posted and completed locally
};

struct RxRing : Ring {
  // NOLINTNEXTLINE(clang-analyzer-optin.cplusplus.UninitializedObject): it does not see the braces of a base
  explicit RxRing(std::uint32_t ring_slots) : Ring{Role::rx_chunk, nullptr, {}}, window(ring_slots) {}
  Rail* rail = nullptr;
  std::uint32_t index = 0;
  RxWindow window;
  std::uint64_t consumed = 0;   // as the rank said
  std::uint64_t credited = 0;   // as the peer was told, or is being told
  bool crediting = false;       // a credit write is on its way; its source must not change
  std::uint64_t credit_at = 0;  // where its source lies in the group's own memory
};

struct HeaderRx : Ring {
  // NOLINTNEXTLINE(clang-analyzer-optin.cplusplus.UninitializedObject): it does not see the braces of a base
  explicit HeaderRx(std::uint32_t ring_slots) : Ring{Role::rx_header, nullptr, {}}, window(ring_slots) {}
  std::uint16_t rank = 0;
  RxWindow window;
  std::uint64_t next_op = 1;   // to be put on the board
  std::uint64_t slots_at = 0;  // where its slots lie in the group's own memory
  bool waiting = false;        // listed in Group::waiting
};

// One local rank.
struct Rail {
  Rail(ipc::RailWordsDaemon words_view, const ipc::GroupShape& shape, std::uint16_t rank_number)
      : rank(rank_number),
        local(shape.local_of(rank_number)),
        words(words_view),
        rings(shape, rank_number),
        layout(shape, rank_number) {}

  std::uint16_t rank;
  std::uint16_t local;
  ipc::RailWordsDaemon words;
  ipc::RailRings rings;
  ipc::RailSegmentLayout layout;
  fabric::RegionId region{};
  bool registered = false;
  std::vector<TxRing> tx;
  std::vector<RxRing> rx;
  std::vector<HeaderTx> headers;         // by n-th other domain
  std::optional<ipc::RailRequest> held;  // taken from the rank, cannot be posted yet
  std::uint64_t may_take = UINT64_MAX;   // requests; bounded once the group drains
};

}  // namespace railhead::daemon::rail
