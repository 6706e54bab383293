// What an operator can set, with its defaults. key_table.cpp gives each member its name, limits and help.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace railhead::config {

struct FileMode {
  std::uint32_t bits = 0660;
};

struct MeshSection {
  std::string bind = "tcp://127.0.0.1:0";
  std::string advertise;
  std::string key_file;
  bool insecure = false;
  std::int64_t heartbeat_ms = 500;
  std::int64_t timeout_ms = 2000;
};

struct FabricSection {
  std::string provider = "tcp";
  std::string endpoint = "msg";
  std::string bind;
  std::string fault;
};

struct ProxySection {
  std::int64_t threads = 1;
  std::vector<std::int64_t> cpus;
  std::int64_t spin_us = 50;
};

struct LimitsSection {
  std::int64_t sessions = 1024;
  std::int64_t groups = 256;
  std::int64_t ranks = 1024;
  std::int64_t control_bytes = std::int64_t{256} << 20;
  std::int64_t handles = 1024;
};

struct LogSection {
  std::string level = "info";
  std::string target = "auto";
};

// Set by the library when it starts a daemon of its own.
struct PrivateSection {
  std::string key;
  std::int64_t linger_ms = 5000;
};

struct Config {
  std::string socket = "/run/epd/epd.sock";
  FileMode socket_mode;
  std::string socket_group;
  std::vector<std::int64_t> allowed_uids;
  std::string host_id_file;
  std::int64_t slow_after_s = 5;
  std::int64_t join_log_s = 5;
  std::int64_t join_timeout_s = 1800;
  std::int64_t drain_s = 30;
  LogSection log;
  MeshSection mesh;
  FabricSection fabric;
  ProxySection proxy;
  LimitsSection limits;
  PrivateSection private_daemon;
};

}  // namespace railhead::config
