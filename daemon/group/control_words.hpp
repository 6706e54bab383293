// Control words: memory that the daemon makes, shares with clients, and pays for.
#pragma once

#include <cstdint>
#include <string_view>

#include "ipc/segment.hpp"

namespace railhead::daemon {

// Size sealed, and no further seal: one that forbids punching would keep take_back() from its work.
Result<ipc::Segment> make_control_words(std::string_view name, std::uint64_t bytes);

// Unmaps it and gives its pages back. A client may keep its own mapping as long as it likes: what it touches from here
// on is charged to it. Only when no honest client looks at the words any more: they read as zero.
void take_back(ipc::Segment& words);

}  // namespace railhead::daemon
