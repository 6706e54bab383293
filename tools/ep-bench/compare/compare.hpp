// `ep-bench compare`: the product beside its peers, each figure against its budget.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace railhead::bench {

struct CompareOptions {
  std::vector<std::string> only;  // keys; empty: all
  std::uint32_t pairs = 30;
  bool json = false;
  bool rates = false;  // print rates, not budgets
  bool no_fail = false;
};

void add_compare_options(CLI::App& app, CompareOptions& options);

// Exit code: 0, 1 when a figure missed its budget (unless no_fail) or the run was interrupted, 2 usage.
int compare(const CompareOptions& options);

}  // namespace railhead::bench
