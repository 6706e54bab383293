#include "ipc/segment.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string>

#include "ipc/layout/align.hpp"
#include "ipc/memory_headroom.hpp"

namespace railhead::ipc {
namespace {

// Memory is taken in steps with a fresh look at what is free before each, because ranks that start together all see the
// same free memory at first. A step is at most 1/16 of what is free, so that as many at once do not overrun it (two
// processes that took all in one step under one cgroup limit met the OOM killer). A look costs 0.1 ms, 64 MiB 30 ms.
constexpr std::size_t kSmallestStep = 2ULL << 20;  // one huge page
constexpr std::size_t kLargestStep = 64ULL << 20;
constexpr std::size_t kStepShare = 16;

// The kernel's "available" is an estimate: the last 1/32 of it is left alone.
constexpr std::uint64_t kReserveShare = 32;

constexpr std::size_t kMaxBytes = std::numeric_limits<std::size_t>::max() / 4;

std::string quoted(std::string_view name) {
  return "segment '" + std::string(name) + "'";
}

Status out_of_memory(std::string_view name, std::size_t needed, std::uint64_t free, const std::string& by) {
  return {Code::out_of_memory, quoted(name) + " needs " + std::to_string(needed) + " bytes, free " +
                                   std::to_string(free) + " (" + by + "): use smaller limits or free memory"};
}

// Bytes that may still be used, at least `needed - taken`. The message counts what is taken as free, because it will
// be.
Result<std::uint64_t> check_headroom(std::string_view name, std::size_t needed, std::size_t taken) {
  const auto headroom = memory_headroom();
  if (!headroom) return fail(headroom.error());
  const std::uint64_t usable = headroom->free_bytes - headroom->free_bytes / kReserveShare;
  if (needed - taken > usable) return fail(out_of_memory(name, needed, usable + taken, headroom->limited_by));
  return usable;
}

// Beyond the limit the kernel does not refuse: it sends SIGXFSZ, which ends the process.
Result<void> check_file_size(std::string_view name, std::size_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0) return fail(system_status("getrlimit of RLIMIT_FSIZE", errno));
  if (limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur) return {};
  return fail(Code::limit_exceeded, quoted(name) + " needs " + std::to_string(bytes) +
                                        " bytes, the limit of this process for a file is " +
                                        std::to_string(limit.rlim_cur) + " (RLIMIT_FSIZE): raise it with ulimit -f");
}

Status step_failure(std::string_view name, std::size_t needed, const char* call, int error) {
  if (error != ENOMEM && error != ENOSPC && error != EFAULT) return system_status(quoted(name) + ": " + call, error);
  const auto headroom = memory_headroom();
  return out_of_memory(name, needed, headroom ? headroom->free_bytes : 0,
                       headroom ? headroom->limited_by : std::string("unknown"));
}

int fallocate_retrying(int fd, std::size_t offset, std::size_t bytes) {
  int rc = 0;
  do {
    rc = ::fallocate(fd, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  } while (rc != 0 && errno == EINTR);
  return rc == 0 ? 0 : errno;
}

// Enters present pages into our page table; reading is enough where the kernel (before 5.14) cannot be asked.
int enter_pages(std::byte* data, std::size_t bytes, Access access) {
  const int advice = access == Access::read_write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
  int rc = 0;
  do {
    rc = ::madvise(data, bytes, advice);
  } while (rc != 0 && (errno == EINTR || errno == EAGAIN));
  if (rc == 0) return 0;
  if (errno != EINVAL) return errno;
  for (std::size_t at = 0; at < bytes; at += page_bytes())
    static_cast<void>(*static_cast<volatile std::byte*>(data + at));
  return 0;
}

// fallocate first: it answers with an error where a touch would answer with SIGBUS, and both together cost no more than
// populating alone (512 MB: 250 ms against 340-390). Not for huge pages, because fallocate would take small ones.
Result<void> populate(std::string_view name, int fd, std::byte* data, std::size_t bytes, bool huge) {
  std::size_t step = 0;
  for (std::size_t at = 0; at < bytes; at += step) {
    const auto usable = check_headroom(name, bytes, at);
    if (!usable) return fail(usable.error());
    const auto share = std::clamp<std::uint64_t>(*usable / kStepShare, kSmallestStep, kLargestStep);
    step = std::min(static_cast<std::size_t>(share) / kSmallestStep * kSmallestStep, bytes - at);
    if (!huge) {
      if (const int error = fallocate_retrying(fd, at, step))
        return fail(step_failure(name, bytes, "fallocate", error));
    }
    if (const int error = enter_pages(data + at, step, Access::read_write)) {
      return fail(step_failure(name, bytes, "populate", error));
    }
  }
  return {};
}

Result<void> add_seals(int fd, unsigned seals, std::string_view name) {
  if (::fcntl(fd, F_ADD_SEALS, seals) != 0) return fail(system_status(quoted(name) + ": seal", errno));
  return {};
}

std::string seal_names(unsigned seals) {
  std::string names;
  const auto add = [&](unsigned bit, const char* name) {
    if (seals & bit) names += (names.empty() ? "" : "|") + std::string(name);
  };
  add(F_SEAL_SEAL, "SEAL");
  add(F_SEAL_SHRINK, "SHRINK");
  add(F_SEAL_GROW, "GROW");
  add(F_SEAL_WRITE, "WRITE");
  add(F_SEAL_FUTURE_WRITE, "FUTURE_WRITE");
  return names;
}

tl::unexpected<Status> refuse(const std::string& why) {
  return fail(Code::protocol, "passed memory refused: " + why + "; pass a memfd made by the client library");
}

}  // namespace

unsigned size_seals() noexcept {
  return F_SEAL_SHRINK | F_SEAL_GROW;
}
unsigned frozen_seals() noexcept {
  return size_seals() | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
}

std::size_t page_bytes() noexcept {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

Segment::Segment(Segment&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      access_(other.access_) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  Segment taken(std::move(other));
  std::swap(fd_, taken.fd_);
  std::swap(data_, taken.data_);
  std::swap(bytes_, taken.bytes_);
  std::swap(access_, taken.access_);
  return *this;
}

Segment::~Segment() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

Result<Segment> Segment::create(std::string_view name, std::size_t bytes, SegmentOptions options) {
  if (bytes == 0 || bytes > kMaxBytes) {
    return fail(Code::invalid_argument,
                quoted(name) + " of " + std::to_string(bytes) + " bytes: use 1 to " + std::to_string(kMaxBytes));
  }
  const std::size_t rounded = align_up(bytes, page_bytes());
  if (const auto enough = check_headroom(name, rounded, 0); !enough) return fail(enough.error());

  if (const auto allowed = check_file_size(name, rounded); !allowed) return fail(allowed.error());
  UniqueFd fd(::memfd_create(("railhead:" + std::string(name)).c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return fail(system_status(quoted(name) + ": memfd_create", errno));
  if (::ftruncate(fd.get(), static_cast<off_t>(rounded)) != 0) {
    return fail(system_status(quoted(name) + ": ftruncate to " + std::to_string(rounded) + " bytes", errno));
  }
  if (const auto sealed = add_seals(fd.get(), size_seals(), name); !sealed) return fail(sealed.error());

  void* address = ::mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) return fail(system_status(quoted(name) + ": mmap", errno));
  Segment segment(std::move(fd), static_cast<std::byte*>(address), rounded, Access::read_write);
  // Advice: a kernel without huge pages refuses it, which changes nothing.
  if (options.huge_pages) static_cast<void>(::madvise(address, rounded, MADV_HUGEPAGE));
  const auto populated = populate(name, segment.fd(), segment.data(), rounded, options.huge_pages);
  if (!populated) return fail(populated.error());
  return segment;
}

Result<Segment> Segment::map(UniqueFd fd, std::size_t bytes, Access access, Prefault prefaulting) {
  if (const auto good = verify(fd.get(), bytes, size_seals()); !good) return fail(good.error());
  const int protection = access == Access::read_write ? PROT_READ | PROT_WRITE : PROT_READ;
  void* address = ::mmap(nullptr, bytes, protection, MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) {
    return fail(system_status("mapping passed memory of " + std::to_string(bytes) + " bytes", errno));
  }
  Segment segment(std::move(fd), static_cast<std::byte*>(address), bytes, access);
  if (prefaulting == Prefault::yes) {
    if (const auto present = segment.prefault(); !present) return fail(present.error());
  }
  return segment;
}

Result<void> Segment::prefault() const {
  if (const int error = enter_pages(data_, bytes_, access_)) {
    return fail(system_status("prefaulting passed memory of " + std::to_string(bytes_) + " bytes", error));
  }
  return {};
}

Result<void> Segment::verify(int fd, std::size_t expected_bytes, unsigned required_seals) {
  if (expected_bytes == 0 || expected_bytes % page_bytes() != 0) {
    return refuse("it is announced as " + std::to_string(expected_bytes) + " bytes, not whole pages of " +
                  std::to_string(page_bytes()));
  }
  struct stat info {};
  struct statfs filesystem {};
  if (::fstat(fd, &info) != 0 || ::fstatfs(fd, &filesystem) != 0)
    return refuse(system_status("fstat", errno).message());
  const int seals = ::fcntl(fd, F_GET_SEALS);
  // hugetlb memfds have seals too, but a touch of theirs can end in SIGBUS at any time.
  if (!S_ISREG(info.st_mode) || filesystem.f_type != TMPFS_MAGIC || seals < 0) return refuse("it is not a memfd");

  // Seals before sizes: without them the size could change after it was read.
  const unsigned missing = required_seals & ~static_cast<unsigned>(seals);
  if (missing != 0) return refuse("seals missing: " + seal_names(missing));
  if (static_cast<std::size_t>(info.st_size) != expected_bytes) {
    return refuse("it has " + std::to_string(info.st_size) + " bytes, announced as " + std::to_string(expected_bytes));
  }
  const auto present = static_cast<std::size_t>(info.st_blocks) * 512;
  if (present < expected_bytes) {
    return refuse("only " + std::to_string(present) + " of its " + std::to_string(expected_bytes) +
                  " bytes are present");
  }
  return {};
}

Result<void> Segment::freeze_writers() {
  const int seals = ::fcntl(fd_.get(), F_GET_SEALS);
  if (seals < 0) return fail(system_status("freeze of a segment without its descriptor", errno));
  if ((frozen_seals() & ~static_cast<unsigned>(seals)) == 0) return {};
  if (auto added = add_seals(fd_.get(), F_SEAL_FUTURE_WRITE, "freeze"); !added) return added;
  return add_seals(fd_.get(), F_SEAL_SEAL, "freeze");
}

}  // namespace railhead::ipc
