// Values of keys from text and to text.
#include <algorithm>
#include <charconv>
#include <limits>

#include "daemon/config/key_table.hpp"

namespace railhead::config {
namespace {

constexpr std::int64_t kMaxListed = std::numeric_limits<std::uint32_t>::max();  // user ids have 32 bits
constexpr std::size_t kMaxListLength = 4096;

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

bool parse_number(std::string_view text, std::int64_t& value, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc{} && end == text.data() + text.size();
}

// "0-3,8", ascending and without repeats.
bool parse_list(std::string_view text, std::vector<std::int64_t>& list) {
  std::vector<std::int64_t> result;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, comma);
    const std::size_t dash = item.find('-');
    std::int64_t first = 0;
    std::int64_t last = 0;
    if (!parse_number(item.substr(0, dash), first)) return false;
    last = first;
    if (dash != std::string_view::npos && !parse_number(item.substr(dash + 1), last)) return false;
    if (first < 0 || last < first || last > kMaxListed) return false;
    if (static_cast<std::size_t>(last - first) + result.size() >= kMaxListLength) return false;
    for (std::int64_t i = first; i <= last; ++i) result.push_back(i);
    if (comma + 1 == text.size()) return false;  // a comma at the end
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  list = std::move(result);
  return true;
}

std::string list_text(const std::vector<std::int64_t>& list) {
  std::string text;
  for (std::size_t i = 0; i < list.size(); ++i) {
    std::size_t end = i;
    while (end + 1 < list.size() && list[end + 1] == list[end] + 1) ++end;
    if (!text.empty()) text += ',';
    text += std::to_string(list[i]);
    if (end > i) text += "-" + std::to_string(list[end]);
    i = end;
  }
  return text;
}

std::string octal(std::uint32_t bits) {
  char digits[16];
  const auto result = std::to_chars(digits, digits + sizeof digits, bits, 8);
  return "0" + std::string(digits, result.ptr);
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

bool set_text(const Key& key, std::string_view text, std::string& value) {
  const bool control = std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  const bool listed =
      key.choices.empty() || std::find(key.choices.begin(), key.choices.end(), text) != key.choices.end();
  if (control || !listed) return false;
  value = text;
  return true;
}

bool set_integer(const Key& key, std::string_view text, std::int64_t& value) {
  std::int64_t number = 0;
  if (!parse_number(text, number) || number < key.min || number > key.max) return false;
  value = number;
  return true;
}

bool set_bool(std::string_view text, bool& value) {
  if (text != "true" && text != "false") return false;
  value = text == "true";
  return true;
}

bool set_mode(std::string_view text, FileMode& value) {
  std::int64_t bits = 0;
  if (!parse_number(text, bits, 8) || bits < 0 || bits > 0777) return false;
  value.bits = static_cast<std::uint32_t>(bits);
  return true;
}

std::string expected(const Key& key) {
  Config scratch;
  return std::visit(Overloaded{[&](std::string*) {
                                 return key.choices.empty() ? std::string("text without control characters")
                                                            : "one of " + type_text(key);
                               },
                               [&](std::int64_t*) {
                                 return "an integer of " + std::to_string(key.min) + ".." + std::to_string(key.max) +
                                        (key.unit.empty() ? "" : " " + std::string(key.unit));
                               },
                               [](bool*) { return std::string("true or false"); },
                               [](FileMode*) { return std::string("an octal mode in quotes, \"0000\"..\"0777\""); },
                               [](std::vector<std::int64_t>*) {
                                 return "a list like \"0-3,8\" of at most " + std::to_string(kMaxListLength) +
                                        " numbers";
                               }},
                    key.target(scratch));
}

}  // namespace

std::string type_text(const Key& key) {
  Config scratch;
  return std::visit(
      Overloaded{[&](std::string*) {
                   std::string text;
                   for (const std::string_view choice : key.choices) {
                     text += (text.empty() ? "" : " | ") + std::string(choice);
                   }
                   return key.choices.empty() ? std::string("string") : text;
                 },
                 [](std::int64_t*) { return std::string("integer"); }, [](bool*) { return std::string("true/false"); },
                 [](FileMode*) { return std::string("octal mode"); },
                 [](std::vector<std::int64_t>*) { return std::string("number list"); }},
      key.target(scratch));
}

std::string value_text(const Key& key, const Config& config) {
  Config copy = config;  // the table's accessors give writable places
  return std::visit(
      Overloaded{[](std::string* value) { return *value; }, [](std::int64_t* value) { return std::to_string(*value); },
                 [](bool* value) { return std::string(*value ? "true" : "false"); },
                 [](FileMode* value) { return octal(value->bits); },
                 [](std::vector<std::int64_t>* value) { return list_text(*value); }},
      key.target(copy));
}

std::string value_toml(const Key& key, const Config& config) {
  Config scratch;
  const Target target = key.target(scratch);
  const bool bare = std::holds_alternative<std::int64_t*>(target) || std::holds_alternative<bool*>(target);
  return bare ? value_text(key, config) : quoted(value_text(key, config));
}

Status set_value(const Key& key, Config& config, std::string_view text) {
  const bool good = std::visit(Overloaded{[&](std::string* value) { return set_text(key, text, *value); },
                                          [&](std::int64_t* value) { return set_integer(key, text, *value); },
                                          [&](bool* value) { return set_bool(text, *value); },
                                          [&](FileMode* value) { return set_mode(text, *value); },
                                          [&](std::vector<std::int64_t>* value) { return parse_list(text, *value); }},
                               key.target(config));
  if (good) return {};
  return {Code::invalid_argument,
          std::string(key.name) + " is '" + std::string(text.substr(0, 200)) + "': expected " + expected(key)};
}

}  // namespace railhead::config
