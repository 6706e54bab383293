#include "ipc/wire.hpp"

#include <zlib.h>

#include <string>

namespace railhead::ipc {
namespace {

std::uint32_t crc(std::uint32_t seed, const void* data, std::size_t bytes) {
  return static_cast<std::uint32_t>(::crc32_z(seed, static_cast<const Bytef*>(data), bytes));
}

std::uint32_t checksum_of(ChunkHeader header) {
  header.checksum = 0;
  return crc(0, &header, sizeof(header));
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
  const struct {
    const char* field;
    std::uint64_t left, right;
  } fields[] = {
      {"kind", a.kind, b.kind},        {"handle", a.handle_op, b.handle_op},
      {"layout", a.layout, b.layout},  {"element type", a.element, b.element},
      {"wire type", a.wire, b.wire},   {"flags", a.flags, b.flags},
      {"alignment", a.align, b.align}, {"side bytes", a.side_bytes, b.side_bytes},
  };
  for (const auto& f : fields) {
    if (f.left != f.right) {
      return std::string(f.field) + ": " + std::to_string(f.left) + " and " + std::to_string(f.right);
    }
  }
  return {};
}

}  // namespace railhead::ipc
