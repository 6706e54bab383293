// The handles of one group: how many live, and who ended the routing of one. Under the group lock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/handle.hpp"
#include "ipc/status.hpp"

namespace railhead::client {

class HandleList {
 public:
  explicit HandleList(std::uint32_t most) : most_(most) {}

  // limit_exceeded when as many live as there can be.
  [[nodiscard]] Status full() const {
    if (live_ < most_) return {};
    return {Code::limit_exceeded,
            std::to_string(live_) + " handles live, max_handles is " + std::to_string(most_) + ": release some"};
  }
  // Before a dispatch has its number: its handle's place, so that add() cannot fail.
  void make_room() {
    if (handles_.size() < handles_.capacity()) return;
    std::erase_if(handles_, [](const Entry& entry) { return entry.handle.expired(); });
    handles_.reserve(2 * handles_.size() + 1);
  }
  // The handle that its dispatch makes; it lives until release().
  void add(std::uint64_t op, const std::shared_ptr<Handle>& handle) noexcept {
    handles_.push_back({op, handle});
    ++live_;
  }
  // No more often than add(), whatever name a caller made up.
  void release() noexcept {
    if (live_ != 0) --live_;
  }

  // Another rank released the handle of dispatch `op`.
  void ended(std::uint64_t op, std::uint32_t by) noexcept {
    for (const Entry& entry : handles_) {
      if (entry.op != op) continue;
      if (const auto handle = entry.handle.lock()) handle->ended_by = by;
    }
  }

 private:
  struct Entry {
    std::uint64_t op;
    std::weak_ptr<Handle> handle;
  };

  std::uint32_t most_;
  std::uint32_t live_ = 0;
  std::vector<Entry> handles_;  // released ones too, while something uses them
};

}  // namespace railhead::client
