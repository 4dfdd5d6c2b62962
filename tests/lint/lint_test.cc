// Rules for sources that a compiler does not check. Each rule is first tried on
// small texts: a rule that finds nothing in them is broken.
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace {

namespace fs = std::filesystem;

constexpr const char* kRoots[] = {"format", "pipeline", "tools", "tests",
                                  "benchmarks", "examples"};

struct File {
  std::string path;  // from the repository's root
  std::vector<std::string> lines;
  bool is_header() const { return path.ends_with(".h"); }
};

File MakeFile(const std::string& path, const std::string& text) {
  File file{path, {}};
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    file.lines.push_back(line);
  }
  return file;
}

const std::vector<File>& SourceFiles() {
  static const std::vector<File> files = [] {
    std::vector<File> found;
    const fs::path root = SSTFERRY_SOURCE_DIR;
    for (const char* folder : kRoots) {
      if (!fs::is_directory(root / folder)) {
        continue;
      }
      for (const auto& entry :
           fs::recursive_directory_iterator(root / folder)) {
        const std::string extension = entry.path().extension();
        if (extension != ".h" && extension != ".cc") {
          continue;
        }
        std::ifstream stream(entry.path(), std::ios::binary);
        std::stringstream text;
        text << stream.rdbuf();
        found.push_back(MakeFile(
            fs::relative(entry.path(), root).generic_string(), text.str()));
      }
    }
    return found;
  }();
  return files;
}

// Returns what is wrong with one line of a file, or "".
using LineRule =
    std::function<std::string(const File& file, const std::string& line)>;

std::string Violations(const std::vector<File>& files, const LineRule& rule) {
  std::string found;
  for (const File& file : files) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string what = rule(file, file.lines[i]);
      if (!what.empty()) {
        found += file.path + ":" + std::to_string(i + 1) + ": " + what + "\n";
      }
    }
  }
  return found;
}

struct Include {
  std::string path;  // empty: the line is not an include
  bool quoted = false;
};

Include IncludeOf(const std::string& line) {
  const size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string::npos || line[hash] != '#') {
    return {};
  }
  const size_t word = line.find_first_not_of(" \t", hash + 1);
  if (word == std::string::npos || line.compare(word, 7, "include") != 0) {
    return {};
  }
  const size_t open = line.find_first_of("\"<", word);
  const size_t close = line.find_first_of("\">", open + 1);
  if (open == std::string::npos || close == std::string::npos) {
    return {};
  }
  return {line.substr(open + 1, close - open - 1), line[open] == '"'};
}

bool Under(const std::string& path, const std::string& folder) {
  return path.starts_with(folder + "/");
}

bool IsSliceOrStatus(const std::string& include) {
  return include == "rocksdb/slice.h" || include == "rocksdb/status.h";
}

std::string FormatInclude(const Include& include) {
  const std::string& path = include.path;
  if (Under(path, "rocksdb") && !IsSliceOrStatus(path)) {
    return "format/ may include only slice.h and status.h of RocksDB";
  }
  if (Under(path, "boost") || Under(path, "openssl") ||
      Under(path, "nlohmann") || Under(path, "spdlog")) {
    return "format/ does not use this library";
  }
  static const std::set<std::string> kForbidden = {
      "thread", "fstream", "mutex", "condition_variable", "filesystem",
      "chrono", "iostream", "future", "unistd.h", "fcntl.h", "sys/socket.h",
      "pthread.h"};
  if (kForbidden.count(path) != 0) {
    return "format/ has no files, sockets, threads or clocks";
  }
  return Under(path, "pipeline") || Under(path, "sstferry")
             ? "format/ is below pipeline/"
             : "";
}

std::string PipelineInclude(const std::string& file, const Include& include) {
  const std::string& path = include.path;
  if (Under(path, "boost") || Under(path, "spdlog")) {
    return "belongs to tools/";
  }
  if (Under(file, "pipeline/archive") || file == "pipeline/base/sha256.cc") {
    return "";  // signs, seals and compares digests
  }
  if (!Under(file, "pipeline/wire")) {
    return Under(path, "openssl") || Under(path, "curl")
               ? "only pipeline/wire/ and pipeline/archive/ use that library"
               : "";
  }
  if (Under(path, "rocksdb") && !IsSliceOrStatus(path)) {
    return "wire/ may include only slice.h and status.h of RocksDB";
  }
  return "";
}

// The layer of each room, from the table in pipeline/README.md. A room is a
// directory with sources.
using Rooms = std::map<std::string, int>;

// Parses rows of the form: | 7 | `room/` | what it is for | what to know first
// |
Rooms ReadRooms(const std::string& text) {
  Rooms rooms;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    int layer = 0;
    char room[128] = "";
    if (std::sscanf(line.c_str(), "| %d | `%127[^`]` |", &layer, room) == 2) {
      std::string name = room;
      while (name.ends_with("/")) name.pop_back();
      rooms[name] = layer;
    }
  }
  return rooms;
}

std::string RoomOf(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().generic_string();
  return folder == "sstferry" ? "pipeline/include/sstferry" : folder;
}

// Finds includes of another room that is not in a lower layer.
std::string RoomRule(const Rooms& rooms, const File& file,
                     const std::string& line) {
  const Include include = IncludeOf(line);
  const std::string from = RoomOf(file.path);
  const std::string to = RoomOf(include.path);
  const auto in_house = [](const std::string& room) {
    return Under(room + "/", "format") || Under(room + "/", "pipeline") ||
           Under(room + "/", "tools");
  };
  if (!in_house(from)) {
    return "";
  }
  if (rooms.count(from) == 0) {
    return from + "/ is no room of pipeline/README.md";
  }
  if (!include.quoted || !in_house(to) || from == to) {
    return "";
  }
  if (rooms.count(to) == 0) {
    return to + "/ is no room of pipeline/README.md";
  }
  if (rooms.at(to) >= rooms.at(from)) {
    return from + "/ may not include " + to +
           "/, which is not below it (pipeline/README.md)";
  }
  return Under(from + "/", "tools") && Under(to + "/", "pipeline") &&
                 to != "pipeline/include/sstferry"
             ? "tools/ may include only public headers of pipeline/"
             : "";
}

const Rooms& HouseRooms() {
  static const Rooms rooms = [] {
    std::ifstream stream(fs::path(SSTFERRY_SOURCE_DIR) /
                         "pipeline/README.md");
    std::stringstream text;
    text << stream.rdbuf();
    return ReadRooms(text.str());
  }();
  return rooms;
}

std::string IncludeRule(const File& file, const std::string& line) {
  const Include include = IncludeOf(line);
  const bool is_product = Under(file.path, "format") ||
                          Under(file.path, "pipeline") ||
                          Under(file.path, "tools");
  if (include.path.empty()) {
    return "";
  }
  const auto wrong = [&](const std::string& why) {
    return why.empty() ? "" : "includes " + include.path + ": " + why;
  };
  if (include.path.find("..") != std::string::npos ||
      (include.quoted && include.path.find('/') == std::string::npos)) {
    return wrong("includes start at the repository's root");
  }
  if (!include.quoted && Under(include.path, "rocksdb")) {
    return wrong("RocksDB is included with quotes");
  }
  if (is_product && (Under(include.path, "tests") ||
                     Under(include.path, "benchmarks"))) {
    return wrong("nothing includes tests/ or benchmarks/");
  }
  if ((Under(file.path, "format") || Under(file.path, "pipeline")) &&
      Under(include.path, "tools")) {
    return wrong("tools/ is above");
  }
  if (Under(file.path, "format")) {
    return wrong(FormatInclude(include));
  }
  if (Under(file.path, "pipeline")) {
    return wrong(PipelineInclude(file.path, include));
  }
  return "";
}

std::string TextRule(const File& file, const std::string& line) {
  for (const char c : line) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte > 0x7e) {
      return "a byte that is not printable ASCII";
    }
  }
  const size_t text = line.find_first_not_of(' ');
  const std::string code = text == std::string::npos ? "" : line.substr(text);
  // The forbidden words are split here, because this file is checked as well.
  // A function outside the namespace, such as main(), may use "using namespace
  // sstferry" inside its body.
  const std::string directive = std::string("using name") + "space ";
  const bool is_local = text != std::string::npos && text > 0 &&
                        !file.is_header() &&
                        code.starts_with(directive + "sstferry");
  if (code.starts_with(directive) && !is_local) {
    return "a using directive";
  }
  for (const std::string& word : {std::string("TO") + "DO",
                                 std::string("FIX") + "ME"}) {
    if (line.find(word) != std::string::npos) {
      return word + " in committed code";
    }
  }
  return "";
}

std::string SleepRule(const File& file, const std::string& line) {
  if (!Under(file.path, "tests")) {
    return "";
  }
  for (const std::string& call :
       {std::string("sleep") + "_for", std::string("sleep") + "_until",
        std::string("usl") + "eep(", std::string("nanosl") + "eep("}) {
    // A sleep that only paces a slow peer is allowed. A comment on its line
    // must say so.
    if (line.find(call) != std::string::npos &&
        line.find("; //") == std::string::npos &&
        line.find(";  //") == std::string::npos) {
      return "a sleep in a test";
    }
  }
  return "";
}

// Finds decisions that may depend on the text of a status or of RocksDB's log.
// These texts change between versions of RocksDB. Its codes, functions and
// files do not. format/end_state.cc is an exception: it parses the end state at
// the start of our own statuses.
std::string StatusTextRule(const File& file, const std::string& line) {
  const size_t text = line.find_first_not_of(' ');
  if (!(Under(file.path, "format") || Under(file.path, "pipeline") ||
        Under(file.path, "tools")) ||
      file.path == "format/end_state.cc" ||
      (text != std::string::npos && line.compare(text, 2, "//") == 0)) {
    return "";
  }
  static const std::set<std::string> kShowTheirOwn = {
      "pipeline/wire/source_address.cc", "tools/sstferry/console.cc",
      "tools/sstferry/read_options.cc"};
  static const std::set<std::string> kLoggers = {
      "pipeline/base/silent_logger.h", "pipeline/snapshot/replay_watch.cc"};
  static const std::regex kWhole(
      R"(\b(s|why|(\w+_)?([sS]tatus|error)_?)(\(\))?\.ToString\(\))");
  static const std::regex kCompared(
      R"((MessageOf\([^;]*\)|getState\(\))\s*)"
      R"((\.\s*(r?find|compare|starts_with|ends_with|contains)|[=!]=\s*"))");
  static const std::regex kCCompared(
      R"(str(str|n?cmp)\([^;]*(MessageOf|getState)\()");
  if (std::regex_search(line, kWhole) && kShowTheirOwn.count(file.path) == 0) {
    return "the whole text of a status: MessageOf() shows it";
  }
  if (line.find("getState()") != std::string::npos &&
      line.find("TargetState") == std::string::npos &&
      kShowTheirOwn.count(file.path) == 0) {
    return "the text of a status: MessageOf() shows it";
  }
  if (std::regex_search(line, kCompared) ||
      std::regex_search(line, kCCompared)) {
    return "a decision by the text of a status";
  }
  return line.find("void Logv(") != std::string::npos &&
                 kLoggers.count(file.path) == 0
             ? "a reader of RocksDB's log"
             : "";
}

// Finds comments that begin with half a sentence, such as "What a pull keeps."
std::string CommentRule(const File& file) {
  std::string found;
  bool is_first = true;
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    const size_t text = line.find_first_not_of(' ');
    const bool is_comment =
        text != std::string::npos && line.compare(text, 2, "//") == 0;
    for (const char* const word :
         {"What ", "Of ", "Those ", "Which ", "Whose ", "Whether "}) {
      if (is_comment && is_first &&
          line.substr(text).starts_with(std::string("// ") + word)) {
        found += file.path + ":" + std::to_string(i + 1) +
                 ": a comment begins with \"" + word + "\"\n";
      }
    }
    is_first = !is_comment;
  }
  return found;
}

// Returns the files that open files or start processes by themselves, each with
// the reason. All other code uses sstferry/descriptor.h and base/open_file.h,
// which follow no link and do not wait for a FIFO's writer, and
// sstferry/spawn.h.
const std::map<std::string, std::string>& OpenersAndWhy() {
  static const std::map<std::string, std::string> files = {
      {"pipeline/base/open_file.cc", "is OpenForeign() and OpenOwn()"},
      {"pipeline/base/descriptor.cc", "is OpenIn() and OpenPath()"},
      {"pipeline/base/database_open.cc", "opens in another descriptor table"},
      {"pipeline/base/spawn.cc", "is Spawn() and ForkAs()"},
      {"tools/sstferry/main.cc", "the standard files, which children inherit"},
      {"tools/sstferry/manual_main.cc", "writes manuals at build time"},
      // These call libraries that open files by name.
      {"pipeline/archive/http_client.cc", "libcurl takes its CA file by name"},
      {"pipeline/base/file_source.cc", "RocksDB's file systems, checked"},
      {"pipeline/snapshot/stoppable_file_system.cc", "wraps RocksDB's calls"},
      {"pipeline/pull/clone_finish.cc", "RocksDB: the workspace's files"},
      {"pipeline/pull/file_check.cc", "RocksDB: the workspace's files"},
      {"pipeline/pull/first_sequence.cc", "RocksDB: a MANIFEST it has read"},
      {"pipeline/refresh/replica_files.cc", "RocksDB: the workspace's files"},
  };
  return files;
}

bool Opens(const std::string& line) {
  static const std::regex kCalls(
      R"((^|[^\w.>])(open|openat|creat|fopen|freopen|(fd)?opendir|popen|v?fork|)"
      R"(posix_spawnp?|ReadFileToString|BIO_new_file|)"
      R"(SSL_CTX_use_\w+_file|SSL_CTX_load_verify_\w+)\s*\()"
      R"(|->New(RandomAccess|Sequential)File\()"
      R"(|\bstd::[io]?fstream\b|\bSYS_openat2?\b)"
      R"(|\bCURLOPT_(CAINFO|CAPATH|SSLCERT|SSLKEY)\b)");
  // The regular expression is slow. Most lines contain none of these parts.
  static const std::vector<std::string> kParts = {
      "open", "creat", "fork", "spawn", "File", "_file", "_verify", "stream",
      "CURLOPT"};
  const size_t text = line.find_first_not_of(' ');
  return text != std::string::npos && line.compare(text, 2, "//") != 0 &&
         std::any_of(kParts.begin(), kParts.end(),
                     [&line](const std::string& part) {
                       return line.find(part) != std::string::npos;
                     }) &&
         std::regex_search(line, kCalls);
}

std::string OpenRule(const File& file, const std::string& line) {
  const bool is_product =
      Under(file.path, "pipeline") || Under(file.path, "tools");
  return is_product && OpenersAndWhy().count(file.path) == 0 && Opens(line)
             ? "opens a file or starts a process by itself: OpenIn(), "
               "OpenForeign(), OpenOwn(), Spawn() and ForkAs() do"
             : "";
}

bool HasPragmaOnce(const File& file) {
  return std::find(file.lines.begin(), file.lines.end(), "#pragma once") !=
         file.lines.end();
}

}  // namespace

TEST_CASE("The include rule finds every wrong direction", "[lint]") {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"format/a.h", "#include \"rocksdb/db.h\""},
      {"format/a.h", "#include <thread>"},
      {"format/a.cc", "#include <boost/asio.hpp>"},
      {"format/a.cc", "#include \"sstferry/options.h\""},
      {"pipeline/target/a.cc", "#include \"tools/sstferry/console.h\""},
      {"pipeline/wire/a.cc", "#include <boost/asio.hpp>"},
      {"pipeline/target/a.cc", "#include <openssl/ssl.h>"},
      {"pipeline/target/a.cc", "#include <curl/curl.h>"},
      {"pipeline/archive/a.cc", "#include <boost/asio.hpp>"},
      {"pipeline/wire/a.cc", "#include \"rocksdb/db.h\""},
      {"pipeline/a.cc", "#include <boost/program_options.hpp>"},
      {"tools/sstferry/a.cc", "#include \"tests/support/catch.h\""},
      {"tools/sstferry/a.cc", "#include \"console.h\""},
      {"pipeline/a.cc", "#include <rocksdb/db.h>"},
      {"pipeline/a.cc", "# include \"../format/frame.h\""},
  };
  for (const auto& [path, line] : bad) {
    INFO(path << " " << line);
    REQUIRE_FALSE(IncludeRule(File{path, {}}, line).empty());
  }
  const std::vector<std::pair<std::string, std::string>> good = {
      {"format/a.h", "#include \"rocksdb/status.h\""},
      {"format/a.cc", "#include <xxhash.h>"},
      {"pipeline/source/a.cc", "#include \"pipeline/wire/channel.h\""},
      {"pipeline/wire/a.cc", "#include <openssl/ssl.h>"},
      {"pipeline/target/a.cc", "#include <nlohmann/json.hpp>"},
      {"pipeline/archive/a.cc", "#include <openssl/evp.h>"},
      {"tools/sstferry/a.cc", "#include <boost/program_options.hpp>"},
      {"tests/tools/a.cc", "#include \"tests/support/catch.h\""},
      {"format/a.cc", "// #include <thread> is not for this room"},
  };
  for (const auto& [path, line] : good) {
    INFO(path << " " << line);
    REQUIRE(IncludeRule(File{path, {}}, line).empty());
  }
}

TEST_CASE("The rules of text, comments and sleep find what they forbid",
          "[lint]") {
  const File test{"tests/a.cc", {}};
  REQUIRE_FALSE(TextRule(test, "// caf\xc3\xa9").empty());
  REQUIRE_FALSE(TextRule(test, "\tint a;").empty());
  REQUIRE_FALSE(
      TextRule(test, std::string("  using name") + "space std;").empty());
  REQUIRE_FALSE(TextRule(test, std::string("// TO") + "DO: later").empty());
  REQUIRE(TextRule(test, "using rocksdb::Status;").empty());
  const std::string sleep = std::string("std::this_thread::sleep") + "_for(x)";
  REQUIRE_FALSE(SleepRule(test, sleep).empty());
  REQUIRE(SleepRule(File{"pipeline/a.cc", {}}, sleep).empty());

  REQUIRE_FALSE(
      CommentRule(MakeFile("a.h", "int a;\n  // Of a pull.\n")).empty());
  REQUIRE_FALSE(CommentRule(MakeFile("a.h", "// What it keeps.\n")).empty());
  REQUIRE(CommentRule(MakeFile("a.h", "// Keeps the files.\n//\n// What is\n"))
              .empty());

  REQUIRE_FALSE(HasPragmaOnce(MakeFile("a.h", "// #pragma once\n")));
}

TEST_CASE("Includes go only one way between format, pipeline and tools",
          "[lint]") {
  REQUIRE(SourceFiles().size() > 10);
  const std::string found = Violations(SourceFiles(), IncludeRule);
  INFO(found);
  REQUIRE(found.empty());
}

TEST_CASE("The rule of rooms finds includes from higher, sibling or no rooms",
          "[lint]") {
  const Rooms rooms = ReadRooms(
      "| layer | room | what it is for | to know first |\n|---|---|---|---|\n"
      "| 4 | `tools/t/` | commands | |\n"
      "| 3 | `pipeline/b/` | b | |\n"
      "| 2 | `pipeline/a/` | a, `x.h` | |\n"
      "| 2 | `pipeline/beside/` | a | |\n"
      "| 1 | `pipeline/include/sstferry/` | the contract | |\n"
      "| 0 | `format/` | bytes | |\n");
  REQUIRE(rooms.size() == 6);
  const auto rule = [&](const char* path, const char* line) {
    return RoomRule(rooms, File{path, {}}, line);
  };
  CHECK(rule("pipeline/b/b.h", "#include \"pipeline/a/a.h\"").empty());
  CHECK(rule("pipeline/b/b.h", "#include \"pipeline/b/c.h\"").empty());
  CHECK(rule("pipeline/b/b.h", "#include \"rocksdb/db.h\"").empty());
  CHECK(rule("pipeline/a/a.h", "#include \"sstferry/source.h\"").empty());
  CHECK(rule("tools/t/t.h", "#include \"sstferry/source.h\"").empty());
  CHECK(rule("tools/t/t.h", "#include \"format/types.h\"").empty());
  CHECK_FALSE(rule("pipeline/a/a.h", "#include \"pipeline/b/b.h\"").empty());
  CHECK_FALSE(
      rule("pipeline/a/a.h", "#include \"pipeline/beside/b.h\"").empty());
  CHECK_FALSE(rule("pipeline/b/b.h", "#include \"pipeline/c/c.h\"").empty());
  CHECK_FALSE(rule("pipeline/c/c.h", "").empty());
  CHECK_FALSE(rule("tools/t/t.h", "#include \"pipeline/a/a.h\"").empty());
}

TEST_CASE("Includes go down the layers of pipeline/README.md", "[lint]") {
  REQUIRE(HouseRooms().size() > 10);
  REQUIRE(HouseRooms().size() < 20);
  const std::string found =
      Violations(SourceFiles(), [](const File& file, const std::string& line) {
        return RoomRule(HouseRooms(), file, line);
      });
  INFO(found);
  REQUIRE(found.empty());
}

TEST_CASE("Sources are ASCII without using directives or notes to do later",
          "[lint]") {
  const std::string found = Violations(SourceFiles(), TextRule);
  INFO(found);
  REQUIRE(found.empty());
}

TEST_CASE("Comments begin with a subject or a verb", "[lint]") {
  std::string found;
  for (const File& file : SourceFiles()) {
    if (Under(file.path, "format") || Under(file.path, "pipeline") ||
        Under(file.path, "tools")) {
      found += CommentRule(file);
    }
  }
  INFO(found);
  REQUIRE(found.empty());
}

TEST_CASE("The rule of statuses finds decisions by their text", "[lint]") {
  const auto rule = [](const char* path, const char* line) {
    return StatusTextRule(File{path, {}}, line);
  };
  for (const char* line :
       {"if (status.ToString().find(\"requires flush\") != npos) {",
        "status.ToString().find(\"requires flush\") == npos) {",
        "Missing(status.ToString(), plan)", "if (s.ToString() == text)",
        "if (MessageOf(status).find(\"torn\") == npos) {",
        "if (MessageOf(s) == \"torn\") {", "return s.getState();",
        "if (strstr(status.getState(), \"torn\") != nullptr) {",
        "return MessageOf(s).starts_with(\"torn\");",
        "  void Logv(const char* format, va_list arguments) override {"}) {
    INFO(line);
    CHECK_FALSE(rule("pipeline/a/a.cc", line).empty());
    CHECK(rule("tests/a.cc", line).empty());
  }
  for (const char* line :
       {"*state = TargetState();", "\": \" + MessageOf(status) + \")\");",
        "const std::string text = key.ToString();",
        "// IOError's status.ToString().find() is not for us."}) {
    INFO(line);
    CHECK(rule("pipeline/a/a.cc", line).empty());
  }
}

TEST_CASE("The text of a status decides nothing", "[lint]") {
  const std::string found = Violations(SourceFiles(), StatusTextRule);
  INFO(found);
  REQUIRE(found.empty());
}

TEST_CASE("The rule of opens finds every call", "[lint]") {
  for (const char* line :
       {"  const int fd = open(path.c_str(), O_RDONLY);", "  ::open(path, 0);",
        "  Descriptor(openat(dir.get(), name, 0));", "  pid_t child = fork();",
        "  std::ifstream file(path);", "  FILE* f = popen(command, \"r\");",
        "  posix_spawn(&pid, shell, a, b, c, d);",
        "  rocksdb::ReadFileToString(env, path, &text);",
        "  BIO_new_file(path, \"r\");", "  set(CURLOPT_CAINFO, file);",
        "  fs->NewSequentialFile(path, options, &file, nullptr);"}) {
    INFO(line);
    REQUIRE_FALSE(OpenRule(File{"pipeline/pull/a.cc", {}}, line).empty());
    REQUIRE_FALSE(OpenRule(File{"tools/sstferry/a.cc", {}}, line).empty());
    REQUIRE(OpenRule(File{"tests/tools/a.cc", {}}, line).empty());
    REQUIRE(OpenRule(File{"pipeline/base/open_file.cc", {}}, line).empty());
  }
  for (const char* line :
       {"  // open(path) waits", "  lane->open(path);", "  is_open();",
        "  RETURN_IF_ERROR(OpenForeign(path, &file));", "  file.open(path);"}) {
    INFO(line);
    REQUIRE(OpenRule(File{"pipeline/pull/a.cc", {}}, line).empty());
  }
}

TEST_CASE("Files are opened and processes started in their rooms", "[lint]") {
  const std::string found = Violations(SourceFiles(), OpenRule);
  INFO(found);
  REQUIRE(found.empty());
  std::set<std::string> openers;
  for (const File& file : SourceFiles()) {
    if (OpenersAndWhy().count(file.path) == 1 &&
        std::any_of(file.lines.begin(), file.lines.end(), Opens)) {
      openers.insert(file.path);
    }
  }
  for (const auto& [path, why] : OpenersAndWhy()) {
    INFO(path << " opens nothing: remove it from the list");
    REQUIRE(openers.count(path) == 1);
    REQUIRE_FALSE(why.empty());
  }
}

TEST_CASE("Tests do not sleep", "[lint]") {
  const std::string found = Violations(SourceFiles(), SleepRule);
  INFO(found);
  REQUIRE(found.empty());
}

TEST_CASE("Headers guard themselves", "[lint]") {
  std::string found;
  for (const File& file : SourceFiles()) {
    if (file.is_header() && !HasPragmaOnce(file)) {
      found += file.path + ": no #pragma once\n";
    }
  }
  INFO(found);
  REQUIRE(found.empty());
}

TEST_CASE("Every header compiles alone", "[lint][.slow]") {
  const char* compiler = std::getenv("CXX");
  const std::string command_head =
      std::string(compiler != nullptr ? compiler : "g++") +
      " -std=c++20 -fsyntax-only -x c++ -DSSTFERRY_VERSION='\"0\"' "
      "-Wall -Wextra -Wno-unused-parameter -I'" SSTFERRY_SOURCE_DIR "' ";
  std::string found;
  for (const File& file : SourceFiles()) {
    if (!file.is_header()) {
      continue;
    }
    const std::string command =
        "echo '#include \"" + file.path + "\"' | " + command_head + "-";
    if (std::system(command.c_str()) != 0) {
      found += file.path + "\n";
    }
  }
  INFO(found);
  REQUIRE(found.empty());
}
