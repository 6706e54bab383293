// What a rank can do to the words that it shares with the other ranks of its host.
#pragma once

#include <string>

#include "railhead/railhead.hpp"

namespace railhead::test {

// Overwrites, in the newest group of this process, all of whose ranks are on one host:
//   slice      this rank's counts of operation 1, on the board
//   span       the place that this rank offers for its rows of operation 1: 2^62 rows at the end of its first segment
//   poison     the group's poison word, with a code that means success
//   wake       the poison bit of rank 0's wake word alone
//   completed  rank 0's count of complete operations
void poke(const rh_group_config& config, const std::string& what);

}  // namespace railhead::test
