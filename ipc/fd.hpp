// Ownership of one file descriptor.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "ipc/status.hpp"

namespace railhead::ipc {

// Move-only; closes on destruction. -1 means empty. Not thread safe, like any value.
class UniqueFd {
 public:
  UniqueFd() noexcept = default;
  explicit UniqueFd(int fd) noexcept : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] bool valid() const noexcept { return fd_ >= 0; }
  explicit operator bool() const noexcept { return valid(); }

  // Gives the descriptor up: the caller closes it.
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }

  // EINTR from close() is not retried: on Linux the descriptor is gone by then, and its number may be somebody else's.
  void reset(int fd = -1) noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

  // A second descriptor of the same open file, close-on-exec. Code::system when the process has no descriptor left.
  [[nodiscard]] Result<UniqueFd> dup() const {
    const int copy = ::fcntl(fd_, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return fail(system_status("dup of descriptor " + std::to_string(fd_), errno));
    return UniqueFd(copy);
  }

 private:
  int fd_ = -1;
};

}  // namespace railhead::ipc
