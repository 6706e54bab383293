#include "daemon/log/log.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <syslog.h>
#include <unistd.h>
// The caller's place would be this file's on every line.
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include <array>
#include <cstdlib>
#include <utility>
#include <vector>

namespace railhead::log {
namespace {

struct LevelNames {
  std::string_view name;
  spdlog::level::level_enum spdlog_level;
  int priority;
};

// In the order of Level.
constexpr std::array<LevelNames, 5> kLevels = {{{"trace", spdlog::level::trace, LOG_DEBUG},
                                                {"debug", spdlog::level::debug, LOG_DEBUG},
                                                {"info", spdlog::level::info, LOG_INFO},
                                                {"warning", spdlog::level::warn, LOG_WARNING},
                                                {"error", spdlog::level::err, LOG_ERR}}};

using NamedFields = std::vector<std::pair<std::string_view, std::string>>;

NamedFields named(const Fields& fields) {
  NamedFields result;
  if (!fields.group.empty()) result.emplace_back("GROUP", fields.group);
  if (fields.session) result.emplace_back("SESSION", std::to_string(*fields.session));
  if (fields.rank) result.emplace_back("RANK", std::to_string(*fields.rank));
  if (fields.op) result.emplace_back("OP", std::to_string(*fields.op));
  if (!fields.peer.empty()) result.emplace_back("PEER", fields.peer);
  if (!fields.job.empty()) result.emplace_back("JOB", fields.job);
  if (fields.code) result.emplace_back("CODE", code_name(*fields.code));
  return result;
}

// systemd tells the device and inode of the stream that it connected: a redirected standard error does not match.
bool stderr_is_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat info {};
  if (stream == nullptr || ::fstat(STDERR_FILENO, &info) != 0) return false;
  return std::to_string(info.st_dev) + ":" + std::to_string(info.st_ino) == stream;
}

void send_to_journal(int priority, const std::string& identifier, std::string_view text, const Fields& fields) {
  std::vector<std::string> lines = {"MESSAGE=" + std::string(text), "PRIORITY=" + std::to_string(priority),
                                    "SYSLOG_IDENTIFIER=" + identifier};
  for (const auto& [name, value] : named(fields)) lines.push_back("RAILHEAD_" + std::string(name) + "=" + value);
  std::vector<iovec> parts;
  parts.reserve(lines.size());
  for (std::string& line : lines) parts.push_back({line.data(), line.size()});
  sd_journal_sendv(parts.data(), static_cast<int>(parts.size()));  // a journal that is gone must not stop the daemon
}

}  // namespace

Log::Log(std::shared_ptr<spdlog::logger> logger, bool journal, std::string identifier)
    : logger_(std::move(logger)), journal_(journal), identifier_(std::move(identifier)) {}

Result<Log> Log::make(const LogOptions& options) {
  const bool known = options.target == "auto" || options.target == "journal" || options.target == "stderr";
  if (!known) {
    return fail(Code::invalid_argument, "log.target is '" + options.target + "': expected auto, journal or stderr");
  }
  const bool journal = options.target == "journal" || (options.target == "auto" && stderr_is_journal());
  // Not through spdlog's registry: it is global, and two daemons of one process must not share it.
  auto logger = std::make_shared<spdlog::logger>(options.identifier, std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %n %l %v");
  Log log(std::move(logger), journal, options.identifier);
  if (Status status = log.set_level(options.level); !status.ok()) return fail(std::move(status));
  return log;
}

void Log::write(Level level, std::string_view text, const Fields& fields) const {
  const LevelNames& names = kLevels[static_cast<std::size_t>(level)];
  if (!logger_->should_log(names.spdlog_level)) return;
  if (journal_) {
    send_to_journal(names.priority, identifier_, text, fields);
  } else {
    logger_->log(names.spdlog_level, spdlog::string_view_t(line_text(text, fields)));
  }
}

void Log::failure(Level level, std::string_view text, const Status& status, Fields fields) const {
  fields.code = status.code();
  write(level, std::string(text) + ": " + status.message(), fields);
}

Status Log::set_level(std::string_view level) const {
  for (const LevelNames& names : kLevels) {
    if (names.name != level) continue;
    logger_->set_level(names.spdlog_level);
    return {};
  }
  return {Code::invalid_argument,
          "log.level is '" + std::string(level.substr(0, 64)) + "': expected trace, debug, info, warning or error"};
}

std::string line_text(std::string_view text, const Fields& fields) {
  std::string line(text);
  for (const auto& [name, value] : named(fields)) {
    line += ' ';
    for (const char c : name) line += static_cast<char>(c - 'A' + 'a');
    line += '=' + value;
  }
  // One message is one line, whatever a client or a peer put into it.
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return line;
}

}  // namespace railhead::log
