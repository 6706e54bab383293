#include "daemon/fabric/ofi_domain.hpp"

#include <rdma/fi_errno.h>

#include "daemon/fabric/checks.hpp"
#include "daemon/fabric/ofi_address.hpp"
#include "daemon/fabric/ofi_error.hpp"
#include "daemon/fabric/ofi_probe.hpp"

namespace railhead::fabric {
namespace {

constexpr int kKeyAttempts = 4;  // a random key that is taken is a lottery win

}  // namespace

Result<std::unique_ptr<OfiDomain>> OfiDomain::open(Info info) {
  std::unique_ptr<OfiDomain> self(new OfiDomain);
  self->info_ = std::move(info);
  fid_fabric* fabric = nullptr;
  if (auto rc = ofi_check("fi_fabric", fi_fabric(self->info_->fabric_attr, &fabric, nullptr)); !rc) {
    return fail(rc.error());
  }
  self->fabric_.reset(fabric);
  fid_domain* domain = nullptr;
  if (auto rc = ofi_check("fi_domain", fi_domain(fabric, self->info_.get(), &domain, nullptr)); !rc) {
    return fail(rc.error());
  }
  self->domain_.reset(domain);
  return self;
}

Result<RegionId> OfiDomain::register_memory(void* address, std::size_t bytes) {
  if (auto checked = check_region(address, bytes); !checked) return fail(checked.error());
  int rc = -FI_ENOKEY;
  fid_mr* handle = nullptr;
  for (int attempt = 0; rc == -FI_ENOKEY && attempt < kKeyAttempts; ++attempt) {
    std::uint64_t key = 0;
    if (!granted(FI_MR_PROV_KEY)) {
      const auto random = random_key(info_->domain_attr->mr_key_size);
      if (!random) return fail(random.error());
      key = *random;
    }
    rc = fi_mr_reg(domain_.get(), address, bytes, FI_WRITE | FI_REMOTE_WRITE, 0, key, 0, &handle, nullptr);
  }
  if (rc != 0) {
    return fail(ofi_status(rc == -FI_ENOMEM ? Code::out_of_memory : Code::system,
                           "fi_mr_reg of " + std::to_string(bytes) + " bytes (check ulimit -l)", rc));
  }
  const RegionId id{next_region_++};
  regions_[id] = {Fid<fid_mr>(handle), static_cast<std::byte*>(address), bytes, 0};
  return id;
}

Result<void> OfiDomain::deregister(RegionId region) {
  const auto found = regions_.find(region);
  if (found == regions_.end()) return unknown_region(region);
  if (found->second.in_flight > 0) return region_busy(region, found->second.in_flight);
  regions_.erase(found);
  return {};
}

Result<RemoteKey> OfiDomain::remote_key(RegionId region) const {
  const auto found = regions_.find(region);
  if (found == regions_.end()) return unknown_region(region);
  const auto base = reinterpret_cast<std::uintptr_t>(found->second.address);
  return RemoteKey{fi_mr_key(found->second.handle.get()), granted(FI_MR_VIRT_ADDR) ? base : 0};
}

Result<OfiDomain::Source> OfiDomain::source_of(const Write& write) const {
  const auto found = regions_.find(write.local);
  if (found == regions_.end()) return unknown_region(write.local);
  const Region& region = found->second;
  if (auto checked = check_source(write, region.bytes); !checked) return fail(checked.error());
  if (write.bytes > info_->ep_attr->max_msg_size) {
    return fail(Code::invalid_argument, "write of " + std::to_string(write.bytes) + " bytes is above the limit of " +
                                            std::to_string(info_->ep_attr->max_msg_size) + " of " + provider());
  }
  return Source{region.address + write.local_offset, fi_mr_desc(region.handle.get())};
}

bool OfiDomain::socket_addresses() const {
  const std::uint32_t format = info_->addr_format;
  return format == FI_SOCKADDR || format == FI_SOCKADDR_IN || format == FI_SOCKADDR_IN6;
}

std::string OfiDomain::format(const void* address, std::size_t bytes) const {
  return format_address(provider(), address, bytes, socket_addresses());
}

FabricInfo OfiDomain::describe() const {
  FabricInfo text;
  text.provider = provider();
  text.fabric = info_->fabric_attr->name ? info_->fabric_attr->name : "";
  text.domain = info_->domain_attr->name ? info_->domain_attr->name : "";
  text.endpoint = endpoint_name(info_->ep_attr->type);
  text.max_write_bytes = info_->ep_attr->max_msg_size;
  text.write_queue = info_->tx_attr->size;
  text.inject_bytes = info_->tx_attr->inject_size;
  text.virtual_addresses = granted(FI_MR_VIRT_ADDR);
  text.provider_keys = granted(FI_MR_PROV_KEY);
  return text;
}

}  // namespace railhead::fabric
