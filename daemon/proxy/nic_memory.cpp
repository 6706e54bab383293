#include "daemon/proxy/nic_memory.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <string>

namespace railhead::daemon::rail {

Result<NicMemory> NicMemory::create(fabric::Fabric& fabric, std::size_t bytes) {
  void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (data == MAP_FAILED) {
    return fail(system_status("mapping " + std::to_string(bytes) + " bytes for the NIC", errno));
  }
  NicMemory memory;
  memory.data_ = static_cast<std::byte*>(data);
  memory.bytes_ = bytes;
  const auto region = fabric.register_memory(data, bytes);
  if (!region) return fail(region.error());
  memory.fabric_ = &fabric;
  memory.region_ = *region;
  const auto remote = fabric.remote_key(*region);
  if (!remote) return fail(remote.error());
  memory.remote_ = *remote;
  return memory;
}

NicMemory::~NicMemory() {
  if (data_ == nullptr) return;
  // Still in use only when the whole proxy ends: the pages must then outlive the fabric, which is about to go too.
  if (fabric_ != nullptr && !fabric_->deregister(region_)) return;
  ::munmap(data_, bytes_);
}

}  // namespace railhead::daemon::rail
