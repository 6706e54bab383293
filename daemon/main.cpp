// epd: command line, log, signals; the rest is the daemon library.
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>

#include "daemon/config/command_line.hpp"
#include "daemon/daemon.hpp"
#include "daemon/mesh/keys.hpp"
#include "daemon/start_settings.hpp"
#include "ipc/version.hpp"

namespace {

int fail_with(const railhead::Status& status) {
  std::fprintf(stderr, "epd: %s\n", status.to_string().c_str());
  return 1;
}

int say_whether_good(const railhead::config::Config& config) {
  if (const auto refused = railhead::daemon::check_start(config); !refused.ok()) return fail_with(refused);
  std::puts("the configuration is good");
  return 0;
}

// Libraries that libfabric pulls in (libinfinipath) take these signals when they are loaded and print a trace of their
// own; a crash of ours is to leave a core.
void take_back_signals() {
  for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGABRT, SIGFPE, SIGINT, SIGTERM}) std::signal(number, SIG_DFL);
}

}  // namespace

int main(int argc, char** argv) try {
  take_back_signals();
  const auto line = railhead::config::parse_command_line(argc, argv, std::string(railhead::ipc::build_string()));
  if (line.action == railhead::config::Action::done) {
    std::fputs(line.output.c_str(), line.exit_code == 0 ? stdout : stderr);
    return line.exit_code;
  }
  if (line.action == railhead::config::Action::keygen) {
    const auto made = railhead::mesh::generate_keys(line.key_path);
    return made ? 0 : fail_with(made.error());
  }
  const railhead::config::Config& config = line.settings.config;
  if (line.action == railhead::config::Action::check) return say_whether_good(config);
  // Signals are taken by one thread that waits for them; every other thread inherits the mask.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);

  auto log = railhead::log::Log::make({config.log.level, config.log.target});
  if (!log) return fail_with(log.error());
  auto daemon = railhead::daemon::Daemon::start({config, nullptr}, *log);
  if (!daemon) return fail_with(daemon.error());
  std::thread([&signals, epd = daemon->get()] {
    for (int number = 0; sigwait(&signals, &number) == 0;) epd->stop();
  }).detach();
  (*daemon)->wait();
  // The signal thread may hold the daemon still; the process ends here and takes it along.
  log->info("stopped");
  std::fflush(nullptr);
  std::_Exit(0);
} catch (const std::exception& error) {  // no memory or no thread at the start
  std::fprintf(stderr, "epd: %s\n", error.what());
  return 1;
}
