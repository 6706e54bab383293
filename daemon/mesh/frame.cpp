#include "daemon/mesh/frame.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace railhead::mesh {
namespace {

constexpr std::uint32_t kMagic = 0x4d48'5252;  // "RRHM"
constexpr std::size_t kHeaderBytes = 56;

template <class T>
void put(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out += static_cast<char>(static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) >> (8 * i)));
  }
}

template <class T>
T take(std::span<const std::byte>& in) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<std::uint64_t>(in[i]) << (8 * i);
  in = in.subspan(sizeof(T));
  return static_cast<T>(value);
}

HostId take_id(std::span<const std::byte>& in) {
  HostId id;
  std::memcpy(id.bytes.data(), in.data(), id.bytes.size());
  in = in.subspan(id.bytes.size());
  return id;
}

void put_id(std::string& out, const HostId& id) {
  out.append(reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size());
}

}  // namespace

std::string encode_frame(const Frame& frame) {
  const std::string_view text = std::string_view(frame.text).substr(0, std::min(frame.text.size(), kMaxFrameText));
  std::string out;
  out.reserve(kHeaderBytes + text.size());
  put(out, kMagic);
  put(out, frame.version);
  put(out, static_cast<std::uint8_t>(frame.kind));
  put(out, static_cast<std::uint8_t>(frame.need));
  put(out, frame.number);
  put(out, static_cast<std::uint64_t>(text.size()));
  put_id(out, frame.from);
  put_id(out, frame.to);
  out += text;
  return out;
}

Result<Frame> decode_frame(std::span<const std::byte> bytes) {
  const std::size_t size = bytes.size();
  if (size < kHeaderBytes) {
    return fail(Code::protocol, "a mesh frame of " + std::to_string(size) + " bytes is shorter than its header of " +
                                    std::to_string(kHeaderBytes));
  }
  if (take<std::uint32_t>(bytes) != kMagic)
    return fail(Code::protocol, "the other side is not a railhead daemon's mesh");
  Frame frame;
  frame.version = take<std::uint16_t>(bytes);
  if (frame.version != kMeshProtocol) return frame;  // what follows may be laid out differently
  const auto kind = take<std::uint8_t>(bytes);
  frame.kind = static_cast<FrameKind>(kind);
  frame.need = take<std::uint8_t>(bytes) != 0;
  frame.number = take<std::uint64_t>(bytes);
  const auto length = take<std::uint64_t>(bytes);
  frame.from = take_id(bytes);
  frame.to = take_id(bytes);
  if (kind < static_cast<std::uint8_t>(FrameKind::hello) || kind > static_cast<std::uint8_t>(FrameKind::bye)) {
    return fail(Code::protocol, "unknown mesh frame kind " + std::to_string(kind));
  }
  if (length != bytes.size() || length > kMaxFrameText) {
    return fail(Code::protocol, "a mesh frame announces " + std::to_string(length) + " bytes of text and carries " +
                                    std::to_string(bytes.size()) + " (limit " + std::to_string(kMaxFrameText) + ")");
  }
  frame.text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (char& c : frame.text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';  // it may end up in a log line
  }
  return frame;
}

}  // namespace railhead::mesh
