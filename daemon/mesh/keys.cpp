#include "daemon/mesh/keys.hpp"

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <toml++/toml.h>
#include <unistd.h>
#include <zmq.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "daemon/read_text.hpp"
#include "ipc/fd.hpp"

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

// Its number where it has no name.
std::string group_name(gid_t gid) {
  std::array<char, 16384> buffer;
  group entry{};
  group* found = nullptr;
  if (::getgrgid_r(gid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    return std::to_string(gid);
  }
  return found->gr_name;
}

// How the daemon's group comes to read the file; epd seldom runs as the user that made it.
std::string let_in(const std::string& path) {
  return "chgrp " + group_name(::getegid()) + " " + path + " && chmod 640 " + path;
}

Status cannot_open(const std::string& path, int error) {
  if (error == ENOENT) {
    return system_status("cannot read the key file " + path + " (make one with: epctl keygen " + path + ")", error);
  }
  Status plain = system_status("cannot read the key file " + path, error);
  if (error != EACCES) return plain;
  return {Code::permission, plain.message() + ": this process is user " + std::to_string(::geteuid()) + ", group " +
                                group_name(::getegid()) + "; " + let_in(path) +
                                ", or chown it to the user that epd runs as; the folder must let it in as well"};
}

Status check_mode(const std::string& path, int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return system_status("cannot read the key file " + path, errno);
  if ((info.st_mode & 037) != 0) {
    return {Code::permission,
            "the key file " + path + " can be read or written by others: chmod 600 " + path + ", or " + let_in(path)};
  }
  if ((info.st_mode & 040) != 0 && info.st_gid != ::getegid()) {
    return {Code::permission, "the key file " + path + " can be read by the group " + group_name(info.st_gid) +
                                  ", which is not this process's: chmod 600 " + path + ", or " + let_in(path)};
  }
  return {};
}

Result<std::string> read_secret(const std::string& path) {
  const ipc::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail(cannot_open(path, errno));
  if (Status status = check_mode(path, fd.get()); !status.ok()) return fail(std::move(status));
  return daemon::read_text(fd.get(), "cannot read the key file " + path);
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
  const auto text = read_secret(path);
  if (!text) return fail(text.error());
  MeshKeys keys;
  try {
    const toml::table table = toml::parse(*text);
    keys.public_key = table["public"].value_or(std::string());
    keys.secret_key = table["secret"].value_or(std::string());
  } catch (const toml::parse_error& error) {
    return fail(Code::invalid_argument, "the key file " + path + " is not TOML: " + std::string(error.description()));
  }
  if (Status status = check_pair(path, keys); !status.ok()) return fail(std::move(status));
  return keys;
}

}  // namespace railhead::mesh
