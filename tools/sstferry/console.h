// Output to the operator: standard output for results, standard error for logs
// and progress, exit codes.
#pragma once

#include <cstddef>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "rocksdb/status.h"
#include "sstferry/options.h"
#include "tools/sstferry/command_arguments.h"

namespace sstferry {

inline constexpr int kExitUsage = 2;

// Prints "sstferry pull: MESSAGE" and "see sstferry pull --help" to standard
// error and returns kExitUsage. `command` may be empty.
int ReportUsage(const std::string& command, const rocksdb::Status& status);

// "sstferry pull: NO_SPACE: MESSAGE (WHERE)" without control characters.
std::string FailureLine(const std::string& command,
                        const rocksdb::Status& status,
                        const std::string& where);

// Where standard error ends.
struct Screen {
  bool is_terminal = false;
  bool is_journal = false;
  std::function<size_t()> columns;  // of the terminal, at this moment
};
// Returns what this process sees of a stream of its own.
Screen ScreenOf(FILE* file);

// Standard error, where log lines and one redrawn progress line share a
// terminal. Lines have colours on a terminal only, and not with NO_COLOR; lines
// to the journal begin with their priority, and leave the time to it.
//
// Threads: all members from any thread.
class Console {
 public:
  explicit Console(const CommonArguments& arguments, FILE* err = stderr);
  // `screen`: where `err` ends if another process passes it on.
  Console(const CommonArguments& arguments, FILE* err, const Screen& screen);
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  ~Console();

  bool is_terminal() const { return screen_.is_terminal; }
  bool logs_json() const { return format_ == LogFormat::kJson; }

  // A line whatever the log level; as text without time and level.
  void WriteLine(LogLevel level, const std::string& line);
  void WriteError(const std::string& line) {
    WriteLine(LogLevel::kError, line);
  }
  // Through spdlog, with time and level.
  void Log(LogLevel level, const std::string& text);
  LogFunction log_function();
  void set_log_level(LogLevel level);
  // The transfer that lines are about from now on; a line that names another
  // one is about that.
  void set_transfer(const std::string& id);

  // One plain line.
  void WriteProgress(const std::string& line);
  // Replaces the line drawn before; cut to the terminal's width.
  void RedrawProgress(const std::string& line);
  // Leaves the last redrawn line standing.
  void EndProgress();
  // Takes it away.
  void DropProgress();

 private:
  struct Logger;
  friend struct Logger;
  void WriteAbove(const std::string& text);
  std::string JsonLine(const std::string& time, LogLevel level,
                       const std::string& text);
  // Return what stands before and behind a line of this level.
  std::string Before(LogLevel level) const;
  std::string Behind(LogLevel level) const;

  FILE* const err_;
  const LogFormat format_;
  const Screen screen_;
  const bool has_colours_;
  std::mutex mu_;
  std::string drawn_;     // under mu_: the progress line on the screen
  std::string transfer_;  // under mu_
  std::unique_ptr<Logger> logger_;
};

// Logs the warnings about the files of --tls-cert, --tls-key and --tls-ca.
void LogTlsWarnings(const TlsFiles& files, Console* console);
// Logs when their certificates end. For commands that run without a person.
void LogCertificateEnds(const TlsFiles& files, Console* console);

// Writes `text`, human or one JSON object, to standard output and flushes; what
// a terminal would obey is made harmless (format/printable.h). False when that
// failed (a full disk, a closed pipe).
[[nodiscard]] bool WriteResult(const std::string& text);

// The end of a command: the JSON object or, when `human` is not empty, that
// text on standard output; a failure's sentence on standard error. Returns the
// exit code. kDifferent is a result, not a failure.
int FinishCommand(const std::string& command, const rocksdb::Status& status,
           const std::string& where, const std::string& json_or_human,
           Console* console);

}  // namespace sstferry
