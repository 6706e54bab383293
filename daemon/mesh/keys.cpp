#include "daemon/mesh/keys.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <toml++/toml.h>
#include <unistd.h>
#include <zmq.h>

#include <array>
#include <cerrno>
#include <cstdint>

namespace railhead::mesh {
namespace {

constexpr std::size_t kZ85Length = 40;

// Written under its final name at once: O_EXCL is what keeps two callers from overwriting each other.
Status write_new_file(const std::string& path, const std::string& text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 && errno == EEXIST) {
    return {Code::invalid_usage, "the key file " + path + " exists and is not overwritten: move it away first"};
  }
  if (fd < 0) return system_status("cannot create the key file " + path, errno);
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && ::fsync(fd) == 0;
  const int error = errno;
  ::close(fd);
  if (written) return {};
  ::unlink(path.c_str());
  return system_status("cannot write the key file " + path, error);
}

Status check_mode(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return system_status("cannot read the key file " + path + " (make one with: epctl keygen " + path + ")", errno);
  }
  if ((info.st_mode & 077) != 0) {
    return {Code::permission, "the key file " + path + " can be read or written by others: chmod 600 " + path};
  }
  return {};
}

Status check_pair(const std::string& path, const MeshKeys& keys) {
  std::array<char, kZ85Length + 1> derived{};
  std::array<std::uint8_t, 32> raw{};
  const bool lengths = keys.public_key.size() == kZ85Length && keys.secret_key.size() == kZ85Length;
  if (!lengths || zmq_z85_decode(raw.data(), keys.public_key.c_str()) == nullptr ||
      zmq_z85_decode(raw.data(), keys.secret_key.c_str()) == nullptr) {
    return {Code::invalid_argument, "the key file " + path + " needs public and secret, each 40 characters of Z85"};
  }
  if (zmq_curve_public(derived.data(), keys.secret_key.c_str()) != 0 || keys.public_key != derived.data()) {
    return {Code::invalid_argument, "the key file " + path + " holds two halves that do not belong together"};
  }
  return {};
}

}  // namespace

Result<MeshKeys> generate_keys(const std::string& path) {
  std::array<char, kZ85Length + 1> public_key{};
  std::array<char, kZ85Length + 1> secret_key{};
  if (zmq_curve_keypair(public_key.data(), secret_key.data()) != 0) {
    return fail(Code::unavailable, std::string("cannot make a CURVE key pair: ") + zmq_strerror(zmq_errno()));
  }
  MeshKeys keys{public_key.data(), secret_key.data()};
  // Z85 has neither quotes nor backslashes: a TOML literal string holds it as it is.
  const std::string text =
      "# Railhead mesh keys: the same file on every daemon of the cluster, secret to all others.\npublic = '" +
      keys.public_key + "'\nsecret = '" + keys.secret_key + "'\n";
  if (Status status = write_new_file(path, text); !status.ok()) return fail(std::move(status));
  return keys;
}

Result<MeshKeys> load_keys(const std::string& path) {
  if (Status status = check_mode(path); !status.ok()) return fail(std::move(status));
  MeshKeys keys;
  try {
    const toml::table table = toml::parse_file(path);
    keys.public_key = table["public"].value_or(std::string());
    keys.secret_key = table["secret"].value_or(std::string());
  } catch (const toml::parse_error& error) {
    return fail(Code::invalid_argument, "the key file " + path + " is not TOML: " + std::string(error.description()));
  }
  if (Status status = check_pair(path, keys); !status.ok()) return fail(std::move(status));
  return keys;
}

}  // namespace railhead::mesh
