#include "ipc/status.hpp"

#include <cerrno>
#include <system_error>

namespace railhead {

std::string_view code_name(Code code) noexcept {
  switch (code) {
    case Code::ok: return "ok";
    case Code::invalid_argument: return "invalid_argument";
    case Code::invalid_usage: return "invalid_usage";
    case Code::mismatch: return "mismatch";
    case Code::out_of_memory: return "out_of_memory";
    case Code::limit_exceeded: return "limit_exceeded";
    case Code::timeout: return "timeout";
    case Code::aborted: return "aborted";
    case Code::rank_lost: return "rank_lost";
    case Code::daemon_lost: return "daemon_lost";
    case Code::peer_lost: return "peer_lost";
    case Code::unavailable: return "unavailable";
    case Code::permission: return "permission";
    case Code::version_mismatch: return "version_mismatch";
    case Code::unsupported: return "unsupported";
    case Code::protocol: return "protocol";
    case Code::system: return "system";
    case Code::internal: return "internal";
    case Code::forked: return "forked";
    case Code::in_progress: return "in_progress";
  }
  return "unknown";
}

std::string Status::to_string() const {
  return std::string(code_name(code_)) + ": " + message_;
}

Status system_status(std::string_view what, int error_number) {
  return {error_number == ENOMEM ? Code::out_of_memory : Code::system,
          std::string(what) + ": " + std::generic_category().message(error_number) + " (errno " +
              std::to_string(error_number) + ")"};
}

}  // namespace railhead
