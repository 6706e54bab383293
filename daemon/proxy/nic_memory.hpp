// Zeroed memory of the daemon's own that a NIC reads and writes: mapped and registered as one.
#pragma once

#include <cstddef>
#include <utility>

#include "daemon/fabric/fabric.hpp"

namespace railhead::daemon::rail {

// Withdraws the registration when it goes; the owner sees to it that nobody writes any more. The fabric outlives it.
class NicMemory {
 public:
  NicMemory() = default;
  static Result<NicMemory> create(fabric::Fabric& fabric, std::size_t bytes);
  NicMemory(NicMemory&& other) noexcept { swap(other); }
  NicMemory& operator=(NicMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  NicMemory(const NicMemory&) = delete;
  NicMemory& operator=(const NicMemory&) = delete;
  ~NicMemory();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] fabric::RegionId region() const noexcept { return region_; }
  [[nodiscard]] fabric::RemoteKey remote() const noexcept { return remote_; }

 private:
  void swap(NicMemory& other) noexcept {
    std::swap(fabric_, other.fabric_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(region_, other.region_);
    std::swap(remote_, other.remote_);
  }

  fabric::Fabric* fabric_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  fabric::RegionId region_{};
  fabric::RemoteKey remote_;
};

}  // namespace railhead::daemon::rail
