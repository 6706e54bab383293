// Runs mesh_peer as a child; always reaped.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "daemon/mesh/mesh.hpp"

extern char** environ;

namespace railhead::mesh {

class PeerProcess {
 public:
  explicit PeerProcess(std::vector<std::string> arguments) {
    int in[2];
    int out[2];
    if (::pipe(in) != 0 || ::pipe(out) != 0) throw std::runtime_error("pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    for (const int fd : {in[0], in[1], out[0], out[1]}) posix_spawn_file_actions_addclose(&actions, fd);
    arguments.insert(arguments.begin(), MESH_PEER_PROGRAM);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const int error = ::posix_spawn(&pid_, MESH_PEER_PROGRAM, &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    stdin_ = in[1];
    if (error == 0) read_address(out[0]);
    ::close(out[0]);
    if (error != 0 || address.endpoint.empty()) ADD_FAILURE() << "mesh_peer did not start, error " << error;
  }
  ~PeerProcess() { kill(); }
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  void signal(int number) const { ::kill(pid_, number); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    reap();
  }
  // Lets it end by itself.
  void finish() {
    ::close(stdin_);
    stdin_ = -1;
    reap();
  }

  PeerAddress address;

 private:
  void read_address(int fd) {
    std::string line;
    char c = 0;
    while (::read(fd, &c, 1) == 1 && c != '\n') line += c;
    const std::size_t space = line.find(' ');
    if (space == std::string::npos) return;
    address = {line.substr(0, space), parse_host_id(line.substr(space + 1)).value()};
  }
  void reap() {
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
    if (stdin_ >= 0) ::close(stdin_);
    stdin_ = -1;
  }

  pid_t pid_ = -1;
  int stdin_ = -1;
};

}  // namespace railhead::mesh
