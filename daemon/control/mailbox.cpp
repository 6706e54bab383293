#include "daemon/control/mailbox.hpp"

#include <kj/debug.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

namespace railhead::daemon {

Mailbox::Mailbox(std::function<void(const std::string&)> failed)
    : failed_(std::move(failed)), bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Mailbox::post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then the bell is readable already.
  (void)!::write(bell_.get(), &one, sizeof(one));
}

kj::Promise<void> Mailbox::serve(kj::UnixEventPort& port) {
  // The observer belongs to the loop and ends with it, not with the mailbox.
  auto observer =
      kj::heap<kj::UnixEventPort::FdObserver>(port, bell_.get(), kj::UnixEventPort::FdObserver::OBSERVE_READ);
  auto promise = loop(*observer);
  return promise.attach(kj::mv(observer));
}

kj::Promise<void> Mailbox::loop(kj::UnixEventPort::FdObserver& observer) {
  return observer.whenBecomesReadable().then([this, &observer]() {
    std::uint64_t count = 0;
    // EAGAIN: rung and emptied between; what is posted is taken all the same.
    (void)!::read(bell_.get(), &count, sizeof(count));
    run_posted();
    return loop(observer);
  });
}

void Mailbox::run_posted() {
  std::vector<std::function<void()>> tasks;
  {
    const std::lock_guard lock(mutex_);
    tasks.swap(tasks_);
  }
  for (auto& task : tasks) {
    KJ_IF_MAYBE (thrown, kj::runCatchingExceptions(task)) {
      failed_(thrown->getDescription().cStr());
    }
  }
}

}  // namespace railhead::daemon
