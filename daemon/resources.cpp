#include "daemon/resources.hpp"

#include <sys/resource.h>

#include <cerrno>
#include <filesystem>
#include <future>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace railhead::daemon {
namespace {

// 0 where /proc is not there, or has no descriptor left to look at it.
std::size_t open_descriptors() {
  std::error_code error;
  std::size_t count = 0;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end; it.increment(error)) {
    ++count;
  }
  return count == 0 ? 0 : count - 1;  // one is the folder itself
}

Status check_descriptors(std::size_t needed) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return system_status("getrlimit of file descriptors", errno);
  const std::size_t taken = open_descriptors();
  if (limit.rlim_cur >= taken + needed) return {};
  return {Code::limit_exceeded, "the daemon needs " + std::to_string(needed) + " file descriptors to start, and of " +
                                    std::to_string(limit.rlim_cur) + " " + std::to_string(taken) +
                                    " are taken: raise ulimit -n, or the unit's LimitNOFILE"};
}

// No limit tells how many there still may be (other processes of the user count too, and the cgroup's): all are had at
// once, for a moment.
Status check_threads(std::size_t needed) {
  std::promise<void> all_made;
  std::shared_future<void> go(all_made.get_future());
  std::vector<std::thread> threads;
  threads.reserve(needed);
  int error = 0;
  try {
    while (threads.size() < needed) threads.emplace_back([go] { go.wait(); });
  } catch (const std::system_error& e) {
    error = e.code().value();
  }
  const std::size_t had = threads.size();
  all_made.set_value();
  for (std::thread& thread : threads) thread.join();
  if (error == 0) return {};
  return {Code::limit_exceeded,
          system_status("the daemon needs " + std::to_string(needed) + " threads to start and gets " +
                            std::to_string(had) + " (look at ulimit -u, the unit's TasksMax and the cgroup's pids.max)",
                        error)
              .message()};
}

}  // namespace

Status check_resources(std::size_t proxies) {
  if (Status status = check_descriptors(descriptors_needed(proxies)); !status.ok()) return status;
  return check_threads(threads_needed(proxies));
}

}  // namespace railhead::daemon
