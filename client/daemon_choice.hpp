// Which daemon a session talks to, and the start of a private one.
#pragma once

#include <chrono>
#include <string>

#include "ipc/deadline.hpp"
#include "ipc/fd.hpp"
#include "ipc/status.hpp"

namespace railhead::client {

inline constexpr const char* kSystemSocket = "/run/epd/epd.sock";

// `wanted`: "auto", "system", "private" or the path of a socket; empty means the environment variable RAILHEAD_DAEMON,
// else "auto". Starts a private daemon when that is what it comes to; "auto" does so where no daemon listens on the
// system's socket, not where this user may not connect to it. Returns the socket to connect to.
Result<std::string> choose_daemon(const std::string& wanted, const std::string& job, ipc::Deadline deadline,
                                  const std::string& system_socket = kSystemSocket);

// A connection to this UNIX socket; empty, with errno, when there is none within the limit.
ipc::UniqueFd connect_to(const std::string& path, std::chrono::milliseconds limit);

// Somebody accepts connections on this UNIX socket now.
bool listens(const std::string& path);

// The label of this job: `wanted`, else RAILHEAD_JOB, SLURM_JOB_ID, else empty.
std::string job_label(const char* wanted);

// Shared by the ranks of one user, job and network namespace on this host: the socket's directory is made (0700), and
// under a lock on a file there one of them starts `epd --private`, the others find it listening. The daemon leaves some
// seconds after its last session.
Result<std::string> ensure_private_daemon(const std::string& job, ipc::Deadline deadline);

}  // namespace railhead::client
