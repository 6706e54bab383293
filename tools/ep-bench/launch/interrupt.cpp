#include "tools/ep-bench/launch/interrupt.hpp"

#include <csignal>
#include <string>

namespace railhead::bench {
namespace {

volatile std::sig_atomic_t signal_seen = 0;

void on_signal(int number) {
  signal_seen = number;
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

bool interrupted() noexcept {
  return signal_seen != 0;
}

Status keep_waiting(ipc::Deadline deadline, const char* what) {
  if (interrupted()) return {Code::aborted, "interrupted by signal " + std::to_string(signal_seen)};
  if (deadline.expired()) return {Code::timeout, std::string("gave up waiting for ") + what + " (see --timeout)"};
  return {};
}

}  // namespace railhead::bench
