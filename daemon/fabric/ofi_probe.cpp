#include "daemon/fabric/ofi_probe.hpp"

#include <cstring>
#include <set>

#include "daemon/fabric/ofi_address.hpp"
#include "daemon/fabric/ofi_error.hpp"

namespace railhead::fabric {
namespace {

constexpr std::uint32_t kApi = FI_VERSION(1, 15);
constexpr std::uint64_t kCaps = FI_MSG | FI_RMA;
constexpr std::uint64_t kModes = FI_CONTEXT | FI_CONTEXT2;
// What is asked for; providers take away what they do not need (tcp needs none of it), and the code follows.
constexpr int kMemoryModes = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;

Info make_hints(const std::string& provider, fi_ep_type type) {
  Info hints(fi_allocinfo());
  if (!hints) return hints;
  hints->caps = kCaps;
  hints->mode = kModes;
  hints->ep_attr->type = type;
  hints->domain_attr->mr_mode = kMemoryModes;
  // One thread per instance: the provider may leave out its locks.
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  // fi_freeinfo frees it.
  if (!provider.empty()) hints->fabric_attr->prov_name = ::strdup(provider.c_str());
  return hints;
}

// Empty when it can be used.
std::string refusal(const fi_info& info, fi_ep_type type, std::size_t data_bytes) {
  const std::uint64_t needed = FI_MSG | FI_RMA;
  if (info.ep_attr->type != type) return std::string("is of type ") + endpoint_name(info.ep_attr->type);
  if ((info.caps & needed) != needed) return "has no RMA";
  if (info.domain_attr->cq_data_size < data_bytes) {
    return "carries " + std::to_string(info.domain_attr->cq_data_size) + " bytes with a write, needed are " +
           std::to_string(data_bytes);
  }
  if (info.mode & ~kModes) return "asks for a mode that is not supported here";
  return {};
}

std::string describe_all(const FabricConfig& config, fi_ep_type type, std::size_t data_bytes) {
  fi_info* list = nullptr;
  if (const int rc = fi_getinfo(kApi, nullptr, nullptr, 0, nullptr, &list); rc != 0) {
    return "no provider at all: " + ofi_error_text(rc);
  }
  const Info owner(list);
  std::set<std::string> lines;
  for (const fi_info* info = list; info != nullptr; info = info->next) {
    std::string why = refusal(*info, type, data_bytes);
    if (config.provider != info->fabric_attr->prov_name) {
      why = why.empty() ? "not asked for, would do" : "not asked for, " + why;
    }
    if (why.empty()) why = config.bind.empty() ? "does not give what was asked" : "does not offer " + config.bind;
    lines.insert(std::string(info->fabric_attr->prov_name) + " (" + endpoint_name(info->ep_attr->type) + "): " + why);
  }
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "; ") + line;
  return text;
}

}  // namespace

const char* endpoint_name(fi_ep_type type) {
  switch (type) {
    case FI_EP_MSG: return "msg";
    case FI_EP_RDM: return "rdm";
    case FI_EP_DGRAM: return "dgram";
    default: return "unknown";
  }
}

Result<Info> probe_provider(const FabricConfig& config, fi_ep_type type, std::size_t data_bytes) {
  const auto bind = resolve_bind(config.bind);
  if (!bind) return fail(bind.error());
  const Info hints = make_hints(config.provider, type);
  if (!hints) return fail(Code::out_of_memory, "fi_allocinfo for the fabric hints");
  const std::string port = std::to_string(config.port);
  const char* node = bind->empty() ? nullptr : bind->c_str();
  fi_info* list = nullptr;
  const int rc = fi_getinfo(kApi, node, port.c_str(), FI_SOURCE | (node ? FI_NUMERICHOST : 0), hints.get(), &list);
  const Info owner(list);
  for (const fi_info* info = rc == 0 ? list : nullptr; info != nullptr; info = info->next) {
    if (refusal(*info, type, data_bytes).empty()) return Info(fi_dupinfo(info));
  }
  return fail(Code::unavailable, "fabric provider '" + config.provider + "' with endpoint " + endpoint_name(type) +
                                     (node ? " on " + *bind : std::string()) + " cannot be used: " +
                                     (rc != 0 ? ofi_error_text(rc) : "every candidate was refused") +
                                     "; probed: " + describe_all(config, type, data_bytes));
}

}  // namespace railhead::fabric
