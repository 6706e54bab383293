// Daemons and ranks as processes of their own, for tests of death, signals and hostile input.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/child_process.hpp"
#include "tests/support/operator.hpp"
#include "tests/support/sanitizer_reports.hpp"

namespace railhead::test {

// A temporary folder, removed with its owner.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

// One daemon process with a socket and ports of its own; ready when constructed.
class Epd {
 public:
  // `inside`: words before the program's own, as "unshare --pid --fork".
  explicit Epd(std::string socket, const std::vector<std::string>& flags = {},
               const std::vector<std::string>& inside = {});
  // A daemon that has crashed fails the test, with its log; so does one that ignored fabric.fault.
  ~Epd();
  Epd(const Epd&) = delete;
  Epd& operator=(const Epd&) = delete;

  [[nodiscard]] const std::string& socket() const { return socket_; }
  [[nodiscard]] ChildProcess& process() { return *process_; }
  [[nodiscard]] std::string log() const;
  // What operators see. Throws when the daemon does not answer within 10 s.
  [[nodiscard]] Json snapshot(const std::string& what) const;
  void evict(const std::string& group, std::int32_t rank, const std::string& reason) const;
  void evict_session(std::uint32_t session, const std::string& reason) const;

  [[nodiscard]] std::size_t fds() const;       // open descriptors
  [[nodiscard]] std::uint64_t cpu_ns() const;  // user and system time so far
  [[nodiscard]] bool alive() const;

 private:
  std::string socket_;
  bool under_faults_;
  std::unique_ptr<ChildProcess> process_;
};

// The answer of a rank: "ok TEXT", or the name of the status and its sentence.
struct Reply {
  std::string status;  // "ok", "rank_lost", ...
  std::string text;
  std::uint64_t at_ns = 0;  // when the call returned
  [[nodiscard]] bool ok() const { return status == "ok"; }
};

// One rank process (tests/fault/rank_program.cpp lists its commands).
class Rank {
 public:
  Rank(const std::string& program, const std::string& socket, const std::string& log,
       const std::vector<std::string>& environment = {}, const std::vector<std::string>& inside = {});
  ~Rank() { await_report(process_); }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  [[nodiscard]] ChildProcess& process() { return process_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void send(const std::string& command) const { process_.write_line(command); }
  // status "silent" when there is none in time, "gone" when the process ended.
  Reply reply(Milliseconds limit = Milliseconds(60'000));
  Reply ask(const std::string& command, Milliseconds limit = Milliseconds(60'000)) {
    send(command);
    return reply(limit);
  }

 private:
  ChildProcess process_;
  pid_t pid_;
};

// Looks again every 5 ms until it holds: for what has no event to wait for (another process's snapshot).
bool eventually(const std::function<bool()>& holds, Milliseconds limit = Milliseconds(5'000));

}  // namespace railhead::test
