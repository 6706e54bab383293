#include "client/unreachable.hpp"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

namespace railhead::client {
namespace {

constexpr const char* kPrivateHelps = "or set RAILHEAD_DAEMON=private";
constexpr std::size_t kNameBytes = 16384;  // of an entry with all its members; without room for it the number is shown

std::string user_name(uid_t uid) {
  std::array<char, kNameBytes> room{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, room.data(), room.size(), &found) == 0 && found != nullptr) return found->pw_name;
  return std::to_string(uid);
}

std::string group_name(gid_t gid) {
  std::array<char, kNameBytes> room{};
  group entry{};
  group* found = nullptr;
  if (::getgrgid_r(gid, &entry, room.data(), room.size(), &found) == 0 && found != nullptr) return found->gr_name;
  return std::to_string(gid);
}

std::string octal(mode_t mode) {
  std::array<char, 8> digits{};
  std::snprintf(digits.data(), digits.size(), "%04o", static_cast<unsigned>(mode & 07777));
  return digits.data();
}

std::string who_may(const struct stat& socket) {
  const std::string group = group_name(socket.st_gid);
  std::string out = "mode " + octal(socket.st_mode) + ", user " + user_name(socket.st_uid) + ", group " + group + ": ";
  if ((socket.st_mode & S_IWGRP) != 0) {
    return out + "members of group " + group + " may; 'usermod -aG " + group + " USER' and a new login admit a user, ";
  }
  return out + "that user alone may; epd's socket_mode and socket_group admit others, ";
}

Status not_permitted(const std::string& path) {
  const std::string uid = "uid " + std::to_string(::geteuid());
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return {Code::permission, uid + " may not look for a daemon at " + path +
                                  ": it may not enter a folder on the way; open that folder to it, " + kPrivateHelps};
  }
  return {Code::permission, uid + " may not connect to the daemon at " + path + " (" + who_may(info) + kPrivateHelps};
}

std::string kind_of(mode_t mode) {
  return S_ISDIR(mode) ? "a folder" : S_ISREG(mode) ? "a plain file" : "no socket";
}

Status nobody_listens(const std::string& path, const std::string& why) {
  return {Code::unavailable, "no daemon listens on " + path + " (" + why + "); start epd, " + kPrivateHelps};
}

Status nothing_there(const std::string& path) {
  struct stat link {};
  const bool dead_link = ::lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode);
  return nobody_listens(path, dead_link ? "a symbolic link to nothing" : "nothing is there");
}

}  // namespace

Status why_unreachable(const std::string& path, int error) {
  struct stat info {};
  // Before the errno: a file without permission to write gives the same one as a socket.
  if (::stat(path.c_str(), &info) == 0 && !S_ISSOCK(info.st_mode)) {
    return {Code::invalid_argument,
            path + " is " + kind_of(info.st_mode) + ", not a daemon's socket; name epd's socket, " + kPrivateHelps};
  }
  switch (error) {
    case EACCES: return not_permitted(path);
    case ENAMETOOLONG:
      return {Code::invalid_argument, "the socket path " + path + " has " + std::to_string(path.size()) +
                                          " bytes, at most " + std::to_string(sizeof(sockaddr_un{}.sun_path) - 1) +
                                          " are possible; use a shorter one"};
    case ENOENT:
    case ENOTDIR: return nothing_there(path);
    case ECONNREFUSED: return nobody_listens(path, "its socket is left over: that daemon has ended");
    case EPROTOTYPE: return nobody_listens(path, "a socket of another kind");
    default: return system_status("connect to the daemon at " + path, error);
  }
}

}  // namespace railhead::client
