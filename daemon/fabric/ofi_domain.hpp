// What both endpoint types share: fabric, domain, registered memory, the table of outstanding writes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "daemon/fabric/fabric.hpp"
#include "daemon/fabric/ofi_handle.hpp"

namespace railhead::fabric {

class OfiDomain {
 public:
  static Result<std::unique_ptr<OfiDomain>> open(Info info);

  Result<RegionId> register_memory(void* address, std::size_t bytes);
  Result<void> deregister(RegionId region);
  Result<RemoteKey> remote_key(RegionId region) const;

  // A checked source. started() and ended() count the writes that hold it.
  struct Source {
    const std::byte* address = nullptr;
    void* descriptor = nullptr;
  };
  Result<Source> source_of(const Write& write) const;
  void started(RegionId region) { ++regions_.at(region).in_flight; }
  void ended(RegionId region) { --regions_.at(region).in_flight; }

  fi_info* info() const { return info_.get(); }
  fid_fabric* fabric() const { return fabric_.get(); }
  fid_domain* domain() const { return domain_.get(); }
  std::string provider() const { return info_->fabric_attr->prov_name; }
  bool socket_addresses() const;
  std::string format(const void* address, std::size_t bytes) const;
  FabricInfo describe() const;

 private:
  struct Region {
    Fid<fid_mr> handle;
    std::byte* address = nullptr;
    std::size_t bytes = 0;
    std::size_t in_flight = 0;
  };
  struct RegionHash {
    std::size_t operator()(RegionId id) const { return static_cast<std::size_t>(id); }
  };

  OfiDomain() = default;
  bool granted(int mode) const { return (info_->domain_attr->mr_mode & mode) != 0; }

  Info info_;
  Fid<fid_fabric> fabric_;
  Fid<fid_domain> domain_;
  std::unordered_map<RegionId, Region, RegionHash> regions_;
  std::uint32_t next_region_ = 1;
};

}  // namespace railhead::fabric
