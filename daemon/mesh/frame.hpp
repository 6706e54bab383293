// What travels between two daemons' meshes: one fixed header, then a short text or, for data, a second message part.
//
// Header, little endian, 56 bytes: magic u32 | version u16 | kind u8 | need u8 | number u64 | length u64 |
// from 16 bytes | to 16 bytes. Then `length` bytes of text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "daemon/mesh/host_id.hpp"
#include "ipc/status.hpp"

namespace railhead::mesh {

inline constexpr std::uint16_t kMeshProtocol = 1;
inline constexpr std::size_t kMaxFrameText = 1024;

enum class FrameKind : std::uint8_t {
  hello = 1,  // dialler -> listener, first of all: from, to, need, text = own endpoint
  welcome,    // listener -> dialler: from, text = own endpoint
  refuse,     // listener -> dialler: number = code, text = reason; the link is over
  data,       // dialler -> listener, the message is the second part
  ping,       // dialler -> listener, number = stamp
  pong,       // listener -> dialler, number = the same stamp
  need,       // dialler -> listener: I retain you
  idle,       // dialler -> listener: I do not retain you any more
  close,      // dialler -> listener: nothing follows on this link
  closed,     // listener -> dialler: I have read all of it
  bye,        // dialler -> listener: this daemon ends
};

struct Frame {
  FrameKind kind = FrameKind::data;
  std::uint16_t version = kMeshProtocol;
  bool need = false;
  std::uint64_t number = 0;
  HostId from;
  HostId to;
  std::string text;
};

std::string encode_frame(const Frame& frame);

// Of another protocol version's frame only `version` is read; the caller checks it first and names it in its refusal.
// Every version starts with magic and version.
Result<Frame> decode_frame(std::span<const std::byte> bytes);

}  // namespace railhead::mesh
