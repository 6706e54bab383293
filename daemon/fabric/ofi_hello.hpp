// What two fabrics say to each other when they meet: the token, and for RDM endpoints who is speaking.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "daemon/fabric/fabric.hpp"

namespace railhead::fabric {

// "RHF1": changes when one of the messages below does.
inline constexpr std::uint32_t kHelloMagic = 0x31464852;

// Private data of an FI_EP_MSG connect: magic, token.
using HelloBytes = std::array<std::byte, sizeof kHelloMagic + sizeof(Token)>;

inline HelloBytes encode_hello(const Token& token) {
  HelloBytes bytes{};
  std::memcpy(bytes.data(), &kHelloMagic, sizeof kHelloMagic);
  std::memcpy(bytes.data() + sizeof kHelloMagic, token.data(), token.size());
  return bytes;
}

// Nothing when it is not a hello of this version. A provider may pad with zeros at the end.
inline std::optional<Token> decode_hello(const void* data, std::size_t bytes) {
  std::uint32_t magic = 0;
  Token token{};
  if (bytes < sizeof magic + token.size()) return std::nullopt;
  std::memcpy(&magic, data, sizeof magic);
  std::memcpy(token.data(), static_cast<const std::byte*>(data) + sizeof magic, token.size());
  if (magic != kHelloMagic) return std::nullopt;
  return token;
}

// Messages between FI_EP_RDM endpoints, which have no connect of their own.
struct RdmMessage {
  enum class Kind : std::uint32_t { hello = 1, welcome = 2, bye = 3 };
  std::uint32_t magic = kHelloMagic;
  Kind kind = Kind::hello;
  Token token{};
  std::uint32_t tag = 0;  // the receiver of this message marks its writes to the sender with it
  std::uint32_t name_bytes = 0;
  std::array<std::byte, 256> name{};  // hello: the sender's endpoint
};

}  // namespace railhead::fabric
