// The daemon's log: one line per message on standard error, or the journal with each field of its own.
//
//   journalctl -u epd RAILHEAD_GROUP=3f... RAILHEAD_RANK=2
//
// A Log is made by main and handed down; any thread may write. Nothing here throws or blocks for long.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ipc/status.hpp"

namespace spdlog {
class logger;
}

namespace railhead::log {

enum class Level { trace, debug, info, warning, error };

// What a message is about; empty ones are left out.
struct Fields {
  std::string_view group = {};                // RAILHEAD_GROUP
  std::optional<std::uint64_t> session = {};  // RAILHEAD_SESSION
  std::optional<std::uint32_t> rank = {};     // RAILHEAD_RANK
  std::optional<std::uint64_t> op = {};       // RAILHEAD_OP
  std::string_view peer = {};                 // RAILHEAD_PEER, a host id
  std::string_view job = {};                  // RAILHEAD_JOB, the label from the client's hello
  std::optional<Code> code = {};              // RAILHEAD_CODE, by name
};

struct LogOptions {
  std::string level = "info";   // trace | debug | info | warning | error
  std::string target = "auto";  // journal | stderr | auto: the journal if systemd connected standard error to it
  std::string identifier = "epd";
};

class Log {
 public:
  // Errors: invalid_argument (level or target).
  static Result<Log> make(const LogOptions& options);

  void write(Level level, std::string_view text, const Fields& fields = {}) const;
  void debug(std::string_view text, const Fields& fields = {}) const { write(Level::debug, text, fields); }
  void info(std::string_view text, const Fields& fields = {}) const { write(Level::info, text, fields); }
  void warning(std::string_view text, const Fields& fields = {}) const { write(Level::warning, text, fields); }
  void error(std::string_view text, const Fields& fields = {}) const { write(Level::error, text, fields); }
  // A failure with its code: the text, then the status's sentence.
  void failure(Level level, std::string_view text, const Status& status, Fields fields = {}) const;

  // Any thread.
  [[nodiscard]] Status set_level(std::string_view level) const;
  [[nodiscard]] bool uses_journal() const noexcept { return journal_; }

 private:
  Log(std::shared_ptr<spdlog::logger> logger, bool journal, std::string identifier);

  std::shared_ptr<spdlog::logger> logger_;  // holds the level; writes when the target is standard error
  bool journal_;
  std::string identifier_;
};

// "text group=.. rank=..": the line's form on standard error.
std::string line_text(std::string_view text, const Fields& fields);

}  // namespace railhead::log
