#include "daemon/fabric/ofi_address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

namespace railhead::fabric {
namespace {

constexpr std::string_view kRaw = "raw:";

std::string ip_text(int family, const void* ip) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  return ::inet_ntop(family, ip, text.data(), text.size()) ? text.data() : "";
}

std::string to_hex(const unsigned char* bytes, std::size_t count) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

template <class T>
std::vector<std::byte> bytes_of(const T& value) {
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

tl::unexpected<Status> bad_address(const std::string& text, const std::string& why) {
  return fail(Code::invalid_argument, "peer address '" + text + "' " + why);
}

Result<std::vector<std::byte>> parse_raw(const std::string& text, std::string_view hex) {
  std::vector<std::byte> bytes;
  if (hex.empty() || hex.size() % 2 != 0 || hex.size() > 1024) return bad_address(text, "has a bad length");
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(hex.data() + i, hex.data() + i + 2, value, 16);
    if (error != std::errc() || end != hex.data() + i + 2) return bad_address(text, "is not hexadecimal");
    bytes.push_back(static_cast<std::byte>(value));
  }
  return bytes;
}

Result<std::vector<std::byte>> parse_socket(const std::string& text, std::string_view rest) {
  const auto colon = rest.rfind(':');
  if (colon == std::string_view::npos) return bad_address(text, "has no port");
  const std::string_view port_text = rest.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(port_text.data(), port_text.data() + port_text.size(), port);
  if (error != std::errc() || end != port_text.data() + port_text.size() || port == 0) {
    return bad_address(text, "has no port from 1 to 65535");
  }
  std::string ip(rest.substr(0, colon));
  if (ip.size() > 2 && ip.front() == '[' && ip.back() == ']') {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    ip = ip.substr(1, ip.size() - 2);
    if (::inet_pton(AF_INET6, ip.c_str(), &address.sin6_addr) != 1) return bad_address(text, "has no IPv6 address");
    return bytes_of(address);
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (::inet_pton(AF_INET, ip.c_str(), &address.sin_addr) != 1) return bad_address(text, "has no IPv4 address");
  return bytes_of(address);
}

// Empty for a family that cannot be bound. IPv6 link-local addresses need a scope, which peers cannot use.
std::string usable_ip(const sockaddr* address, int family) {
  if (address == nullptr || address->sa_family != family) return {};
  if (family == AF_INET) return ip_text(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr);
  const auto& ip = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  return IN6_IS_ADDR_LINKLOCAL(&ip) ? std::string() : ip_text(AF_INET6, &ip);
}

}  // namespace

std::string format_address(const std::string& provider, const void* address, std::size_t bytes, bool is_socket) {
  if (is_socket && bytes >= sizeof(sockaddr_in)) {
    sockaddr_in6 any{};
    std::memcpy(&any, address, std::min(bytes, sizeof any));
    if (any.sin6_family == AF_INET6) {
      return provider + ":[" + ip_text(AF_INET6, &any.sin6_addr) + "]:" + std::to_string(ntohs(any.sin6_port));
    }
    sockaddr_in four{};
    std::memcpy(&four, address, sizeof four);
    return provider + ":" + ip_text(AF_INET, &four.sin_addr) + ":" + std::to_string(ntohs(four.sin_port));
  }
  return provider + ":" + std::string(kRaw) + to_hex(static_cast<const unsigned char*>(address), bytes);
}

Result<std::vector<std::byte>> parse_address(const std::string& provider, const std::string& text) {
  if (!text.starts_with(provider + ":")) {
    return bad_address(text, "is not of provider " + provider + ": set the same fabric provider on both sides");
  }
  const std::string_view rest = std::string_view(text).substr(provider.size() + 1);
  if (rest.starts_with(kRaw)) return parse_raw(text, rest.substr(kRaw.size()));
  return parse_socket(text, rest);
}

Result<std::string> resolve_bind(const std::string& bind) {
  in6_addr ip{};
  if (bind.empty() || ::inet_pton(AF_INET, bind.c_str(), &ip) == 1 || ::inet_pton(AF_INET6, bind.c_str(), &ip) == 1) {
    return bind;
  }
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return fail(system_status("getifaddrs for the bind address", errno));
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
      if (bind != entry->ifa_name) continue;
      if (auto text = usable_ip(entry->ifa_addr, family); !text.empty()) return text;
    }
  }
  return fail(Code::invalid_argument, "bind address '" + bind + "' is neither an IP address nor an interface with one");
}

}  // namespace railhead::fabric
