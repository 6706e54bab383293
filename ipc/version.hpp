// What the two sides of a connection compare before they talk.
#pragma once

#include <cstdint>
#include <string_view>

namespace railhead::ipc {

// Raised with every change of the control protocol, a shared layout or the rail format that an older side would
// misread.
inline constexpr std::uint32_t kProtocolVersion = 2;

// One bit per optional ability that a side may lack without harm. None so far.
inline constexpr std::uint64_t kFeatures = 0;

// For people: "0.1.0", followed by the commit where the build knew it: "0.1.0 (082e4eb-dirty)".
std::string_view build_string() noexcept;

}  // namespace railhead::ipc
