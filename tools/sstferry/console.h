// Output to the operator: standard output for results, standard error for logs
// and progress, and exit codes.
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

// Returns "sstferry pull: NO_SPACE: SENTENCE (WHERE)" without control
// characters and without the command to run next.
std::string FailureLine(const std::string& command,
                        const rocksdb::Status& status,
                        const std::string& where);

// The destination of standard error.
struct Screen {
  bool is_terminal = false;
  bool is_journal = false;
  std::function<size_t()> columns;  // present width of the terminal
};
// Returns the destination of a stream of this process.
Screen ScreenOf(FILE* file);

// Writes to standard error, where log lines and one redrawn progress line share
// a terminal. Lines are coloured on a terminal only, and not with NO_COLOR.
// Lines to the journal begin with their priority and have no time.
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

  // Writes a line whatever the log level is. As text it has no time and level.
  void WriteLine(LogLevel level, const std::string& line);
  void WriteError(const std::string& line) {
    WriteLine(LogLevel::kError, line);
  }
  // Writes why a command failed and, unless `next` is empty, the command to run
  // next on a line of its own. As JSON, both are in one object.
  void WriteFailure(const std::string& line, const std::string& next);
  // Writes through spdlog, with time and level.
  void Log(LogLevel level, const std::string& text);
  LogFunction log_function();
  void set_log_level(LogLevel level);
  // Sets the transfer for later lines; a line that names another transfer is
  // attributed to that one.
  void set_transfer(const std::string& id);

  // Writes progress as a line of its own, without redrawing.
  void WriteProgress(const std::string& line);
  // Draws `line`, truncated to the terminal's width, in place of the line that
  // was drawn before.
  void RedrawProgress(const std::string& line);
  // Keeps the last redrawn line on the screen.
  void EndProgress();
  // Removes the last redrawn line.
  void DropProgress();

 private:
  struct Logger;
  friend struct Logger;
  void WriteAbove(const std::string& text);
  std::string JsonLine(const std::string& time, LogLevel level,
                       const std::string& text);
  // Return the text before and after a line of this level.
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
// Logs when the certificates in the files expire. For commands that run
// unattended.
void LogCertificateEnds(const TlsFiles& files, Console* console);

// Writes `text`, human-readable or one JSON object, to standard output and
// flushes. Escapes control sequences for a terminal (format/printable.h).
// Returns false on failure (a full disk, a closed pipe).
[[nodiscard]] bool WriteResult(const std::string& text);

// Receives a command's JSON object at its end, even if the object is not
// printed. A process runs one command and has one receiver; null: none.
using ResultReceiver = std::function<void(const std::string& json)>;
void SetResultReceiver(const ResultReceiver& receiver);
const ResultReceiver& CurrentResultReceiver();

// Ends a command: writes `json_or_human` to standard output and the message of
// a failure to standard error. Returns the exit code. kDifferent is a result,
// not a failure. `json` makes the object for the receiver; if null, the object
// has only the members that every command's object has.
int FinishCommand(const std::string& command, const rocksdb::Status& status,
                  const std::string& where, const std::string& json_or_human,
                  Console* console,
                  const std::function<std::string()>& json = nullptr);

}  // namespace sstferry
