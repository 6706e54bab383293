#include "daemon/fabric/fault_config.hpp"

#include <array>
#include <charconv>
#include <sstream>

namespace railhead::fabric {
namespace {

struct CountKey {
  std::string_view name;
  std::uint64_t FaultConfig::*member;
  std::uint64_t limit;
};
struct ShareKey {
  std::string_view name;
  double FaultConfig::*member;
};

// Receivers tell immediates apart over 1024 sequence numbers: what is held back longer than a part of that would be
// a fault that no network shows.
constexpr std::uint64_t kMaxHold = 256;
constexpr std::uint64_t kAny = UINT64_MAX;

constexpr std::array kCounts = {
    CountKey{"seed", &FaultConfig::seed, kAny},
    CountKey{"delay", &FaultConfig::delay, kMaxHold},
    CountKey{"reorder", &FaultConfig::reorder, kMaxHold},
    CountKey{"fail_nth", &FaultConfig::fail_nth, kAny},
    CountKey{"drop_after", &FaultConfig::drop_after, kAny},
    CountKey{"slow", &FaultConfig::slow, kAny},
};
constexpr std::array kShares = {ShareKey{"dup", &FaultConfig::dup}, ShareKey{"resend", &FaultConfig::resend}};

tl::unexpected<Status> bad_item(std::string_view item, const std::string& why) {
  return fail(Code::invalid_argument, "fault '" + std::string(item) + "': " + why +
                                          "; known are seed, delay, reorder, dup, resend, fail_nth, drop_after, slow, "
                                          "for example seed=1,reorder=8,dup=0.05");
}

template <class T>
bool parse_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

Result<void> parse_item(std::string_view item, FaultConfig& config) {
  const auto equals = item.find('=');
  if (equals == std::string_view::npos) return bad_item(item, "has no '='");
  const std::string_view name = item.substr(0, equals);
  const std::string_view text = item.substr(equals + 1);
  for (const CountKey& key : kCounts) {
    if (key.name != name) continue;
    std::uint64_t value = 0;
    if (!parse_number(text, value)) return bad_item(item, "is not a whole number from 0");
    if (value > key.limit) return bad_item(item, "is above the limit of " + std::to_string(key.limit));
    config.*key.member = value;
    return {};
  }
  for (const ShareKey& key : kShares) {
    if (key.name != name) continue;
    double value = 0;
    if (!parse_number(text, value) || !(value >= 0 && value <= 1)) return bad_item(item, "is not a share from 0 to 1");
    config.*key.member = value;
    return {};
  }
  return bad_item(item, "has an unknown name");
}

}  // namespace

bool FaultConfig::any() const {
  return delay || reorder || dup > 0 || resend > 0 || fail_nth || drop_after || slow;
}

std::string FaultConfig::to_string() const {
  std::ostringstream text;
  text << "seed=" << seed;
  for (const CountKey& key : kCounts) {
    if (key.name != "seed" && this->*key.member) text << ',' << key.name << '=' << this->*key.member;
  }
  for (const ShareKey& key : kShares) {
    if (this->*key.member > 0) text << ',' << key.name << '=' << this->*key.member;
  }
  return text.str();
}

Result<FaultConfig> parse_faults(std::string_view text) {
  FaultConfig config;
  while (!text.empty()) {
    const auto comma = text.find(',');
    if (auto parsed = parse_item(text.substr(0, comma), config); !parsed) return fail(parsed.error());
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) return bad_item("", "nothing follows the last comma");
  }
  return config;
}

}  // namespace railhead::fabric
