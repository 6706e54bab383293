// Numbers under which one peer daemon names our rings in its immediates. A number that comes back is used again under
// the next generation, and as late as possible, so that a straggler of its last use is told apart. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "ipc/status.hpp"
#include "ipc/wire.hpp"

namespace railhead::daemon::rail {

struct RingName {
  std::uint16_t number = 0;
  std::uint8_t generation = 0;

  friend bool operator==(const RingName&, const RingName&) = default;
};

class RingNumbers {
 public:
  // Numbers 1 ... count - 1; 0 is the control ring.
  explicit RingNumbers(std::uint32_t count) : next_generation_(count, 0) {
    for (std::uint32_t n = 1; n < count; ++n) free_.push_back(static_cast<std::uint16_t>(n));
  }

  Result<RingName> take() {
    if (free_.empty()) {
      return fail(Code::limit_exceeded, "all " + std::to_string(next_generation_.size() - 1) +
                                            " ring numbers towards one host are in use: close a group that spans it, "
                                            "or raise the daemon's rings per peer");
    }
    const std::uint16_t number = free_.front();
    free_.pop_front();
    return RingName{number, next_generation_[number]};
  }

  void give_back(RingName name) {
    next_generation_[name.number] = static_cast<std::uint8_t>((name.generation + 1U) & kGenerationMask);
    free_.push_back(name.number);
  }

  [[nodiscard]] std::size_t available() const noexcept { return free_.size(); }

 private:
  static constexpr unsigned kGenerationMask = (1U << ipc::Immediate::kGenerationBits) - 1;

  std::deque<std::uint16_t> free_;
  std::vector<std::uint8_t> next_generation_;
};

}  // namespace railhead::daemon::rail
