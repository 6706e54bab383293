// How other threads reach the control thread: closures in a queue, an eventfd that its event loop watches.
#pragma once

#include <kj/async-unix.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ipc/fd.hpp"

namespace railhead::daemon {

class Mailbox {
 public:
  // `failed` hears what a task threw; the others go on.
  explicit Mailbox(std::function<void(const std::string&)> failed);

  // Any thread, any time; what is posted after the loop has ended is dropped with the mailbox.
  void post(std::function<void()> task);
  // On the control thread: runs what is posted, in order, for ever.
  kj::Promise<void> serve(kj::UnixEventPort& port);

 private:
  kj::Promise<void> loop(kj::UnixEventPort::FdObserver& observer);
  void run_posted();

  std::function<void(const std::string&)> failed_;
  ipc::UniqueFd bell_;
  std::mutex mutex_;
  std::vector<std::function<void()>> tasks_;
};

}  // namespace railhead::daemon
