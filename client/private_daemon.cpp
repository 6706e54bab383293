// Starting a private daemon. The lock is a file lock, so it ends with its holder, however that goes.
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <vector>

#include "client/daemon_choice.hpp"
#include "ipc/fd.hpp"

namespace railhead::client {
namespace {

namespace fs = std::filesystem;

// A directory that is ours alone: refused when somebody else owns it or could write there.
Result<std::string> private_directory() {
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  std::string base = runtime != nullptr && *runtime != 0 ? runtime : "/tmp";
  std::string path = base + "/railhead-" + std::to_string(::geteuid());
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return fail(system_status("mkdir " + path, errno));
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return fail(system_status("stat " + path, errno));
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 077) != 0) {
    return fail(Code::permission,
                path + " is not a directory of this user alone (mode 0700); remove it or set XDG_RUNTIME_DIR");
  }
  return path;
}

// Job and network namespace: ranks that differ in either must not share a daemon.
std::string key_of(const std::string& job) {
  struct stat net {};
  (void)::stat("/proc/self/ns/net", &net);
  std::string key;
  for (const char c : job) key += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return (key.empty() ? "default" : key.substr(0, 40)) + "-" + std::to_string(net.st_ino);
}

Result<void> lock(const ipc::UniqueFd& file, ipc::Deadline deadline) {
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return fail(system_status("lock of the private daemon", errno));
    if (deadline.expired()) {
      return fail(Code::timeout, "another process holds the lock of the private daemon and did not finish in time");
    }
    ::poll(nullptr, 0, 10);
  }
  return {};
}

// The bin beside the library's folder, of an installation (PREFIX/lib, PREFIX/lib/TRIPLET) or a build tree. No folder
// further up: others than the library's owner may write there.
std::vector<fs::path> beside_the_library() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&choose_daemon), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code ignored;
  const fs::path folder = fs::weakly_canonical(info.dli_fname, ignored).parent_path();
  const fs::path above = folder.parent_path();
  std::vector<fs::path> out{above / "bin" / "epd"};
  if (above.filename() == "lib") out.push_back(above.parent_path() / "bin" / "epd");
  return out;
}

std::vector<fs::path> on_the_path(const std::string& program) {
  std::vector<fs::path> out;
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    out.push_back(fs::path(folder.empty() ? "." : folder) / program);
  }
  return out;
}

// RAILHEAD_EPD, else beside the library, else on the PATH. Looked at here: a shell that finds none says so in a log.
Result<std::string> find_epd() {
  const char* const set = std::getenv("RAILHEAD_EPD");
  const std::string named = set == nullptr ? "" : set;
  std::vector<fs::path> places;
  if (named.find('/') != std::string::npos) {
    places = {named};
  } else {
    if (set == nullptr) places = beside_the_library();
    for (fs::path& place : on_the_path(set == nullptr ? "epd" : named)) places.push_back(std::move(place));
  }
  const auto found = std::find_if(places.begin(), places.end(), [](const fs::path& file) {
    std::error_code ignored;
    return fs::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0;
  });
  if (found != places.end()) return found->string();
  if (set != nullptr) {
    return fail(Code::unavailable, "RAILHEAD_EPD is '" + named + "', which cannot be run as a private daemon");
  }
  return fail(Code::unavailable,
              "no daemon runs and there is no epd to start a private one, neither beside the library nor on the PATH: "
              "RAILHEAD_EPD names it");
}

// Detached from everything of ours: own session, no descriptor but /dev/null and the log. The middle process ends at
// once, so that no zombie stays with the application.
Result<void> spawn(const std::string& epd, const std::string& socket, const std::string& key, const std::string& log) {
  const std::vector<std::string> words = {"sh",
                                          "-c",
                                          "\"$@\" </dev/null >>\"$RAILHEAD_LOG\" 2>&1 &",
                                          "sh",
                                          epd,
                                          "--config",
                                          "none",
                                          "--private.key",
                                          key,
                                          "--socket",
                                          socket,
                                          "--mesh.bind",
                                          "tcp://127.0.0.1:0"};
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  std::vector<std::string> values;
  for (char** e = environ; *e != nullptr; ++e) values.emplace_back(*e);
  values.push_back("RAILHEAD_LOG=" + log);
  std::vector<char*> env;
  env.reserve(values.size() + 1);
  for (std::string& v : values) env.push_back(v.data());
  env.push_back(nullptr);

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t defaults;
  sigemptyset(&none);
  sigfillset(&defaults);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // Descriptors of the application that lack close-on-exec would live on in the daemon.
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  pid_t child = -1;
  const int error = posix_spawn(&child, "/bin/sh", &actions, &attributes, argv.data(), env.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return fail(system_status("start of " + epd, error));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return {};
}

}  // namespace

Result<std::string> ensure_private_daemon(const std::string& job, ipc::Deadline deadline) {
  auto directory = private_directory();
  if (!directory) return directory;
  const std::string key = key_of(job);
  const std::string stem = *directory + "/" + key;
  const std::string socket = stem + ".sock";
  if (socket.size() >= sizeof(sockaddr_un{}.sun_path)) {
    return fail(Code::invalid_argument, "socket path " + socket + " is too long; set XDG_RUNTIME_DIR to a shorter one");
  }
  const ipc::UniqueFd file(::open((stem + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file) return fail(system_status("open " + stem + ".lock", errno));
  if (auto locked = lock(file, deadline); !locked) return fail(locked.error());
  if (listens(socket)) return socket;
  const std::string log = stem + ".log";
  auto epd = find_epd();
  if (!epd) return epd;
  if (auto started = spawn(*epd, socket, key, log); !started) return fail(started.error());
  while (!listens(socket)) {
    if (deadline.expired()) {
      return fail(Code::unavailable, "the private daemon did not begin to listen on " + socket + " in time; see " +
                                         log + " (it runs " + *epd + ")");
    }
    ::poll(nullptr, 0, 5);
  }
  return socket;
}

}  // namespace railhead::client
