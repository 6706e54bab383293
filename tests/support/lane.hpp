// How much a test does: the quick lane by default, more with RAILHEAD_SOAK=1, less under a sanitizer.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace railhead::test {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif
#else
inline constexpr bool kThreadSanitizer = false;
#endif

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif
#else
inline constexpr bool kAddressSanitizer = false;
#endif

inline constexpr bool kSanitized = kThreadSanitizer || kAddressSanitizer;

inline bool soak() {
  const char* const asked = std::getenv("RAILHEAD_SOAK");
  return asked != nullptr && std::string(asked) == "1";
}

// What the long forms that go on with new seeds may take together: RAILHEAD_SOAK_HOURS, 1 unless said.
inline std::chrono::seconds soak_time() {
  const char* const asked = std::getenv("RAILHEAD_SOAK_HOURS");
  return std::chrono::seconds(static_cast<std::int64_t>((asked != nullptr ? std::strtod(asked, nullptr) : 1.0) * 3600));
}

// Repetitions of a test: ThreadSanitizer slows everything by 10 and more.
inline std::uint32_t rounds(std::uint32_t quick, std::uint32_t long_form) {
  if (soak()) return long_form;
  return kThreadSanitizer ? quick / 20 + 1 : kAddressSanitizer ? quick / 4 + 1 : quick;
}

// RAILHEAD_SEED, for a run with other cases.
inline std::uint64_t seed(std::uint64_t usual) {
  const char* const asked = std::getenv("RAILHEAD_SEED");
  return asked != nullptr ? std::strtoull(asked, nullptr, 10) : usual;
}

}  // namespace railhead::test
