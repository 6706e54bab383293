// Memory inside an operation for its small tables. Those of one token on two ranks are a few words each, and the heap
// takes longer over one of them than filling it does; what does not fit comes from the heap.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory_resource>

#include "ipc/layout/align.hpp"

namespace railhead::client {

// AddressSanitizer sees an index past the end of a block of the heap, not of a part of an object.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kInlineTables = false;
#else
inline constexpr bool kInlineTables = true;
#endif

// Used by one operation, which it is a part of and outlives the tables of. What is given back is free with the
// operation.
template <std::size_t kBytes>
class InlineMemory final : public std::pmr::memory_resource {
 public:
  InlineMemory() = default;
  InlineMemory(const InlineMemory&) = delete;
  InlineMemory& operator=(const InlineMemory&) = delete;

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (!kInlineTables || alignment > alignof(void*) || bytes > kBytes - used_) {
      return std::pmr::new_delete_resource()->allocate(bytes, alignment);
    }
    std::byte* const at = buffer_.data() + used_;
    used_ += ipc::align_up(bytes, alignof(void*));
    return at;
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    const auto* const at = static_cast<const std::byte*>(memory);
    const std::less<const std::byte*> before;  // a total order, also of addresses elsewhere
    if (!before(at, buffer_.data()) && before(at, buffer_.data() + kBytes)) return;
    std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
  }
  [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  static_assert(kBytes % alignof(void*) == 0);
  std::size_t used_ = 0;
  alignas(void*) std::array<std::byte, kBytes> buffer_;
};

}  // namespace railhead::client
