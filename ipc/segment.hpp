// A sealed, populated memfd and its mapping: the only kind of memory that two processes share here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "ipc/fd.hpp"
#include "ipc/status.hpp"

namespace railhead::ipc {

// Sets of F_SEAL_* bits. Size seals are on every segment from birth; they do not stop hole punching. The write seals
// do: F_SEAL_FUTURE_WRITE refuses punching, new writable mappings, write() and re-opening for writing, and leaves the
// writable mappings that exist alone.
unsigned size_seals() noexcept;
unsigned frozen_seals() noexcept;

struct SegmentOptions {
  bool huge_pages = false;  // advice; the kernel follows it where shmem huge pages are set to `advise` or more
};

enum class Access : std::uint8_t { read_only, read_write };
enum class Prefault : std::uint8_t { no, yes };

// Owns one mapping and, until drop_fd(), the descriptor behind it. Move-only; the mapping ends with the object, the
// memory with the last mapping or descriptor in any process. Not thread safe itself; the memory is what its users make
// it.
class Segment {
 public:
  Segment() noexcept = default;
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();

  // Zeroed memory of `bytes` (rounded up to whole pages), every page present, size sealed, mapped read-write and
  // shared. `name` shows in /proc/PID/maps. Code::out_of_memory names needed and free bytes and leaves nothing behind.
  static Result<Segment> create(std::string_view name, std::size_t bytes, SegmentOptions options = {});

  // Maps memory that somebody else made. Calls verify() with the size seals first, so the mapping cannot shrink under
  // us.
  static Result<Segment> map(UniqueFd fd, std::size_t bytes, Access access, Prefault prefault);

  // For the receiving side of an fd: a memfd of exactly `expected_bytes`, all of it present, with at least these seals.
  // Absent pages are refused because touching them would charge the toucher. Code::protocol says which lie it was.
  static Result<void> verify(int fd, std::size_t expected_bytes, unsigned required_seals);

  // To be called when all its writers have mapped it: adds F_SEAL_FUTURE_WRITE, then F_SEAL_SEAL. Idempotent.
  Result<void> freeze_writers();
  // What Prefault::yes does, later.
  [[nodiscard]] Result<void> prefault() const;

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  // Keeps the mapping only: a peer that maps many segments need not hold as many descriptors.
  void drop_fd() noexcept { fd_.reset(); }

  [[nodiscard]] bool valid() const noexcept { return data_ != nullptr; }
  // Page aligned. Writing through a read-only mapping faults.
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  // How this mapping may be used.
  [[nodiscard]] Access access() const noexcept { return access_; }
  [[nodiscard]] std::span<std::byte> span() const noexcept { return {data_, bytes_}; }

 private:
  Segment(UniqueFd fd, std::byte* data, std::size_t bytes, Access access) noexcept
      : fd_(std::move(fd)), data_(data), bytes_(bytes), access_(access) {}

  UniqueFd fd_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  Access access_ = Access::read_write;
};

// The page size of this machine, bytes.
std::size_t page_bytes() noexcept;

}  // namespace railhead::ipc
