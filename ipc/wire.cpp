#include "ipc/wire.hpp"

#include <zlib.h>

#include <string>
#include <utility>

namespace railhead::ipc {
namespace {

std::uint32_t crc(std::uint32_t seed, const void* data, std::size_t bytes) {
  return static_cast<std::uint32_t>(::crc32_z(seed, static_cast<const Bytef*>(data), bytes));
}

std::uint32_t checksum_of(ChunkHeader header) {
  header.checksum = 0;
  return crc(0, &header, sizeof(header));
}

// The name of a value, or the number that a broken or newer peer wrote there.
template <std::size_t N>
std::string name_in(const char* const (&names)[N], std::uint8_t value) {
  return value < N ? names[value] : std::to_string(value);
}

std::string kind_name(std::uint8_t kind) {
  static constexpr const char* kNames[] = {"none", "dispatch", "combine"};
  return name_in(kNames, kind);
}

std::string layout_name(std::uint8_t layout) {
  static constexpr const char* kNames[] = {"rank", "expert"};
  return name_in(kNames, layout);
}

// In the order of kernels::DataType.
std::string type_name(std::uint8_t type) {
  static constexpr const char* kNames[] = {"u8", "bf16", "fp16", "fp32"};
  return name_in(kNames, type);
}

std::string handle_name(std::uint64_t op) {
  return op == 0 ? "none" : "of op " + std::to_string(op);
}

std::string yes_or_no(int flag) {
  return flag != 0 ? "yes" : "no";
}

}  // namespace

void seal(ChunkHeader& header) {
  header.checksum = checksum_of(header);
}

Result<void> check(const ChunkHeader& h, std::uint32_t slot_bytes) {
  if (h.magic != kChunkMagic || h.version != kWireVersion) {
    return fail(Code::protocol, "chunk with magic " + std::to_string(h.magic) + " version " +
                                    std::to_string(h.version) + ", expected " + std::to_string(kChunkMagic) +
                                    " version " + std::to_string(kWireVersion));
  }
  if (h.checksum != checksum_of(h)) return fail(Code::protocol, "chunk header checksum does not match");
  const std::uint64_t need = sizeof(ChunkHeader) + static_cast<std::uint64_t>(h.records) * h.stride;
  if (h.records == 0 || h.stride == 0 || h.bytes != need || h.bytes > slot_bytes) {
    return fail(Code::protocol, "chunk of " + std::to_string(h.records) + " records of " + std::to_string(h.stride) +
                                    " bytes says " + std::to_string(h.bytes) + " bytes, slot is " +
                                    std::to_string(slot_bytes));
  }
  return {};
}

std::uint32_t header_checksum(const OpHeader& header, const std::uint32_t* slice, std::size_t slice_words) {
  OpHeader copy = header;
  copy.checksum = 0;
  copy.called_ns = 0;
  return crc(crc(0, &copy, sizeof(copy)), slice, slice_words * sizeof(std::uint32_t));
}

std::string disagreement(const OpHeader& a, const OpHeader& b) {
  const auto differ = [](const char* field, const std::string& left, const std::string& right) {
    return std::string(field) + ": " + left + " and " + right;
  };
  if (a.kind != b.kind) return differ("kind", kind_name(a.kind), kind_name(b.kind));
  for (const auto& [name, flag] : {std::pair{"cached", kFlagCached}, std::pair{"weighted", kFlagWeighted}}) {
    if (((a.flags ^ b.flags) & flag) != 0) return differ(name, yes_or_no(a.flags & flag), yes_or_no(b.flags & flag));
  }
  if (a.flags != b.flags) return differ("flags", std::to_string(a.flags), std::to_string(b.flags));
  if (a.handle_op != b.handle_op) return differ("handle", handle_name(a.handle_op), handle_name(b.handle_op));
  if (a.layout != b.layout) return differ("layout", layout_name(a.layout), layout_name(b.layout));
  if (a.element != b.element) return differ("element type", type_name(a.element), type_name(b.element));
  if (a.wire != b.wire) return differ("wire type", type_name(a.wire), type_name(b.wire));
  if (a.align != b.align) return differ("alignment", std::to_string(a.align), std::to_string(b.align));
  if (a.side_bytes != b.side_bytes) {
    return differ("side bytes", std::to_string(a.side_bytes), std::to_string(b.side_bytes));
  }
  return {};
}

}  // namespace railhead::ipc
