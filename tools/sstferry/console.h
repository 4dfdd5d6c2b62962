// Writes to the operator: results to standard output, logs and progress to
// standard error. Also determines the exit codes.
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
// error and returns kExitUsage. Without a command, prints "sstferry: MESSAGE".
int ReportUsage(const std::string& command, const rocksdb::Status& status);

// Returns the line for a failed command, such as
// "sstferry pull: NO_SPACE: the disk is full (target)". Replaces control
// characters. Leaves out the part of the message that says what to run next.
std::string FailureLine(const std::string& command,
                        const rocksdb::Status& status,
                        const std::string& where);

// Describes where the text that is written to standard error ends up.
struct Screen {
  bool is_terminal = false;
  bool is_journal = false;
  std::function<size_t()> columns;  // returns the terminal's present width
};
// Describes a stream of this process.
Screen ScreenOf(FILE* file);

// Writes log lines and progress to standard error. On a terminal, progress is
// the last line and is redrawn in place; log lines appear above it. Lines are
// coloured on a terminal only, unless NO_COLOR is set. Lines to systemd's
// journal have no time and begin with their priority, such as "<4>".
//
// Threads: all members from any thread.
class Console {
 public:
  explicit Console(const CommonArguments& arguments, FILE* err = stderr);
  // `screen` describes the final destination of `err`, if `err` is a pipe to
  // another process.
  Console(const CommonArguments& arguments, FILE* err, const Screen& screen);
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  ~Console();

  bool is_terminal() const { return screen_.is_terminal; }
  size_t columns() const { return screen_.columns(); }
  bool logs_json() const { return format_ == LogFormat::kJson; }

  // Writes a line even if the log level is below `level`. With text logs, adds
  // no time and no level; with JSON logs, adds both.
  void WriteLine(LogLevel level, const std::string& line);
  void WriteError(const std::string& line) {
    WriteLine(LogLevel::kError, line);
  }
  // Writes `line`, the reason why a command failed. If `next` is not empty,
  // also writes the line "next: NEXT". With JSON logs, one object has both.
  void WriteFailure(const std::string& line, const std::string& next);
  // Writes a line with time and level, if the log level permits `level`.
  void Log(LogLevel level, const std::string& text);
  LogFunction log_function();
  void set_log_level(LogLevel level);
  // Sets the member transfer_id of later JSON log lines. If the text of a line
  // contains the id of another transfer, that line has the other id.
  void set_transfer(const std::string& id);

  // Writes progress as a new line.
  void WriteProgress(const std::string& line);
  // Draws `line` over the progress line that was drawn before. Truncates `line`
  // to the terminal's width.
  void RedrawProgress(const std::string& line);
  // Leaves the progress line on the screen, and begins a new line.
  void EndProgress();
  // Removes the progress line from the screen.
  void DropProgress();

 private:
  struct Logger;
  friend struct Logger;
  void WriteAbove(const std::string& text);
  std::string JsonLine(const std::string& time, LogLevel level,
                       const std::string& text);
  // Return the text to put before and after a log line of this level: a colour
  // for a terminal, or a priority for the journal.
  std::string Before(LogLevel level) const;
  std::string Behind(LogLevel level) const;

  FILE* const err_;
  const LogFormat format_;
  const Screen screen_;
  const bool has_colours_;
  std::mutex mu_;
  std::string drawn_;     // guarded by mu_: the progress line on the screen
  std::string transfer_;  // guarded by mu_
  std::unique_ptr<Logger> logger_;
};

// Logs the warnings about the files of --tls-cert, --tls-key and --tls-ca.
void LogTlsWarnings(const TlsFiles& files, Console* console);
// Logs when the certificates in the files expire. serve and pull call it,
// because they usually run unattended.
void LogCertificateEnds(const TlsFiles& files, Console* console);

// Writes `text`, which is lines for people or one JSON object, to standard
// output and flushes. Escapes control characters (format/printable.h). Returns
// false if writing failed, for example because the disk is full.
[[nodiscard]] bool WriteResult(const std::string& text);

// A function that gets the JSON object of a command when the command ends, even
// without --json. A process has at most one receiver; null removes it.
using ResultReceiver = std::function<void(const std::string& json)>;
void SetResultReceiver(const ResultReceiver& receiver);
const ResultReceiver& CurrentResultReceiver();

// Reports the end of a command and returns the exit code. Writes
// `json_or_human` to standard output. If `status` is an error other than
// kDifferent, writes its message to standard error. Passes the object that
// `json` returns to the ResultReceiver. If `json` is null, the object has only
// the members of ResultJson().
int FinishCommand(const std::string& command, const rocksdb::Status& status,
                  const std::string& where, const std::string& json_or_human,
                  Console* console,
                  const std::function<std::string()>& json = nullptr);

}  // namespace sstferry
