// The line that shows how far a run is, on a terminal only.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>

#include "tools/ep-bench/rank/control.hpp"

namespace railhead::bench {

class Progress {
 public:
  explicit Progress(std::uint64_t rounds) : rounds_(rounds), terminal_(isatty(STDERR_FILENO) == 1) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }

  // `done` of all rounds; the rate is that of the last finished round (of `finished` in this command) on rank 0.
  template <class Sample>
  void show(std::uint64_t done, Sample&& sample, std::uint32_t finished) {
    if (!terminal_ || finished == 0) return;
    const RoundSample last = sample(finished - 1);
    const double rate =
        last.total_ns == 0 ? 0 : static_cast<double>(last.received_bytes) / static_cast<double>(last.total_ns);
    std::fprintf(stderr, "\rround %llu of %llu, %.2f GB/s per rank\033[K", static_cast<unsigned long long>(done),
                 static_cast<unsigned long long>(rounds_), rate);
    shown_ = true;
  }

 private:
  std::uint64_t rounds_;
  bool terminal_;
  bool shown_ = false;
};

}  // namespace railhead::bench
