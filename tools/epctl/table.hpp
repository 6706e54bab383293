// Aligned text for terminals.
#pragma once

#include <string>
#include <vector>

namespace railhead::epctl {

// Text of other processes (job labels, reasons) must not steer the terminal: control characters become '?'.
std::string printable(const std::string& text);

// Columns as wide as their widest cell, two spaces between; numbers to the right. `rows` have as many cells as
// `columns`.
std::string format_table(const std::vector<std::string>& columns, const std::vector<std::vector<std::string>>& rows);

// 1536 -> "1.5 KiB"
std::string bytes_text(double bytes);
// 75.2 -> "1 min 15 s"
std::string duration_text(double seconds);

}  // namespace railhead::epctl
