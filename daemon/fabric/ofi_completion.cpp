#include "daemon/fabric/ofi_completion.hpp"

#include <rdma/fi_errno.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "daemon/fabric/ofi_error.hpp"

namespace railhead::fabric {
namespace {

Completion::What classify(std::uint64_t flags) {
  if (flags & FI_WRITE) return Completion::What::write;
  if (flags & FI_REMOTE_WRITE) return Completion::What::immediate;
  if (flags & FI_SEND) return Completion::What::send;
  if (flags & FI_RECV) return Completion::What::receive;
  return Completion::What::unknown;
}

Completion read_error(fid_cq* queue) {
  fi_cq_err_entry entry{};
  if (fi_cq_readerr(queue, &entry, 0) != 1) return {.status = {Code::internal, "the fabric's error queue is empty"}};
  return {.what = classify(entry.flags),
          .status = ofi_status(Code::peer_lost, "the provider reported", entry.err),
          .context = entry.op_context,
          .data = entry.data,
          .bytes = entry.len};
}

}  // namespace

std::size_t read_completions(fid_cq* queue, std::span<Completion> out) {
  std::array<fi_cq_data_entry, 16> entries;
  const ssize_t count = fi_cq_read(queue, entries.data(), std::min(entries.size(), out.size()));
  if (count == -FI_EAGAIN || out.empty()) return 0;
  if (count == -FI_EAVAIL) {
    out[0] = read_error(queue);
    return 1;
  }
  if (count < 0) {
    out[0] = {.status = ofi_status(Code::peer_lost, "fi_cq_read", static_cast<int>(count))};
    return 1;
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const fi_cq_data_entry& entry = entries[i];
    out[i] = {.what = classify(entry.flags),
              .status = {},
              .context = entry.op_context,
              .data = entry.data,
              .bytes = entry.len};
  }
  return static_cast<std::size_t>(count);
}

Result<Fid<fid_cq>> open_completion_queue(fid_domain* domain, std::size_t entries) {
  fi_cq_attr attributes{};
  attributes.size = entries;
  attributes.format = FI_CQ_FORMAT_DATA;
  attributes.wait_obj = FI_WAIT_FD;
  fid_cq* queue = nullptr;
  if (auto rc = ofi_check("fi_cq_open", fi_cq_open(domain, &attributes, &queue, nullptr)); !rc) return fail(rc.error());
  return Fid<fid_cq>(queue);
}

Result<int> wait_descriptor(fid* queue) {
  int descriptor = -1;
  if (auto rc = ofi_check("fi_control for a wait descriptor", fi_control(queue, FI_GETWAIT, &descriptor)); !rc) {
    return fail(rc.error());
  }
  return descriptor;
}

Result<void> watch(int epoll, int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0) return {};
  return fail(system_status("epoll_ctl for a fabric descriptor", errno));
}

}  // namespace railhead::fabric
