#include "tools/peers/fabric_endpoint.hpp"

#include <netinet/in.h>
#include <rdma/fi_errno.h>

#include <cstring>

namespace railhead::peers {
namespace {

Status fabric_status(const char* what, long code) {
  return {Code::system, std::string(what) + ": " + fi_strerror(static_cast<int>(-code))};
}

// Calls an fi_*_open like function and takes what it opened.
template <class Fid, class Open>
Status take(const char* what, FidPtr<Fid>& into, Open open) {
  Fid* fid = nullptr;
  if (const long code = open(&fid); code != 0) return fabric_status(what, code);
  into.reset(fid);
  return {};
}

std::uint16_t port_of(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

Status FabricEndpoint::open_fabric(const std::string& address, const std::string& service, std::uint64_t flags) {
  const InfoPtr hints(fi_allocinfo());
  hints->caps = FI_MSG | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->ep_attr->type = FI_EP_MSG;
  hints->fabric_attr->prov_name = strdup("tcp");  // freed by fi_freeinfo
  fi_info* info = nullptr;
  long code = fi_getinfo(FI_VERSION(1, 17), address.c_str(), service.c_str(), flags, hints.get(), &info);
  if (code != 0) return fabric_status(("fi_getinfo for tcp at " + address).c_str(), code);
  info_.reset(info);
  Status opened = take("fi_fabric", fabric_, [&](fid_fabric** f) { return fi_fabric(info->fabric_attr, f, nullptr); });
  if (!opened.ok()) return opened;
  fi_eq_attr attributes{};
  attributes.wait_obj = FI_WAIT_UNSPEC;
  return take("fi_eq_open", events_, [&](fid_eq** f) { return fi_eq_open(fabric_.get(), &attributes, f, nullptr); });
}

Status FabricEndpoint::open_endpoint(fi_info* info) {
  Status opened =
      take("fi_domain", domain_, [&](fid_domain** f) { return fi_domain(fabric_.get(), info, f, nullptr); });
  if (!opened.ok()) return opened;
  fi_cq_attr attributes{};
  attributes.format = FI_CQ_FORMAT_DATA;
  attributes.size = 4096;
  attributes.wait_obj = FI_WAIT_NONE;
  opened =
      take("fi_cq_open", completions_, [&](fid_cq** f) { return fi_cq_open(domain_.get(), &attributes, f, nullptr); });
  if (!opened.ok()) return opened;
  constexpr std::uint64_t kAccess = FI_WRITE | FI_REMOTE_WRITE;
  constexpr std::uint64_t kKey = 1;
  opened = take("fi_mr_reg", registration_,
                [&](fid_mr** f) { return fi_mr_reg(domain_.get(), memory_, bytes_, kAccess, 0, kKey, 0, f, nullptr); });
  if (!opened.ok()) return opened;
  opened = take("fi_endpoint", endpoint_, [&](fid_ep** f) { return fi_endpoint(domain_.get(), info, f, nullptr); });
  if (!opened.ok()) return opened;
  long code = fi_ep_bind(endpoint_.get(), &completions_->fid, FI_TRANSMIT | FI_RECV);
  if (code == 0) code = fi_ep_bind(endpoint_.get(), &events_->fid, 0);
  if (code == 0) code = fi_enable(endpoint_.get());
  return code == 0 ? Status() : fabric_status("enable the endpoint", code);
}

Result<std::uint16_t> FabricEndpoint::listen(const std::string& address) {
  if (Status opened = open_fabric(address, "0", FI_SOURCE); !opened.ok()) return fail(opened);
  Status opened = take("fi_passive_ep", passive_,
                       [&](fid_pep** f) { return fi_passive_ep(fabric_.get(), info_.get(), f, nullptr); });
  if (!opened.ok()) return fail(opened);
  long code = fi_pep_bind(passive_.get(), &events_->fid, 0);
  if (code == 0) code = fi_listen(passive_.get());
  sockaddr_storage name{};
  std::size_t length = sizeof name;
  if (code == 0) code = fi_getname(&passive_->fid, &name, &length);
  if (code != 0) return fail(fabric_status(("listen on " + address).c_str(), code));
  return port_of(name);
}

Status FabricEndpoint::accept() {
  fi_eq_cm_entry entry{};
  std::uint32_t event = 0;
  const long got = fi_eq_sread(events_.get(), &event, &entry, sizeof entry, -1, 0);
  if (got < 0) return fabric_status("wait for the peer's connection", got);
  if (event != FI_CONNREQ) return {Code::protocol, "expected a connection request, got event " + std::to_string(event)};
  const InfoPtr request(entry.info);
  if (Status opened = open_endpoint(request.get()); !opened.ok()) return opened;
  if (const long code = fi_accept(endpoint_.get(), nullptr, 0); code != 0) return fabric_status("fi_accept", code);
  return wait_connected();
}

Status FabricEndpoint::connect(const std::string& address, std::uint16_t port) {
  if (Status opened = open_fabric(address, std::to_string(port), 0); !opened.ok()) return opened;
  if (Status opened = open_endpoint(info_.get()); !opened.ok()) return opened;
  const long code = fi_connect(endpoint_.get(), info_->dest_addr, nullptr, 0);
  return code == 0 ? wait_connected() : fabric_status("fi_connect", code);
}

Status FabricEndpoint::wait_connected() {
  fi_eq_cm_entry entry{};
  std::uint32_t event = 0;
  long got = -FI_EAGAIN;
  while (got == -FI_EAGAIN) {
    if (Status polled = poll(); !polled.ok()) return polled;  // the provider progresses only when it is asked
    got = fi_eq_read(events_.get(), &event, &entry, sizeof entry, 0);
  }
  if (got == -FI_EAVAIL) {
    fi_eq_err_entry error{};
    fi_eq_readerr(events_.get(), &error, 0);
    return fabric_status("connect", -error.err);
  }
  if (got < 0) return fabric_status("connect", got);
  if (event != FI_CONNECTED) return {Code::protocol, "expected FI_CONNECTED, got event " + std::to_string(event)};
  return {};
}

RemoteMemory FabricEndpoint::own_memory() const {
  const bool virtual_addresses = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  return {virtual_addresses ? reinterpret_cast<std::uint64_t>(memory_) : 0, fi_mr_key(registration_.get())};
}

Status FabricEndpoint::write(std::size_t local_offset, std::size_t remote_offset, std::size_t bytes,
                             std::uint64_t data) {
  void* descriptor = fi_mr_desc(registration_.get());
  iovec local{memory_ + local_offset, bytes};
  fi_rma_iov remote{peer_.address + remote_offset, bytes, peer_.key};
  fi_msg_rma message{};
  message.msg_iov = &local;
  message.desc = &descriptor;
  message.iov_count = 1;
  message.rma_iov = &remote;
  message.rma_iov_count = 1;
  message.data = data;
  while (true) {
    const ssize_t code = fi_writemsg(endpoint_.get(), &message, FI_REMOTE_CQ_DATA | FI_COMPLETION);
    if (code == 0) return {};
    if (code != -FI_EAGAIN) return fabric_status("fi_writemsg", code);
    if (Status polled = poll(); !polled.ok()) return polled;
  }
}

Status FabricEndpoint::poll() {
  fi_cq_data_entry entries[32];
  const ssize_t got = fi_cq_read(completions_.get(), entries, std::size(entries));
  if (got == -FI_EAGAIN) return {};
  if (got == -FI_EAVAIL) {
    fi_cq_err_entry error{};
    fi_cq_readerr(completions_.get(), &error, 0);
    return fabric_status("a write failed", -error.err);
  }
  if (got < 0) return fabric_status("fi_cq_read", got);
  for (ssize_t i = 0; i < got; ++i) {
    if ((entries[i].flags & FI_REMOTE_CQ_DATA) != 0) {
      ++arrived_;
    } else {
      ++completed_;
    }
  }
  return {};
}

}  // namespace railhead::peers
