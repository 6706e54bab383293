// The factors of the conformance cover and the cases that its rows stand for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/case_runner.hpp"

namespace railhead::test {

struct CoverCase {
  CaseSpec spec;
  std::vector<CallStyle> styles;
  std::uint32_t hosts = 1;
};

struct Cover {
  std::vector<CoverCase> cases;
  std::size_t pairs = 0;
  std::size_t impossible = 0;  // pairs beyond the cap

  [[nodiscard]] std::string summary(std::uint64_t seed, std::uint64_t cap) const;
};

// cap: bytes that one case may move, about; it bounds memory and time, and rules combinations out.
Cover make_cover(std::uint64_t seed, std::uint64_t cap);

}  // namespace railhead::test
