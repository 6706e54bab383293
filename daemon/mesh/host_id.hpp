// The identity of a daemon: 128 random bits, never a host name, a rank number or a process id.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ipc/status.hpp"

namespace railhead::mesh {

struct HostId {
  std::array<std::uint8_t, 16> bytes{};

  auto operator<=>(const HostId&) const = default;
  // 32 lower-case hexadecimal digits.
  [[nodiscard]] std::string hex() const;
};

// A fresh identity from the kernel's random source.
Result<HostId> random_host_id();

// The reverse of HostId::hex(). Refuses anything but 32 hexadecimal digits, and the all-zero id.
Result<HostId> parse_host_id(std::string_view text);

// Reads the identity from `path`, or makes one and writes it there (mode 0644). An empty path gives a fresh one each
// time.
Result<HostId> load_or_create_host_id(const std::string& path);

// What load_or_create_host_id would refuse; makes nothing.
Status check_host_id_file(const std::string& path);

struct HostIdHash {
  std::size_t operator()(const HostId& id) const noexcept;
};

}  // namespace railhead::mesh
