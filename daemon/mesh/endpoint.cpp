#include "daemon/mesh/endpoint.hpp"

#include <arpa/inet.h>

#include <charconv>

namespace railhead::mesh {
namespace {

constexpr std::string_view kScheme = "tcp://";
constexpr std::size_t kLongest = 300;  // a DNS name has at most 253 characters

bool split(std::string_view rest, std::string_view& host, std::string_view& port) {
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos) return false;
  host = rest.substr(0, colon);
  port = rest.substr(colon + 1);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  return !host.empty() && bracketed == (host.find(':') != std::string_view::npos);
}

bool plain(std::string_view host) {
  // A ';' would start the source address of a ZeroMQ connect string, a '/' a path.
  for (const char c : host) {
    if (c <= ' ' || c == ';' || c == '/' || c == '[' || c == ']' || c == 0x7f) return false;
  }
  return true;
}

}  // namespace

std::string Endpoint::text() const {
  const bool v6 = host.find(':') != std::string::npos;
  return std::string(kScheme) + (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

bool Endpoint::is_v4_literal() const {
  in_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1;
}

bool Endpoint::is_loopback() const {
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6{};
  if (::inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return host == "localhost";
}

bool Endpoint::is_wildcard() const {
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return v4.s_addr == INADDR_ANY;
  in6_addr v6{};
  if (::inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_UNSPECIFIED(&v6);
  return host == "*";
}

Result<Endpoint> parse_endpoint(std::string_view text, std::string_view what) {
  std::string_view host;
  std::string_view port;
  unsigned number = 0;
  bool valid = text.size() <= kLongest && text.starts_with(kScheme) && split(text.substr(kScheme.size()), host, port) &&
               plain(host);
  if (valid) {
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
    valid = error == std::errc{} && end == port.data() + port.size() && number <= 65535;
  }
  if (!valid) {
    return fail(Code::invalid_argument,
                std::string(what) + " is '" + std::string(text.substr(0, kLongest)) +
                    "': expected tcp://HOST:PORT, an IPv6 host in brackets, a port of 0..65535");
  }
  return Endpoint{std::string(host), static_cast<std::uint16_t>(number)};
}

}  // namespace railhead::mesh
