// epctl keygen: new keys for the mesh. The daemon's own program makes them, as it alone knows their form.
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "ipc/deadline.hpp"
#include "ipc/fd.hpp"
#include "tools/epctl/commands.hpp"
#include "tools/epctl/table.hpp"

namespace railhead::epctl {
namespace {

using namespace std::chrono_literals;

// RAILHEAD_EPD, else beside this program, else on the PATH.
std::string find_epd() {
  if (const char* const set = std::getenv("RAILHEAD_EPD"); set != nullptr) return set;
  std::error_code ignored;
  const auto beside = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / "epd";
  return ::access(beside.c_str(), X_OK) == 0 ? beside.string() : "epd";
}

struct Child {
  pid_t pid = -1;
  ipc::UniqueFd errors;  // its standard error; ends when the child does
};

Result<Child> start(const std::string& epd, const std::string& file) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(system_status("pipe", errno));
  Child child;
  child.errors = ipc::UniqueFd(ends[0]);
  const ipc::UniqueFd theirs(ends[1]);
  const std::string keygen = "--keygen=" + file;
  char* argv[] = {const_cast<char*>(epd.c_str()), const_cast<char*>(keygen.c_str()), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDERR_FILENO);
  const int error = posix_spawnp(&child.pid, epd.c_str(), &actions, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return fail(system_status("cannot start " + epd + " (RAILHEAD_EPD names it)", error));
  return child;
}

// What it says until it ends; false when the deadline passed before.
bool read_all(int fd, ipc::Deadline deadline, std::string& text) {
  while (!deadline.expired()) {
    pollfd ready{fd, POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(deadline.remaining(1000ms).count())) <= 0) continue;
    char buffer[512];
    const ssize_t got = ::read(fd, buffer, sizeof(buffer));
    if (got == 0) return true;
    if (got > 0) text.append(buffer, static_cast<std::size_t>(got));
  }
  return false;
}

Result<void> make_keys(const Options& options, const std::string& file) {
  const std::string epd = find_epd();
  auto child = start(epd, file);
  if (!child) return fail(child.error());
  std::string said;
  const auto deadline =
      ipc::Deadline::after(std::chrono::milliseconds(static_cast<std::int64_t>(options.timeout_s * 1e3)));
  const bool ended = read_all(child->errors.get(), deadline, said);
  if (!ended) ::kill(child->pid, SIGKILL);
  int status = 0;
  while (::waitpid(child->pid, &status, 0) < 0 && errno == EINTR) continue;
  if (!ended) return fail(Code::timeout, epd + " --keygen did not end in time");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  while (!said.empty() && said.back() == '\n') said.pop_back();
  return fail(Code::invalid_usage, said.empty() ? epd + " --keygen ended without a word" : said);
}

int run(const Options& options, const std::string& file) {
  if (const auto made = make_keys(options, file); !made) {
    (void)print_failure(options, made.error());
    return kRefused;
  }
  if (options.json) {
    print_json({{"key_file", file}});
  } else {
    std::printf(
        "wrote %s: copy it to every host of the cluster, readable by the daemon's user alone, and set "
        "mesh.key_file\n",
        printable(file).c_str());
  }
  return kGood;
}

}  // namespace

void add_keygen(CLI::App& app, Options& options) {
  const auto file = std::make_shared<std::string>();
  CLI::App* const command =
      add_command(app, options, "keygen", "Write new mesh keys to FILE (mode 0600, never overwritten)",
                  "0 written; 1 not written, such as because FILE exists; 64 bad usage.",
                  [&options, file] { return run(options, *file); });
  command->add_option("FILE", *file, "Where to write the keys")->required()->type_name("");
}

}  // namespace railhead::epctl
