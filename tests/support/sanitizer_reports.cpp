#include "tests/support/sanitizer_reports.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <system_error>

#include "tests/support/lane.hpp"

namespace railhead::test {
namespace {

namespace fs = std::filesystem;

constexpr int kSanitizerExit = 66;

fs::path& folder() {
  static fs::path path;
  return path;
}

void add_options(const char* variable) {
  const char* const before = std::getenv(variable);
  // handle_...=2: epd takes these signals back from libraries, and would take them from the sanitizer.
  const std::string options =
      (before == nullptr ? std::string() : std::string(before) + ":") + "exitcode=" + std::to_string(kSanitizerExit) +
      ":log_path=" + (folder() / "report").string() + ":handle_segv=2:handle_sigbus=2:handle_sigill=2:handle_sigfpe=2";
  ::setenv(variable, options.c_str(), 1);
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Reports final : public testing::EmptyTestEventListener {
  // Not sooner: a program that only lists its tests leaves nothing behind.
  void OnTestProgramStart(const testing::UnitTest&) override {
    char name[] = "/tmp/railhead-reports-XXXXXX";
    if (::mkdtemp(name) == nullptr) throw std::runtime_error("mkdtemp failed");
    folder() = name;
    fs::permissions(folder(), fs::perms::all | fs::perms::sticky_bit);  // some children are other users'
    // UBSan beside ASan has options of its own (g++).
    for (const char* const variable : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"}) add_options(variable);
  }
  // After the fixture: whoever it started has ended, or is somebody else's.
  void OnTestEnd(const testing::TestInfo&) override {
    for (const auto& entry : fs::directory_iterator(folder())) {
      ADD_FAILURE() << "a sanitizer reported of a child, " << entry.path().filename().string() << ":\n"
                    << text_of(entry.path());
      std::error_code gone;
      fs::remove(entry.path(), gone);
    }
  }
  void OnTestProgramEnd(const testing::UnitTest&) override {
    std::error_code gone;
    fs::remove_all(folder(), gone);
  }
};

}  // namespace

bool read_sanitizer_reports() {
  if (kSanitized) testing::UnitTest::GetInstance()->listeners().Append(new Reports);
  return true;
}

void read_logs(const std::string& folder_of_logs) {
  if (!kSanitized) return;
  for (const auto& entry : fs::recursive_directory_iterator(folder_of_logs)) {
    if (entry.path().extension() != ".log") continue;
    const std::string text = text_of(entry.path());
    const bool said =
        text.find(": runtime error: ") != std::string::npos || text.find("Sanitizer:") != std::string::npos;
    if (said) ADD_FAILURE() << "a sanitizer speaks in " << entry.path().filename().string() << ":\n" << text;
  }
}

void await_report(ChildProcess& child) {
  if (!kSanitized || child.pid() <= 0) return;
  const fs::path file = folder() / ("report." + std::to_string(child.pid()));
  if (fs::exists(file)) child.wait(Milliseconds(20'000));
}

bool is_crash(int end) {
  for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) {
    if (end == 1000 + number) return true;
  }
  return kSanitized && end == kSanitizerExit;
}

}  // namespace railhead::test
