// A daemon that says what a test tells it to, over the real protocol.
#pragma once

#include <capnp/rpc-twoparty.h>
#include <gtest/gtest.h>
#include <kj/async-io.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "ipc/fd.hpp"
#include "ipc/rpc.hpp"
#include "ipc/schema/control.capnp.h"

namespace railhead::epctl {

// A folder of its own with room for a socket's path; removed with all it holds.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/epctl-test-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A socket that takes connections into its backlog and never answers: a stopped daemon.
inline ipc::UniqueFd silent_listener(const std::string& path) {
  ipc::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(::listen(fd.get(), 8), 0);
  return fd;
}

// Set before the first call; read by the daemon's thread.
struct FakeAnswers {
  std::map<std::string, std::string> snapshots{};  // by `what`
  Status admin_error{};
  Status evict_error{};
};
struct SeenEviction {
  std::uint32_t session = 0;
  std::string group;
  std::int32_t rank = 0;
  std::string reason;
};

class FakeDaemon {
 public:
  FakeDaemon(const std::string& socket, FakeAnswers answers) : answers_(std::move(answers)) {
    std::promise<void> ready;
    auto listening = ready.get_future();
    thread_ = std::thread([this, socket, &ready] { serve(socket, ready); });
    listening.wait();
  }
  ~FakeDaemon() {
    stop_->fulfill();
    thread_.join();
  }
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;

  SeenEviction seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

 private:
  class Admin final : public schema::Admin::Server {
   public:
    explicit Admin(FakeDaemon& daemon) : daemon_(daemon) {}
    kj::Promise<void> snapshot(SnapshotContext context) override {
      context.getResults().setJson(daemon_.answers_.snapshots[context.getParams().getWhat().cStr()]);
      return kj::READY_NOW;
    }
    kj::Promise<void> evict(EvictContext context) override {
      const auto params = context.getParams();
      const std::lock_guard lock(daemon_.mutex_);
      daemon_.seen_ = {params.getSession(), params.getGroup().cStr(), params.getRank(), params.getReason().cStr()};
      if (!daemon_.answers_.evict_error.ok()) ipc::fill(context.getResults().initError(), daemon_.answers_.evict_error);
      return kj::READY_NOW;
    }

   private:
    FakeDaemon& daemon_;
  };
  class Bootstrap final : public schema::Daemon::Server {
   public:
    explicit Bootstrap(FakeDaemon& daemon) : daemon_(daemon) {}
    kj::Promise<void> admin(AdminContext context) override {
      if (daemon_.answers_.admin_error.ok()) {
        context.getResults().setAdmin(kj::heap<Admin>(daemon_));
      } else {
        ipc::fill(context.getResults().initError(), daemon_.answers_.admin_error);
      }
      return kj::READY_NOW;
    }

   private:
    FakeDaemon& daemon_;
  };

  void serve(const std::string& socket, std::promise<void>& ready) {
    auto io = kj::setupAsyncIo();
    auto paf = kj::newPromiseAndCrossThreadFulfiller<void>();
    stop_ = kj::mv(paf.fulfiller);
    auto address = io.provider->getNetwork().parseAddress(kj::str("unix:", socket)).wait(io.waitScope);
    auto listener = address->listen();
    capnp::TwoPartyServer server(kj::heap<Bootstrap>(*this));
    auto listening = server.listen(*listener);
    ready.set_value();
    paf.promise.exclusiveJoin(kj::mv(listening)).wait(io.waitScope);
  }

  FakeAnswers answers_;
  std::mutex mutex_;
  SeenEviction seen_;  // guarded by mutex_
  kj::Own<kj::CrossThreadPromiseFulfiller<void>> stop_;
  std::thread thread_;
};

}  // namespace railhead::epctl
