// Log lines as text and as JSON, to a file, a terminal and the journal.
#include "tools/sstferry/console.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/serve_process.h"

namespace sstferry::console_test {
namespace {

using nlohmann::json;

const std::string kId = "0123456789abcdef0123456789abcdef";

// Sets an environment variable until the end of the scope.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { unsetenv(name_); }

 private:
  const char* const name_;
};

// A temporary file, or the slave side of a pseudo-terminal.
class Stream {
 public:
  explicit Stream(bool terminal) {
    if (!terminal) {
      file_ = std::tmpfile();
    } else {
      master_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
      REQUIRE(master_ >= 0);
      REQUIRE(grantpt(master_) == 0);
      REQUIRE(unlockpt(master_) == 0);
      file_ = std::fopen(ptsname(master_), "w");
    }
    REQUIRE(file_ != nullptr);
  }
  ~Stream() {
    std::fclose(file_);
    if (master_ >= 0) {
      close(master_);
    }
  }
  FILE* file() { return file_; }
  // Returns the whole file, or the bytes that one read of the terminal returns.
  std::string text() {
    std::string all(4096, '\0');
    if (master_ < 0) {
      std::rewind(file_);
    }
    const ssize_t got = master_ < 0 ? static_cast<ssize_t>(std::fread(
                                          all.data(), 1, all.size(), file_))
                                    : read(master_, all.data(), all.size());
    all.resize(got < 0 ? 0 : static_cast<size_t>(got));
    return all;
  }

 private:
  FILE* file_ = nullptr;
  int master_ = -1;
};

std::string Logged(const CommonArguments& arguments, LogLevel level,
                   const std::string& text, bool terminal) {
  Stream stream(terminal);
  Console console(arguments, stream.file());
  console.Log(level, text);
  return stream.text();
}

}  // namespace

TEST_CASE("Log lines have colours on a terminal only, and not with NO_COLOR",
          "[tools][console]") {
  const CommonArguments text;
  const std::string red = "\033[31m";
  {
    const Variable dumb("TERM", "dumb");
    REQUIRE(Logged(text, LogLevel::kError, "x", true).find('\033') ==
            std::string::npos);
  }
  const Variable terminal("TERM", "xterm");  // whatever runs the tests
  REQUIRE(Logged(text, LogLevel::kError, "x", true).starts_with(red));
  REQUIRE(Logged(text, LogLevel::kInfo, "x", true).find('\033') ==
          std::string::npos);
  REQUIRE(Logged(text, LogLevel::kError, "x", false).find('\033') ==
          std::string::npos);
  {
    const Variable none("NO_COLOR", "1");
    REQUIRE(Logged(text, LogLevel::kError, "x", true).find('\033') ==
            std::string::npos);
  }
  const Variable empty("NO_COLOR", "");  // as https://no-color.org says
  REQUIRE(Logged(text, LogLevel::kError, "x", true).starts_with(red));
}

TEST_CASE("Log lines to the journal begin with a priority and have no time",
          "[tools][console]") {
  Stream stream(false);
  struct stat found {};
  REQUIRE(fstat(fileno(stream.file()), &found) == 0);
  const std::string journal =
      std::to_string(found.st_dev) + ":" + std::to_string(found.st_ino);
  {
    const Variable variable("JOURNAL_STREAM", journal);
    Console console(CommonArguments(), stream.file());
    console.Log(LogLevel::kError, "one");
    console.Log(LogLevel::kWarning, "two");
    console.Log(LogLevel::kInfo, "three");
    console.WriteError("four");
    console.WriteProgress("five");
  }
  REQUIRE(stream.text() == "<3>one\n<4>two\n<6>three\n<3>four\n<6>five\n");
  // A stream that is not the journal's gets the usual format.
  const Variable other("JOURNAL_STREAM", "1:1");
  REQUIRE(Logged(CommonArguments(), LogLevel::kInfo, "x", false)
              .ends_with("Z info x\n"));
}

TEST_CASE("The next command has its own line in text, and is part of the JSON",
          "[tools][console]") {
  for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
    Stream stream(false);
    CommonArguments arguments;
    arguments.log_format = format;
    {
      Console console(arguments, stream.file());
      console.WriteFailure("sstferry pull: BUSY: in use", "kill 1");
      console.WriteFailure("sstferry pull: BUSY: again", "");
    }
    const std::string text = stream.text();
    INFO(text);
    if (format == LogFormat::kText) {
      REQUIRE(text == "sstferry pull: BUSY: in use\nnext: kill 1\n"
                      "sstferry pull: BUSY: again\n");
    } else {
      REQUIRE(text.find("\"sstferry pull: BUSY: in use; next: kill 1\"") !=
              std::string::npos);
    }
  }
}

TEST_CASE("JSON log lines have time, level, transfer and message",
          "[tools][console]") {
  Stream stream(false);
  CommonArguments arguments;
  arguments.log_format = LogFormat::kJson;
  {
    Console console(arguments, stream.file());
    console.Log(LogLevel::kInfo, "of none");
    console.Log(LogLevel::kWarning, "released transfer " + kId + ": \"x\"");
    console.set_transfer(std::string(32, 'f'));
    console.Log(LogLevel::kError, "lost \xff");
    console.WriteError("sstferry pull: NO_SPACE");
    console.Log(LogLevel::kDebug, "not shown");
  }
  std::istringstream lines(stream.text());
  std::vector<json> objects;
  for (std::string line; std::getline(lines, line);) {
    objects.push_back(json::parse(line, nullptr, false));
    INFO(line);
    REQUIRE(objects.back().is_object());
    REQUIRE(objects.back().size() == 4);
    REQUIRE(std::string(objects.back()["time"]).size() ==
            std::string("2026-11-22T22:00:00.000Z").size());
  }
  REQUIRE(objects.size() == 4);
  REQUIRE(objects[0]["level"] == "info");
  REQUIRE(objects[0]["transfer_id"].is_null());
  REQUIRE(objects[0]["message"] == "of none");
  REQUIRE(objects[1]["level"] == "warning");
  REQUIRE(objects[1]["transfer_id"] == kId);
  REQUIRE(objects[2]["transfer_id"] == std::string(32, 'f'));
  REQUIRE(objects[3]["level"] == "error");
  REQUIRE(objects[3]["message"] == "sstferry pull: NO_SPACE");
}

TEST_CASE("With --log-format json both sides write only JSON objects, "
          "with the transfer's id",
          "[tools][console]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  ServeProcess server({"--db", "db=" + (dir / "source"), "--log-format",
                       "json", "--once"});
  Process pull(
      Sstferry({"swap", server.url(), dir / "target", "--log-format", "json",
                "--json", "--before-swap", "true", "--after-swap", "true",
                "--progress-interval", "1ms"}));
  REQUIRE(pull.Wait() == 0);
  REQUIRE(server.process().Wait() == 0);
  const std::string id = json::parse(pull.out())["transfer_id"];
  // All lines of the pull, and the server's lines about the transfer.
  const std::vector<std::string> texts = {pull.err(), server.process().err()};
  for (const std::string& text : texts) {
    INFO(text);
    bool named = false;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      const json object = json::parse(line, nullptr, false);
      INFO(line);
      REQUIRE(object.is_object());
      if (object.contains("level")) {  // else progress
        REQUIRE(object.contains("transfer_id"));
        named = named || object["transfer_id"] == id;
        REQUIRE((object["transfer_id"] == id || &text != &texts[0]));
      }
    }
    REQUIRE(named);
  }
}

}  // namespace sstferry::console_test
