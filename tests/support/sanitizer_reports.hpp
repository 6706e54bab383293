// What a sanitizer has to say of a child of the test (a daemon, a rank, and their children) would be lost with the
// child's log: it goes to a folder of this program, and fails the test that runs.
#pragma once

#include <string>

#include "tests/support/child_process.hpp"

namespace railhead::test {

// For this program and the tests it will run: children that are started from now on report there. True.
bool read_sanitizer_reports();

// Fails the test for each log below this folder in which a sanitizer speaks: UBSan beside ASan keeps to standard error.
void read_logs(const std::string& folder);

// A child that is in the middle of a report may end it before it is killed.
void await_report(ChildProcess& child);

// As ChildProcess::wait() tells the end: by a signal of the program's own making, or by a sanitizer.
bool is_crash(int end);

}  // namespace railhead::test
