#include "daemon/proxy/proxy.hpp"

#include "daemon/proxy/engine.hpp"
#include "daemon/proxy/proxy_thread.hpp"

namespace railhead::daemon {

Result<std::unique_ptr<Proxy>> Proxy::start(const ProxyConfig& config, ProxyEvents events) {
  if (config.page == nullptr || config.index >= ipc::kMaxProxies) {
    return fail(Code::invalid_argument, "proxy " + std::to_string(config.index) +
                                            " needs a daemon page, which has room for " +
                                            std::to_string(ipc::kMaxProxies) + " proxies");
  }
  // Ring numbers have 16 bits, and 0 is the control ring.
  if (config.rings_per_peer < 2 || config.rings_per_peer > 65536) {
    return fail(Code::invalid_argument,
                "rings per peer is " + std::to_string(config.rings_per_peer) + ": use 2 to 65536");
  }
  auto fabric = fabric::make_fabric(config.fabric);
  if (!fabric) return fail(fabric.error());
  return rail::ProxyThread::start(config,
                                  std::make_unique<rail::Engine>(std::move(*fabric), config, std::move(events)));
}

}  // namespace railhead::daemon
