#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "daemon/control/listener.hpp"

namespace railhead::daemon {
namespace {

using testing::HasSubstr;

class ListenerTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/railhead-listener-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
    config_.socket = folder_ + "/epd.sock";
    config_.socket_mode.bits = 0666;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // 0, or why not.
  [[nodiscard]] int connect() const {
    const ipc::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, config_.socket.c_str(), sizeof(address.sun_path) - 1);
    return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ? 0 : errno;
  }
  [[nodiscard]] std::size_t files() const {
    const std::filesystem::directory_iterator all(folder_);
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

  std::string folder_;
  config::Config config_;
};

// A client that comes while the daemon starts finds no socket or one that answers; a permission error would be final.
TEST_F(ListenerTest, WhoFindsTheSocketMayConnect) {
  std::atomic<bool> done{false};
  std::atomic<int> connected{0};
  std::thread client([&] {
    while (!done) {
      struct stat before {};
      if (::stat(config_.socket.c_str(), &before) != 0) continue;
      EXPECT_EQ(before.st_mode & 0777U, 0666U);
      const int error = connect();
      EXPECT_TRUE(error == 0 || error == ENOENT || error == EAGAIN) << std::strerror(error);
      connected += error == 0 ? 1 : 0;
    }
  });
  std::vector<ipc::UniqueFd> earlier;  // open until the end: who found one before its name went may still connect
  for (int i = 0; i < 500; ++i) {
    auto fd = listen_socket(config_);
    ASSERT_TRUE(fd) << fd.error().message();
    ASSERT_EQ(::unlink(config_.socket.c_str()), 0);
    earlier.push_back(std::move(*fd));
  }
  const auto fd = listen_socket(config_);
  while (connected == 0 && !HasFailure()) std::this_thread::yield();
  done = true;
  client.join();
  EXPECT_EQ(files(), 1U) << "another name was left behind";
}

TEST_F(ListenerTest, OneOfSeveralThatStartAtOnceGetsTheSocket) {
  std::atomic<int> got{0};
  std::vector<std::thread> daemons;
  std::vector<Result<ipc::UniqueFd>> results;
  for (int i = 0; i < 8; ++i) results.emplace_back(ipc::UniqueFd());
  for (auto& result : results) {
    daemons.emplace_back([&] {
      result = listen_socket(config_);
      if (result) ++got;
    });
  }
  for (std::thread& daemon : daemons) daemon.join();
  EXPECT_EQ(got, 1);
  EXPECT_EQ(connect(), 0);
  EXPECT_EQ(files(), 1U);
}

TEST_F(ListenerTest, ASocketWithoutADaemonIsReplacedAndAFileIsNot) {
  {
    const auto gone = listen_socket(config_);
    ASSERT_TRUE(gone);
  }
  EXPECT_EQ(connect(), ECONNREFUSED);
  const auto fd = listen_socket(config_);
  ASSERT_TRUE(fd) << fd.error().message();
  EXPECT_EQ(connect(), 0);

  config_.socket = folder_ + "/file";
  std::ofstream(config_.socket) << "mine";
  const auto refused = listen_socket(config_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("is not a socket"));
}

TEST_F(ListenerTest, AGroupThatDoesNotExistIsNamed) {
  config_.socket_group = "no-such-group";
  const auto refused = listen_socket(config_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("'no-such-group'"));
  EXPECT_EQ(files(), 0U);
}

}  // namespace
}  // namespace railhead::daemon
