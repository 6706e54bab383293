// The ZAP handler of a keyed mesh: admits exactly the cluster's public key. Polled by the mesh thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <zmq.hpp>

#include "daemon/mesh/keys.hpp"

namespace railhead::mesh {

class KeyGate {
 public:
  // Must exist before the context's first CURVE server binds.
  KeyGate(zmq::context_t& context, const MeshKeys& keys);

  [[nodiscard]] zmq::socket_ref socket() { return socket_; }
  // Answers one waiting request; the text names a caller that was turned away.
  std::optional<std::string> answer();

 private:
  zmq::socket_t socket_;
  std::array<std::uint8_t, 32> admitted_{};
};

}  // namespace railhead::mesh
