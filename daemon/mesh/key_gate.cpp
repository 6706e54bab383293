#include "daemon/mesh/key_gate.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace railhead::mesh {
namespace {

constexpr const char* kZapAddress = "inproc://zeromq.zap.01";  // fixed by ZeroMQ RFC 27

// version | request id | domain | address | identity | mechanism | client key
constexpr std::size_t kZapParts = 7;

}  // namespace

KeyGate::KeyGate(zmq::context_t& context, const MeshKeys& keys) : socket_(context, zmq::socket_type::rep) {
  zmq_z85_decode(admitted_.data(), keys.public_key.c_str());
  socket_.set(zmq::sockopt::linger, 0);
  socket_.bind(kZapAddress);
}

std::optional<std::string> KeyGate::answer() {
  std::vector<zmq::message_t> parts;
  do {
    zmq::message_t part;
    if (!socket_.recv(part, zmq::recv_flags::dontwait)) return std::nullopt;
    parts.push_back(std::move(part));
  } while (parts.back().more());

  const bool complete =
      parts.size() == kZapParts && parts[5].to_string_view() == "CURVE" && parts[6].size() == admitted_.size();
  const bool admitted = complete && std::memcmp(parts[6].data(), admitted_.data(), admitted_.size()) == 0;
  const std::string request = parts.size() > 1 ? parts[1].to_string() : std::string();
  const std::array<std::string, 6> reply = {
      "1.0", request, admitted ? "200" : "400", admitted ? "OK" : "key not admitted", "", ""};
  for (std::size_t i = 0; i < reply.size(); ++i) {
    const auto flags = i + 1 < reply.size() ? zmq::send_flags::sndmore : zmq::send_flags::none;
    socket_.send(zmq::buffer(reply[i]), flags | zmq::send_flags::dontwait);
  }
  if (admitted) return std::nullopt;
  return "a caller from " + (parts.size() > 3 ? parts[3].to_string() : std::string("an unknown address")) +
         " does not hold this cluster's mesh key: every daemon needs the same mesh.key_file";
}

}  // namespace railhead::mesh
