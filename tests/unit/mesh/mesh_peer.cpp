// A daemon's mesh alone in a process that a test can kill or stop: echoes each message to its sender.
// Usage: mesh_peer HEARTBEAT_MS TIMEOUT_MS [BIND [HOSTID]]. Prints "ENDPOINT HOSTID", ends when its standard input
// does.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "daemon/mesh/mesh.hpp"

int main(int argc, char** argv) {
  using namespace railhead::mesh;
  if (argc < 3) return 2;
  MeshConfig config;
  config.host_id = random_host_id().value();
  config.heartbeat = std::chrono::milliseconds(std::atoi(argv[1]));
  config.timeout = std::chrono::milliseconds(std::atoi(argv[2]));
  if (argc > 3) config.bind = argv[3];
  if (argc > 4) config.host_id = parse_host_id(argv[4]).value();

  std::atomic<Mesh*> mesh = nullptr;
  MeshHandlers handlers;
  handlers.on_message = [&mesh](const HostId& from, std::span<const std::byte> message) {
    if (!mesh.load()->send({"", from}, message).ok()) std::_Exit(3);
  };
  auto started = Mesh::start(std::move(config), std::move(handlers));
  if (!started) {
    std::fprintf(stderr, "%s\n", started.error().to_string().c_str());
    return 1;
  }
  mesh = started->get();  // before anybody knows the address
  std::printf("%s %s\n", (*started)->endpoint().c_str(), (*started)->host_id().hex().c_str());
  std::fflush(stdout);
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return 0;
}
