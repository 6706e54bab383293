// Mesh addresses: "tcp://HOST:PORT" with an IPv4 address, an IPv6 address in brackets, a name, or an interface (bind
// only).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ipc/status.hpp"

namespace railhead::mesh {

struct Endpoint {
  std::string host;        // without brackets
  std::uint16_t port = 0;  // 0: the kernel chooses

  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool is_v4_literal() const;
  // Only what is certain to stay on this host: 127.0.0.0/8, ::1, localhost. A name or an interface is not certain.
  [[nodiscard]] bool is_loopback() const;
  // 0.0.0.0, :: and *: fine to bind, useless to a peer.
  [[nodiscard]] bool is_wildcard() const;
};

// `what` names the value in the error ("mesh.bind").
Result<Endpoint> parse_endpoint(std::string_view text, std::string_view what);

}  // namespace railhead::mesh
