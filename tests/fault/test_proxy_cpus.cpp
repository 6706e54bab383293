// Where the proxies of a daemon run.
#include <sched.h>

#include <fstream>
#include <iterator>

#include "tests/fault/world.hpp"

namespace railhead::test {
namespace {

using testing::HasSubstr;

std::string contents(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The line of that name in the status file of the thread of that name; empty when there is none.
std::string thread_status(pid_t pid, const std::string& thread, const std::string& line) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    const std::string text = contents(task.path() / "status");
    const std::size_t at = text.find("\n" + line + ":\t");
    if (!text.starts_with("Name:\t" + thread + "\n") || at == std::string::npos) continue;
    const std::size_t begin = at + line.size() + 3;
    return text.substr(begin, text.find('\n', begin) - begin);
  }
  return {};
}

int first_allowed_cpu() {
  cpu_set_t allowed;
  EXPECT_EQ(::sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  int first = 0;
  while (!CPU_ISSET(first, &allowed)) ++first;
  return first;
}

TEST(ProxyCpus, AreWhereTheProxiesRun) {
  const std::string cpu = std::to_string(first_allowed_cpu());
  World world(1, {"--proxy.cpus", cpu, "--proxy.threads", "2"});
  const pid_t pid = world.host(0).process().pid();
  for (const char* const thread : {"epd-proxy0", "epd-proxy1"}) {
    // A thread binds itself when it begins, maybe after the daemon has become ready.
    EXPECT_TRUE(eventually([&] { return thread_status(pid, thread, "Cpus_allowed_list") == cpu; }))
        << thread << ": " << thread_status(pid, thread, "Cpus_allowed_list");
  }
}

TEST(ProxyCpus, OneThatIsNotThereIsRefused) {
  const World world(0);
  for (const char* const question : {"--check-config", "--log.level=info"}) {
    const std::string log = world.path(std::string("log") + question);
    ChildProcess epd(
        {EPD_PROGRAM, "--config", "none", "--socket", world.path("sock"), "--proxy.cpus", "70000", question},
        {"IPATH_NO_BACKTRACE=1"}, log);
    EXPECT_EQ(epd.wait(Milliseconds(20'000)), 1) << question;
    EXPECT_THAT(contents(log), HasSubstr("proxy.cpus names 70000"));
  }
}

}  // namespace
}  // namespace railhead::test
