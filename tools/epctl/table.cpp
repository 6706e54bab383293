#include "tools/epctl/table.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string_view>

namespace railhead::epctl {
namespace {

// Columns on a terminal: UTF-8 continuation bytes take none.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.-") == std::string::npos;
}

bool is_numeric(const std::vector<std::vector<std::string>>& rows, std::size_t column) {
  bool any = false;
  for (const auto& row : rows) {
    if (row[column] == "-") continue;
    if (!is_number(row[column])) return false;
    any = true;
  }
  return any;
}

void append(std::string& line, const std::string& cell, std::size_t width, bool right, bool last) {
  const std::string fill(width - width_of(cell), ' ');
  if (!line.empty()) line += "  ";
  line += right ? fill + cell : last ? cell : cell + fill;
}

}  // namespace

std::string printable(const std::string& text) {
  std::string out = text;
  std::replace_if(
      out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  // U+0080 to U+009F, which some terminals obey too.
  for (std::size_t i = 0; i + 1 < out.size(); ++i) {
    if (static_cast<unsigned char>(out[i]) == 0xc2 && (static_cast<unsigned char>(out[i + 1]) & 0xe0U) == 0x80) {
      out.replace(i, 2, "?");
    }
  }
  return out;
}

std::string format_table(const std::vector<std::string>& columns, const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  std::vector<bool> right;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    std::size_t width = width_of(columns[c]);
    for (const auto& row : rows) width = std::max(width, width_of(row[c]));
    widths.push_back(width);
    right.push_back(is_numeric(rows, c));
  }
  const auto line_of = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t c = 0; c < cells.size(); ++c) append(line, cells[c], widths[c], right[c], c + 1 == cells.size());
    return line + "\n";
  };
  std::string out = line_of(columns);
  for (const auto& row : rows) out += line_of(row);
  return out;
}

std::string bytes_text(double bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof(text), unit == 0 ? "%.0f %s" : "%.1f %s", bytes, kUnits[unit]);
  return text;
}

std::string duration_text(double seconds) {
  char text[48];
  const auto whole = static_cast<std::int64_t>(seconds);
  if (seconds < 60) {
    std::snprintf(text, sizeof(text), "%.1f s", seconds);
  } else if (whole < 3600) {
    std::snprintf(text, sizeof(text), "%lld min %lld s", static_cast<long long>(whole / 60),
                  static_cast<long long>(whole % 60));
  } else if (whole < 86'400) {
    std::snprintf(text, sizeof(text), "%lld h %lld min", static_cast<long long>(whole / 3600),
                  static_cast<long long>(whole % 3600 / 60));
  } else {
    std::snprintf(text, sizeof(text), "%lld d %lld h", static_cast<long long>(whole / 86'400),
                  static_cast<long long>(whole % 86'400 / 3600));
  }
  return text;
}

}  // namespace railhead::epctl
