#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "client/daemon_choice.hpp"

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

TEST_F(DaemonChoice, APathThatNobodyListensOnIsNamedWithWhatToDo) {
  const auto none = choose_daemon(path_, "", ipc::Deadline::after(1s));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Code::unavailable);
  EXPECT_THAT(none.error().message(), HasSubstr(path_));
  EXPECT_THAT(none.error().message(), HasSubstr("start epd"));
  listen(1);
  const auto there = choose_daemon(path_, "", ipc::Deadline::after(1s));
  ASSERT_TRUE(there);
  EXPECT_EQ(*there, path_);
}

TEST_F(DaemonChoice, NamesThatMeanNothingAreRefused) {
  const auto refused = choose_daemon("sytsem", "", ipc::Deadline::after(1s));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::invalid_argument);
  EXPECT_THAT(refused.error().message(), HasSubstr("sytsem"));
  EXPECT_FALSE(choose_daemon("/" + std::string(200, 'x'), "", ipc::Deadline::after(1s)));
}

}  // namespace
}  // namespace railhead::client
