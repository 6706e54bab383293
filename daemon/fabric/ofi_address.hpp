// Endpoint addresses as text "provider:ip:port", and which local address to bind.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ipc/status.hpp"

namespace railhead::fabric {

// Socket addresses become "tcp:127.0.0.1:4000" or "tcp:[::1]:4000"; any other kind "efa:raw:0a1b...".
std::string format_address(const std::string& provider, const void* address, std::size_t bytes, bool is_socket);

// The binary form for fi_connect or fi_av_insert. The text comes from a peer: invalid_argument names what is wrong.
Result<std::vector<std::byte>> parse_address(const std::string& provider, const std::string& text);

// An IP address stays as it is; an interface name becomes its first usable address, IPv4 before IPv6. Empty stays
// empty: the provider chooses.
Result<std::string> resolve_bind(const std::string& bind);

}  // namespace railhead::fabric
