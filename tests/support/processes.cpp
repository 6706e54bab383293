#include "tests/support/processes.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "ipc/deadline.hpp"
#include "ipc/fd.hpp"
#include "tests/support/lane.hpp"

namespace railhead::test {
namespace {

// Here, so that every program that starts daemons or ranks does.
[[maybe_unused]] const bool kReportsAreRead = read_sanitizer_reports();

std::vector<std::string> joined(std::vector<std::string> first, const std::vector<std::string>& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

// Where systemd would hear that the service is ready.
ipc::UniqueFd notify_socket(const std::string& path) {
  ipc::UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  ::unlink(path.c_str());
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    throw std::runtime_error("bind " + path);
  }
  return fd;
}

bool await_ready(const ipc::UniqueFd& fd, ipc::Deadline deadline) {
  using namespace std::chrono_literals;
  while (!deadline.expired()) {
    pollfd ready{fd.get(), POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(deadline.remaining(200ms).count())) <= 0) continue;
    char text[512];
    const ssize_t got = ::recv(fd.get(), text, sizeof(text), 0);
    if (got > 0 && std::string(text, static_cast<std::size_t>(got)).find("READY=1") != std::string::npos) return true;
  }
  return false;
}

}  // namespace

Folder::Folder() {
  char name[] = "/tmp/railhead-fault-XXXXXX";
  if (::mkdtemp(name) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = name;
}

Folder::~Folder() {
  read_logs(path_);
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Epd::Epd(std::string socket, const std::vector<std::string>& flags, const std::vector<std::string>& inside)
    : socket_(std::move(socket)),
      under_faults_(std::find(flags.begin(), flags.end(), "--fabric.fault") != flags.end()) {
  const ipc::UniqueFd notified = notify_socket(socket_ + ".ready");
  std::vector<std::string> words =
      joined(inside, {EPD_PROGRAM, "--config", "none", "--socket", socket_, "--mesh.bind", "tcp://127.0.0.1:0",
                      "--fabric.bind", "127.0.0.1", "--log.target", "stderr"});
  words.insert(words.end(), flags.begin(), flags.end());
  process_ = std::make_unique<ChildProcess>(
      words, std::vector<std::string>{"NOTIFY_SOCKET=" + socket_ + ".ready", "IPATH_NO_BACKTRACE=1"}, socket_ + ".log");
  if (!await_ready(notified, ipc::Deadline::after(Milliseconds(60'000)))) {
    throw std::runtime_error("epd did not get ready: " + log());
  }
}

Epd::~Epd() {
  if (under_faults_ && alive()) expect_faults(socket_);
  // A sanitizer looks at the deaths of its last ranks and at its own end, too; the second signal is for a drain.
  for (int i = 0; kSanitized && i < 2 && !process_->wait(Milliseconds(0)); ++i) {
    process_->signal(SIGTERM);
    process_->wait(Milliseconds(2'000));
  }
  await_report(*process_);
  const auto end = process_->wait(Milliseconds(0));
  if (end && is_crash(*end)) ADD_FAILURE() << "epd crashed (" << *end << ")";
  // A failure that comes once in a hundred runs is explained by this or not at all.
  if (testing::Test::HasFailure()) std::cout << "the log of " << socket_ << ":\n" << log() << std::flush;
}

std::string Epd::log() const {
  std::ifstream in(socket_ + ".log");
  return {std::istreambuf_iterator<char>(in), {}};
}

Json Epd::snapshot(const std::string& what) const {
  return test::snapshot(socket_, what);
}

void Epd::evict(const std::string& group, std::int32_t rank, const std::string& reason) const {
  test::evict(socket_, {0, group, rank, reason});
}

void Epd::evict_session(std::uint32_t session, const std::string& reason) const {
  test::evict(socket_, {session, "", -1, reason});
}

std::size_t Epd::fds() const {
  const std::filesystem::directory_iterator all("/proc/" + std::to_string(process_->pid()) + "/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

std::uint64_t Epd::cpu_ns() const {
  std::uint64_t sum = 0;
  const std::string tasks = "/proc/" + std::to_string(process_->pid()) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    std::uint64_t ran = 0;
    std::ifstream(task.path() / "schedstat") >> ran;
    sum += ran;
  }
  return sum;
}

bool Epd::alive() const {
  std::ifstream in("/proc/" + std::to_string(process_->pid()) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::size_t at = text.rfind(") ");
  return at != std::string::npos && text[at + 2] != 'Z';
}

Rank::Rank(const std::string& program, const std::string& socket, const std::string& log,
           const std::vector<std::string>& environment, const std::vector<std::string>& inside)
    : process_(joined(inside, {program, socket}), environment, log), pid_(process_.pid()) {}

Reply Rank::reply(Milliseconds limit) {
  try {
    const auto line = process_.read_line(limit);
    if (!line) return {"silent", "no answer within " + std::to_string(limit.count()) + " ms", now_ns()};
    std::istringstream in(*line);
    Reply out;
    in >> out.at_ns >> out.status >> std::ws;
    std::getline(in, out.text);
    return out;
  } catch (const std::runtime_error& e) {
    return {"gone", e.what(), now_ns()};
  }
}

bool eventually(const std::function<bool()>& holds, Milliseconds limit) {
  const auto deadline = ipc::Deadline::after(limit);
  while (!holds()) {
    if (deadline.expired()) return holds();
    ::poll(nullptr, 0, 5);
  }
  return true;
}

}  // namespace railhead::test
