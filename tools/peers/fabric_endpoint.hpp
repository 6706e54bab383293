// One connected libfabric FI_EP_MSG endpoint over tcp: writes with remote CQ data, and counts of what completed.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "ipc/status.hpp"

namespace railhead::peers {

template <class Fid>
struct FidCloser {
  void operator()(Fid* fid) const { fi_close(&fid->fid); }
};
template <class Fid>
using FidPtr = std::unique_ptr<Fid, FidCloser<Fid>>;

struct InfoFreer {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using InfoPtr = std::unique_ptr<fi_info, InfoFreer>;

// What the other side must know to write here.
struct RemoteMemory {
  std::uint64_t address = 0;
  std::uint64_t key = 0;
};

// One thread. Waits poll and have no deadline of their own: the process has one (end_after).
class FabricEndpoint {
 public:
  // `memory` (bytes) is what peers write into and writes are taken from; it outlives the endpoint.
  FabricEndpoint(std::byte* memory, std::size_t bytes) : memory_(memory), bytes_(bytes) {}

  // Passive side: listen() returns the port, accept() waits for the one peer.
  Result<std::uint16_t> listen(const std::string& address);
  Status accept();
  // Active side.
  Status connect(const std::string& address, std::uint16_t port);

  [[nodiscard]] RemoteMemory own_memory() const;
  void set_peer_memory(const RemoteMemory& peer) { peer_ = peer; }

  // Posts one write with remote CQ data; polls while the provider's queue is full.
  Status write(std::size_t local_offset, std::size_t remote_offset, std::size_t bytes, std::uint64_t data);
  // Reads completions into the counters.
  Status poll();

  [[nodiscard]] std::uint64_t completed() const { return completed_; }  // own writes
  [[nodiscard]] std::uint64_t arrived() const { return arrived_; }      // the peer's

 private:
  Status open_fabric(const std::string& address, const std::string& service, std::uint64_t flags);
  Status open_endpoint(fi_info* info);
  Status wait_connected();

  std::byte* memory_;
  std::size_t bytes_;
  RemoteMemory peer_;
  std::uint64_t completed_ = 0;
  std::uint64_t arrived_ = 0;
  // In order of opening; destroyed in reverse.
  InfoPtr info_;
  FidPtr<fid_fabric> fabric_;
  FidPtr<fid_eq> events_;
  FidPtr<fid_pep> passive_;
  FidPtr<fid_domain> domain_;
  FidPtr<fid_cq> completions_;
  FidPtr<fid_mr> registration_;
  FidPtr<fid_ep> endpoint_;
};

}  // namespace railhead::peers
