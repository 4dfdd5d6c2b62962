#include "tools/sstferry/output/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <functional>
#include <memory>

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>

#include "format/printable.h"

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

class LineSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit LineSink(std::function<void(const std::string&)> write)
      : write_(std::move(write)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t buffer;
    formatter_->format(message, buffer);
    write_(std::string(buffer.data(), buffer.size()));
  }
  void flush_() override {}

 private:
  const std::function<void(const std::string&)> write_;
};

}  // namespace

struct Console::Logger {
  explicit Logger(Console* console)
      : log("sstferry", std::make_shared<LineSink>(
                            [console](const std::string& line) {
                              console->WriteAbove(line);
                            })) {
    log.set_formatter(std::make_unique<spdlog::pattern_formatter>(
        "%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc));
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
  std::string line = "sstferry " + command + ": " +
                     EndStateName(EndStateOf(status)) + ": " +
                     MessageOf(status);
  // "source 192.0.2.7:7420" says more than the "(source)" that the source put
  // behind its own message; "source in-process" and "target" do not.
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

Console::Console(LogLevel log_level, FILE* err)
    : err_(err),
      is_terminal_(isatty(fileno(err)) == 1),
      logger_(std::make_unique<Logger>(this)) {
  logger_->log.set_level(SpdlogLevel(log_level));
}

Console::~Console() { EndProgress(); }

void Console::set_log_level(LogLevel level) {
  logger_->log.set_level(SpdlogLevel(level));
}

// Standard error has nowhere to report its own failure to, so what fputs
// returns is not looked at in this file.
void Console::WriteAbove(const std::string& text) {
  const std::lock_guard<std::mutex> lock(mu_);
  if (!drawn_.empty()) {
    std::fputs("\r\033[K", err_);
  }
  std::fputs(text.c_str(), err_);
  std::fputs(drawn_.c_str(), err_);
  std::fflush(err_);
}

void Console::WriteError(const std::string& line) {
  WriteAbove(Printable(line) + "\n");
}

void Console::Log(LogLevel level, const std::string& text) {
  logger_->log.log(SpdlogLevel(level),
                   spdlog::string_view_t(Printable(text)));
}

LogFunction Console::log_function() {
  return [this](LogLevel level, const std::string& text) { Log(level, text); };
}

void Console::WriteProgress(const std::string& line) {
  WriteAbove((line.starts_with('{') ? PrintableJson(line) : Printable(line)) +
             "\n");
}

void Console::RedrawProgress(const std::string& line) {
  const std::lock_guard<std::mutex> lock(mu_);
  drawn_ = Printable(line).substr(0, TerminalWidth(err_) - 1);
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

void LogTlsWarnings(const TlsFiles& files, Console* console) {
  for (const std::string& warning : TlsWarnings(files)) {
    console->Log(LogLevel::kWarning, warning);
  }
}

bool WriteResult(const std::string& text) {
  const bool is_json = text.starts_with('{');
  const std::string clean = is_json ? PrintableJson(text) : PrintableLines(text);
  return std::fwrite(clean.data(), 1, clean.size(), stdout) == clean.size() &&
         std::fflush(stdout) == 0;
}

int FinishCommand(const std::string& command, const Status& status,
           const std::string& where, const std::string& json_or_human,
           Console* console) {
  const EndState state = EndStateOf(status);
  if (state != EndState::kOk && state != EndState::kDifferent) {
    console->WriteError(FailureLine(command, status, where));
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
