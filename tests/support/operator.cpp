#include "tests/support/operator.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>

namespace railhead::test {
namespace {

epctl::Options options_for(const std::string& socket) {
  epctl::Options options;
  options.socket = socket;
  options.timeout_s = 10;
  return options;
}

}  // namespace

Json snapshot(const std::string& socket, const std::string& what) {
  auto seen = epctl::snapshot(options_for(socket), what);
  if (!seen) throw std::runtime_error(seen.error().to_string());
  return std::move(*seen);
}

void evict(const std::string& socket, const epctl::Eviction& eviction) {
  if (auto done = epctl::evict(options_for(socket), eviction); !done) {
    throw std::runtime_error(done.error().to_string());
  }
}

void expect_faults(const std::string& socket) try {
  const Json status = snapshot(socket, "status");
  ASSERT_TRUE(status.contains("injected_faults")) << "fabric.fault was ignored: " << status.dump();
  // Faults have their probabilities: so many chances do not all pass without one.
  constexpr std::uint64_t kEnough = 100;
  std::uint64_t writes = 0;
  std::uint64_t immediates = 0;
  const Json peers = snapshot(socket, "peers");
  for (const Json& rail : peers["rails"]) {
    writes += rail["tx_writes"].get<std::uint64_t>();
    immediates += rail["rx_immediates"].get<std::uint64_t>();
  }
  if (writes >= kEnough && immediates >= kEnough) {
    EXPECT_GT(status["injected_faults"], 0) << status.dump();
  }
} catch (const std::exception& e) {
  ADD_FAILURE() << "whether faults were injected cannot be asked: " << e.what();
}

}  // namespace railhead::test
