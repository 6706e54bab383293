// Keys of the mesh: CURVE (Curve25519), one key pair for the whole cluster.
//
// Every daemon of a cluster holds the same key file. As a server it proves the pair to those who dial; as a client it
// shows the pair's public key, and the gate (key_gate.hpp) admits exactly that key. Who holds the file is a member; who
// does not, is not. The pair gives authentication and encryption of control messages; payload on the rails is not
// encrypted.
//
// The file is TOML. Nobody but its owner may write it, and nobody else read it but the group that the daemon runs as:
// 0600, or 0640 where root owns it and the daemon is a user of its own.
//   public = "40 characters of Z85"
//   secret = "40 characters of Z85"
#pragma once

#include <string>

#include "ipc/status.hpp"

namespace railhead::mesh {

struct MeshKeys {
  std::string public_key;  // Z85, 40 characters
  std::string secret_key;  // Z85, 40 characters
};

// Makes a pair and writes it to `path` (0600). Refuses to overwrite a file: the running cluster may depend on it.
Result<MeshKeys> generate_keys(const std::string& path);

// Reads a key file. Refuses one that others can read (see above), a malformed one, and a pair whose halves do not
// belong together.
Result<MeshKeys> load_keys(const std::string& path);

}  // namespace railhead::mesh
