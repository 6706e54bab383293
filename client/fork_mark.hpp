// Tells a process from the children that it forks, without a system call: the kernel empties the marked page in a
// child.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <new>

#include "ipc/status.hpp"

namespace railhead::client {

// Thread safe. The page stays for the life of the process.
class ForkMark {
 public:
  // Marks this process as the owner of what the library holds.
  Status set() {
    // relaxed: whether it is there is all that matters.
    if (page_.load(std::memory_order_relaxed) != nullptr) return {};
    constexpr std::size_t kBytes = 4096;
    void* const memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return system_status("a page for telling forked children apart", errno);
    if (::madvise(memory, kBytes, MADV_WIPEONFORK) != 0) {
      const int error = errno;
      ::munmap(memory, kBytes);
      return system_status("MADV_WIPEONFORK (Linux 4.14 or newer is needed)", error);
    }
    auto* const page = new (memory) std::atomic<unsigned>(1);
    std::atomic<unsigned>* expected = nullptr;
    // release: who sees the page sees the mark in it. relaxed on failure: another thread was first, ours is not needed.
    if (!page_.compare_exchange_strong(expected, page, std::memory_order_release, std::memory_order_relaxed)) {
      ::munmap(memory, kBytes);
    }
    return {};
  }

  [[nodiscard]] bool in_child() const noexcept {
    // acquire: see set().
    const std::atomic<unsigned>* const page = page_.load(std::memory_order_acquire);
    // relaxed: only the kernel changes it, before this process begins.
    return page != nullptr && page->load(std::memory_order_relaxed) == 0;
  }

 private:
  std::atomic<std::atomic<unsigned>*> page_{nullptr};
};

}  // namespace railhead::client
