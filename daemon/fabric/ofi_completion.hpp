// Reads a completion queue: a completion is a success, a named error, or not there yet.
#pragma once

#include <cstdint>
#include <span>

#include "daemon/fabric/ofi_handle.hpp"
#include "ipc/status.hpp"

namespace railhead::fabric {

struct Completion {
  enum class What : std::uint8_t {
    write,      // context
    immediate,  // data
    send,       // context
    receive,    // context, bytes
    unknown,    // an error that names no operation of ours, or a queue that cannot be read
  };
  What what = What::unknown;
  Status status{};  // ok, or the provider's error by name
  void* context = nullptr;
  std::uint64_t data = 0;
  std::size_t bytes = 0;
};

// Up to out.size() completions; 0 means that none is there yet.
std::size_t read_completions(fid_cq* queue, std::span<Completion> out);

// A completion queue whose descriptor can be waited for.
Result<Fid<fid_cq>> open_completion_queue(fid_domain* domain, std::size_t entries);

// The descriptor of a queue that was opened with FI_WAIT_FD.
Result<int> wait_descriptor(fid* queue);

// Adds a descriptor to an epoll set, for readability.
Result<void> watch(int epoll, int descriptor);

}  // namespace railhead::fabric
