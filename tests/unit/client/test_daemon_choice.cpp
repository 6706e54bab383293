#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "client/daemon_choice.hpp"
#include "tests/unit/ipc/child.hpp"

namespace railhead::client {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class DaemonChoice : public testing::Test {
 protected:
  DaemonChoice() {
    char name[] = "/tmp/railhead-choice-XXXXXX";
    folder_ = ::mkdtemp(name);
    path_ = folder_ + "/epd.sock";
  }
  ~DaemonChoice() override { std::filesystem::remove_all(folder_); }
  void listen(int queue) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof(address.sun_path) - 1);
    ::unlink(path_.c_str());
    listening_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_EQ(::listen(listening_.get(), queue), 0);
  }
  // Connections until no more are taken.
  void fill() {
    while (auto fd = connect_to(path_, 1ms)) waiting_.push_back(std::move(fd));
    ASSERT_EQ(errno, EAGAIN);
  }

  std::string folder_;
  std::string path_;
  ipc::UniqueFd listening_;
  std::vector<ipc::UniqueFd> waiting_;
};

TEST_F(DaemonChoice, ListensMeansThatSomebodyDoes) {
  EXPECT_FALSE(listens(path_));
  listen(4);
  EXPECT_TRUE(listens(path_));
  fill();
  EXPECT_TRUE(listens(path_)) << "a full queue is one of a daemon";
  listening_.reset();
  EXPECT_FALSE(listens(path_)) << "a socket file that is left over";
}

TEST_F(DaemonChoice, AConnectionWaitsForItsTurnInAFullQueue) {
  listen(1);
  fill();
  std::thread daemon([this] {
    for (std::size_t i = 0; i <= waiting_.size(); ++i) ::close(::accept(listening_.get(), nullptr, nullptr));
  });
  EXPECT_TRUE(connect_to(path_, 10s));
  daemon.join();
}

TEST_F(DaemonChoice, AConnectionToADaemonThatHangsEndsAtItsLimit) {
  listen(1);
  fill();
  EXPECT_FALSE(connect_to(path_, 20ms));
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(DaemonChoice, ADaemonThatListensIsTaken) {
  listen(2);
  const auto there = choose_daemon(path_, "", ipc::Deadline::after(1s));
  ASSERT_TRUE(there);
  EXPECT_EQ(*there, path_);
  EXPECT_EQ(*choose_daemon("system", "", ipc::Deadline::after(1s), path_), path_);
  EXPECT_EQ(*choose_daemon("auto", "", ipc::Deadline::after(1s), path_), path_);
}

TEST_F(DaemonChoice, NamesThatMeanNothingAreRefused) {
  const auto refused = choose_daemon("sytsem", "", ipc::Deadline::after(1s));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::invalid_argument);
  EXPECT_THAT(refused.error().message(), HasSubstr("sytsem"));
}

// What is at the path of a daemon, whom it keeps out, and what is said to whoever asks for that path.
struct Obstacle {
  const char* name;
  void (*make)(const std::string& path);  // a daemon listens at `path` before
  bool others;                            // asked by another user, who has no groups
  Code code;
  std::vector<std::string> says;
};

constexpr uid_t kStranger = 65'534;

void replace(const std::string& path, void (*make)(const char*)) {
  ::unlink(path.c_str());
  make(path.c_str());
}

std::vector<Obstacle> obstacles() {
  return {
      {"nothing there",
       [](const std::string& p) { ::unlink(p.c_str()); },
       false,
       Code::unavailable,
       {"no daemon listens on", "nothing is there", "start epd", "RAILHEAD_DAEMON=private"}},
      {"folder missing",
       [](const std::string& p) { std::filesystem::remove_all(std::filesystem::path(p).parent_path()); },
       false,
       Code::unavailable,
       {"no daemon listens on", "nothing is there"}},
      {"dead link",
       [](const std::string& p) { replace(p, [](const char* at) { (void)!::symlink("gone", at); }); },
       false,
       Code::unavailable,
       {"no daemon listens on", "a symbolic link to nothing"}},
      {"plain file",
       [](const std::string& p) { replace(p, [](const char* at) { ::close(::creat(at, 0644)); }); },
       false,
       Code::invalid_argument,
       {"is a plain file, not a daemon's socket"}},
      {"plain file of somebody else",
       [](const std::string& p) { replace(p, [](const char* at) { ::close(::creat(at, 0644)); }); },
       true,
       Code::invalid_argument,
       {"is a plain file, not a daemon's socket"}},
      {"folder",
       [](const std::string& p) { replace(p, [](const char* at) { ::mkdir(at, 0755); }); },
       false,
       Code::invalid_argument,
       {"is a folder, not a daemon's socket"}},
      {"group's socket",
       [](const std::string& p) { ::chmod(p.c_str(), 0660); },
       true,
       Code::permission,
       {"uid 65534 may not connect to the daemon at", "mode 0660, user root, group root",
        "'usermod -aG root USER' and a new login", "RAILHEAD_DAEMON=private"}},
      {"owner's socket",
       [](const std::string& p) { ::chmod(p.c_str(), 0600); },
       true,
       Code::permission,
       {"mode 0600, user root", "that user alone may", "socket_mode", "RAILHEAD_DAEMON=private"}},
      {"group without a name",
       [](const std::string& p) {
         ::chmod(p.c_str(), 0660);
         (void)!::chown(p.c_str(), 123'456, 123'457);
       },
       true,
       Code::permission,
       {"user 123456, group 123457"}},
      {"closed folder",
       [](const std::string& p) { ::chmod(std::filesystem::path(p).parent_path().c_str(), 0700); },
       true,
       Code::permission,
       {"uid 65534 may not look for a daemon at", "may not enter a folder on the way"}},
  };
}

class Obstacles : public DaemonChoice {
 protected:
  // What choose_daemon() answers this or another user's process: its code, and its sentence in said_.
  int ask(const std::string& wanted, bool as_other) {
    int answer[2];
    EXPECT_EQ(::pipe(answer), 0);
    ipc::test::Child child([&] {
      ::setenv("XDG_RUNTIME_DIR", runtime_.c_str(), 1);
      if (as_other && (::setgroups(0, nullptr) != 0 || ::setresgid(kStranger, kStranger, kStranger) != 0 ||
                       ::setresuid(kStranger, kStranger, kStranger) != 0)) {
        return 255;
      }
      const auto chosen = choose_daemon(wanted, "", ipc::Deadline::after(20ms), path_);
      const std::string text = chosen ? *chosen : chosen.error().message();
      (void)!::write(answer[1], text.data(), text.size());
      return chosen ? 0 : static_cast<int>(chosen.error().code());
    });
    ::close(answer[1]);
    said_.clear();
    char piece[512];
    for (ssize_t n = 0; (n = ::read(answer[0], piece, sizeof(piece))) > 0;) said_.append(piece, static_cast<size_t>(n));
    ::close(answer[0]);
    return child.wait();
  }
  void SetUp() override {
    folder_ += "/run";
    path_ = folder_ + "/epd.sock";
    ::chmod(root_.c_str(), 0755);
  }
  // Its own folder of the same daemon, made anew for each obstacle.
  void start_over() {
    ::chmod(folder_.c_str(), 0755);
    std::filesystem::remove_all(folder_);
    ::mkdir(folder_.c_str(), 0755);
    ::chmod(folder_.c_str(), 0755);
    listen(100);
  }
  void TearDown() override { folder_ = root_; }

  std::string root_ = folder_;
  std::string runtime_ = folder_ + "/missing";  // where a private daemon was to start, the sentence shows it
  std::string said_;
};

TEST_F(Obstacles, AreNamedWithWhatToDo) {
  for (const Obstacle& o : obstacles()) {
    if (o.others && ::geteuid() != 0) continue;  // only root can become somebody else
    for (const char* const wanted : {"path", "system"}) {
      start_over();
      o.make(path_);
      EXPECT_EQ(ask(wanted == std::string("path") ? path_ : wanted, o.others), static_cast<int>(o.code))
          << o.name << ": " << said_;
      EXPECT_THAT(said_, HasSubstr(path_)) << o.name;
      for (const std::string& piece : o.says) EXPECT_THAT(said_, HasSubstr(piece)) << o.name;
    }
  }
}

// A private daemon in place of the system's only where there is none: ranks that may not connect are told.
TEST_F(Obstacles, AutoStartsAPrivateDaemonOnlyWhereNoneListens) {
  for (const Obstacle& o : obstacles()) {
    if (o.others && ::geteuid() != 0) continue;
    start_over();
    o.make(path_);
    const int code = ask("auto", o.others);
    if (o.code == Code::permission) {
      EXPECT_EQ(code, static_cast<int>(Code::permission)) << o.name << ": " << said_;
      for (const std::string& piece : o.says) EXPECT_THAT(said_, HasSubstr(piece)) << o.name;
    } else {
      EXPECT_EQ(code, static_cast<int>(Code::system)) << o.name << ": " << said_;
      EXPECT_THAT(said_, HasSubstr("mkdir " + runtime_)) << o.name;
    }
  }
}

TEST_F(Obstacles, ASocketThatIsLeftOverIsNoDaemon) {
  start_over();
  listening_.reset();
  EXPECT_EQ(ask(path_, false), static_cast<int>(Code::unavailable));
  EXPECT_THAT(said_, testing::AllOf(HasSubstr(path_), HasSubstr("left over"), HasSubstr("start epd")));
  EXPECT_EQ(ask("auto", false), static_cast<int>(Code::system));
  EXPECT_THAT(said_, HasSubstr("mkdir " + runtime_));
}

TEST_F(Obstacles, APathThatIsTooLongIsRefusedWithBothNumbers) {
  const auto refused = choose_daemon("/" + std::string(200, 'x'), "", ipc::Deadline::after(1s));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::invalid_argument);
  EXPECT_THAT(refused.error().message(), testing::AllOf(HasSubstr("201 bytes"), HasSubstr("at most 107")));
}

}  // namespace
}  // namespace railhead::client
