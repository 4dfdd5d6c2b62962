#include "tools/sstferry/console.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>

#include <nlohmann/json.hpp>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>

#include "format/printable.h"
#include "tools/sstferry/result_json.h"

namespace sstferry {
namespace {

using rocksdb::Status;

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kDebug:
      return spdlog::level::debug;
  }
  return spdlog::level::info;
}

size_t TerminalWidth(FILE* file) {
  winsize size{};
  if (ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 1) {
    return size.ws_col;
  }
  return 80;
}

LogLevel LevelOf(spdlog::level::level_enum level) {
  return level >= spdlog::level::err    ? LogLevel::kError
         : level == spdlog::level::warn ? LogLevel::kWarning
         : level == spdlog::level::info ? LogLevel::kInfo
                                        : LogLevel::kDebug;
}

const char* LevelName(LogLevel level) {
  static constexpr const char* kNames[] = {"error", "warning", "info",
                                           "debug"};
  return kNames[static_cast<size_t>(level)];
}

bool IsSet(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool WantsColours() {
  const char* const terminal = std::getenv("TERM");
  return !IsSet("NO_COLOR") &&
         (terminal == nullptr || std::string(terminal) != "dumb");
}

// Returns true if systemd has connected the stream to the journal. In this case
// $JOURNAL_STREAM contains the "DEVICE:INODE" of the stream.
bool IsJournal(FILE* file) {
  const char* const stream = std::getenv("JOURNAL_STREAM");
  struct stat found {};
  return stream != nullptr && fstat(fileno(file), &found) == 0 &&
         stream == std::to_string(found.st_dev) + ":" +
                       std::to_string(found.st_ino);
}

// Returns the transfer id that follows the word "transfer" in a text, or "" if
// there is none.
std::string TransferIn(const std::string& text) {
  static const std::string word = "transfer ";
  constexpr size_t kDigits = 2 * sizeof(TransferId);
  for (size_t at = text.find(word); at != std::string::npos;
       at = text.find(word, at)) {
    at += word.size();
    const size_t end = std::min(
        text.find_first_not_of("0123456789abcdef", at), text.size());
    if (end - at == kDigits) {
      return text.substr(at, kDigits);
    }
  }
  return "";
}

ResultReceiver& ReceiverOfProcess() {
  static ResultReceiver receiver;
  return receiver;
}

class LineSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  using Write = std::function<void(const std::string& time, LogLevel level,
                                   const std::string& text)>;
  explicit LineSink(Write write) : write_(std::move(write)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t time;
    formatter_->format(message, time);
    write_(std::string(time.data(), time.size()), LevelOf(message.level),
           std::string(message.payload.data(), message.payload.size()));
  }
  void flush_() override {}

 private:
  const Write write_;
};

std::unique_ptr<spdlog::formatter> TimeFormatter() {
  return std::make_unique<spdlog::pattern_formatter>(
      "%Y-%m-%dT%H:%M:%S.%eZ", spdlog::pattern_time_type::utc, "");
}

std::string TimeNow() {
  spdlog::details::log_msg message;
  message.time = spdlog::log_clock::now();
  spdlog::memory_buf_t time;
  TimeFormatter()->format(message, time);
  return {time.data(), time.size()};
}

}  // namespace

struct Console::Logger {
  explicit Logger(Console* console)
      : log("sstferry",
            std::make_shared<LineSink>([console](const std::string& time,
                                                 LogLevel level,
                                                 const std::string& text) {
              console->WriteAbove(
                  console->format_ == LogFormat::kJson
                      ? console->JsonLine(time, level, text)
                      : console->Before(level) +
                            (console->screen_.is_journal
                                 ? ""
                                 : time + " " + LevelName(level) + " ") +
                            text + console->Behind(level) + "\n");
            })) {
    log.set_formatter(TimeFormatter());
  }
  spdlog::logger log;
};

int ReportUsage(const std::string& command, const Status& status) {
  const std::string program =
      command.empty() ? "sstferry" : "sstferry " + command;
  const char* text = status.getState();
  const std::string message = text != nullptr ? text : status.ToString();
  std::fprintf(stderr, "%s: %s\nsee %s --help\n", program.c_str(),
               Printable(message).c_str(), program.c_str());
  return kExitUsage;
}

std::string FailureLine(const std::string& command, const Status& status,
                        const std::string& where) {
  // Prefix of messages from a source that runs in this process.
  static const std::string here = "peer in-process: ";
  const std::string message = SentenceOf(status);
  std::string line =
      "sstferry " + command + ": " + EndStateName(EndStateOf(status)) + ": " +
      (message.starts_with(here) ? message.substr(here.size()) : message);
  // The message may already end in the side of the error, such as "(source)".
  // If `where` also has an address, such as "source 192.0.2.7:7420", the line
  // ends in `where` instead.
  const std::string side = where.substr(0, where.find(' '));
  const bool says_side = line.ends_with(" (" + side + ")");
  const bool says_source = !says_side && line.ends_with(" (source)");
  if (where.empty() || says_source ||
      (says_side && where == side + " in-process")) {
    return Printable(line);
  }
  if (says_side) {
    line.resize(line.size() - side.size() - 3);
  }
  return Printable(line + " (" + where + ")");
}

Screen ScreenOf(FILE* file) {
  return {isatty(fileno(file)) == 1, IsJournal(file),
          [file] { return TerminalWidth(file); }};
}

Console::Console(const CommonArguments& arguments, FILE* err)
    : Console(arguments, err, ScreenOf(err)) {}

Console::Console(const CommonArguments& arguments, FILE* err,
                 const Screen& screen)
    : err_(err),
      format_(arguments.log_format),
      screen_(screen),
      has_colours_(screen.is_terminal && WantsColours()),
      logger_(std::make_unique<Logger>(this)) {
  set_log_level(arguments.log_level);
}

Console::~Console() { EndProgress(); }

void Console::set_log_level(LogLevel level) {
  logger_->log.set_level(SpdlogLevel(level));
}

// Ignores the results of fputs(), like all functions in this file: if writing
// to standard error fails, there is no place to report it.
void Console::WriteAbove(const std::string& text) {
  const std::lock_guard<std::mutex> lock(mu_);
  if (!drawn_.empty()) {
    std::fputs("\r\033[K", err_);
  }
  std::fputs(text.c_str(), err_);
  std::fputs(drawn_.c_str(), err_);
  std::fflush(err_);
}

std::string Console::Before(LogLevel level) const {
  // The priorities SD_ERR, SD_WARNING, SD_INFO and SD_DEBUG of sd-daemon(3).
  static constexpr const char* kPriorities[] = {"<3>", "<4>", "<6>", "<7>"};
  return screen_.is_journal ? kPriorities[static_cast<size_t>(level)]
         : !has_colours_                ? ""
         : level == LogLevel::kError    ? "\033[31m"
         : level == LogLevel::kWarning  ? "\033[33m"
                                        : "";
}

std::string Console::Behind(LogLevel level) const {
  return has_colours_ && !Before(level).empty() ? "\033[0m" : "";
}

std::string Console::JsonLine(const std::string& time, LogLevel level,
                              const std::string& text) {
  std::string transfer = TransferIn(text);
  if (transfer.empty()) {
    const std::lock_guard<std::mutex> lock(mu_);
    transfer = transfer_;
  }
  nlohmann::ordered_json json = {{"time", time},
                                 {"level", LevelName(level)},
                                 {"transfer_id", nullptr},
                                 {"message", text}};
  if (!transfer.empty()) {
    json["transfer_id"] = transfer;
  }
  return (screen_.is_journal ? Before(level) : "") +
         json.dump(-1, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

void Console::set_transfer(const std::string& id) {
  const std::lock_guard<std::mutex> lock(mu_);
  transfer_ = id;
}

void Console::WriteLine(LogLevel level, const std::string& line) {
  WriteAbove(format_ == LogFormat::kJson
                 ? JsonLine(TimeNow(), level, Printable(line))
                 : Before(level) + Printable(line) + Behind(level) + "\n");
}

void Console::WriteFailure(const std::string& line, const std::string& next) {
  if (next.empty() || format_ == LogFormat::kJson) {
    WriteError(line + (next.empty() ? "" : "; next: " + next));
  } else {
    WriteError(line);
    WriteLine(LogLevel::kError, "next: " + next);
  }
}

void Console::Log(LogLevel level, const std::string& text) {
  logger_->log.log(SpdlogLevel(level),
                   spdlog::string_view_t(Printable(text)));
}

LogFunction Console::log_function() {
  return [this](LogLevel level, const std::string& text) { Log(level, text); };
}

void Console::WriteProgress(const std::string& line) {
  WriteAbove((screen_.is_journal ? Before(LogLevel::kInfo) : "") +
             (line.starts_with('{') ? PrintableJson(line) : Printable(line)) +
             "\n");
}

void Console::RedrawProgress(const std::string& line) {
  const std::lock_guard<std::mutex> lock(mu_);
  drawn_ = Printable(line).substr(0, screen_.columns() - 1);
  std::fputs("\r", err_);
  std::fputs(drawn_.c_str(), err_);
  std::fputs("\033[K", err_);
  std::fflush(err_);
}

void Console::EndProgress() {
  const std::lock_guard<std::mutex> lock(mu_);
  if (!drawn_.empty()) {
    std::fputs("\n", err_);
    std::fflush(err_);
    drawn_.clear();
  }
}

void Console::DropProgress() {
  const std::lock_guard<std::mutex> lock(mu_);
  if (!drawn_.empty()) {
    std::fputs("\r\033[K", err_);
    std::fflush(err_);
    drawn_.clear();
  }
}

void LogTlsWarnings(const TlsFiles& files, Console* console) {
  for (const std::string& warning : TlsWarnings(files)) {
    console->Log(LogLevel::kWarning, warning);
  }
}

void LogCertificateEnds(const TlsFiles& files, Console* console) {
  const CertificateEnds ends = EndsOfCertificates(files);
  if (ends.cert_seconds != 0 && ends.ca_seconds != 0) {
    console->Log(LogLevel::kInfo, "--tls-cert ends on " +
                                      Rfc3339(ends.cert_seconds) +
                                      ", --tls-ca on " +
                                      Rfc3339(ends.ca_seconds));
  }
}

bool WriteResult(const std::string& text) {
  const bool is_json = text.starts_with('{');
  const std::string clean =
      is_json ? PrintableJson(text) : PrintableLines(text);
  return std::fwrite(clean.data(), 1, clean.size(), stdout) == clean.size() &&
         std::fflush(stdout) == 0;
}

void SetResultReceiver(const ResultReceiver& receiver) {
  ReceiverOfProcess() = receiver;
}

const ResultReceiver& CurrentResultReceiver() { return ReceiverOfProcess(); }

int FinishCommand(const std::string& command, const Status& status,
                  const std::string& where, const std::string& json_or_human,
                  Console* console, const std::function<std::string()>& json) {
  if (ReceiverOfProcess()) {
    ReceiverOfProcess()(
        json ? json()
             : DumpJson(ResultJson(command, status, where)));
  }
  const EndState state = EndStateOf(status);
  if (state != EndState::kOk && state != EndState::kDifferent) {
    console->WriteFailure(FailureLine(command, status, where), NextOf(status));
  }
  const int exit_code = ExitCodeOf(state);
  if (!WriteResult(json_or_human)) {
    console->WriteError("sstferry " + command +
                        ": standard output: the result could not be written");
    return exit_code == 0 ? ExitCodeOf(EndState::kInternal) : exit_code;
  }
  return exit_code;
}

}  // namespace sstferry
