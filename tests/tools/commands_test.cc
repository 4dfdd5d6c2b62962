#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/commands.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/support/catch.h"
#include "tools/sstferry/version.h"

namespace sstferry::commands_test {
namespace {

using Words = std::vector<std::string>;

// Returns the absolute path of a path below the working directory.
std::string Here(const std::string& path) {
  return (std::filesystem::current_path() / path).string();
}

// A config file in a new directory. The destructor removes both.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text) {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "sstferry_cfg_XXXXXX");
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    directory_ = pattern;
    path_ = (directory_ / "conf").string();
    std::ofstream(path_) << text;
  }
  ~ConfigFile() { std::filesystem::remove_all(directory_); }
  const std::string& path() const { return path_; }

 private:
  std::filesystem::path directory_;
  std::string path_;
};

std::string Refusal(const rocksdb::Status& status) {
  REQUIRE(status.IsInvalidArgument());
  return status.getState();
}

std::string PullRefusal(const Words& words) {
  PullArguments out;
  return Refusal(ParsePull(PullMode::kPull, words, &out));
}

}  // namespace

TEST_CASE("Pull without options has the documented defaults", "[tools]") {
  PullArguments pull;
  REQUIRE_OK(ParsePull(PullMode::kPull, {"sst://host/db", "/target"}, &pull));
  const PullOptions& options = pull.options;
  REQUIRE(options.source.host == "host");
  REQUIRE(options.source.port == 7420);
  REQUIRE(options.source.name == "db");
  REQUIRE(options.target_dir == "/target");
  REQUIRE(options.lanes == 4);
  REQUIRE(options.chunk_bytes == 64'000'000);
  REQUIRE(options.max_rate_bytes_per_sec == 0);
  REQUIRE(options.durability == Durability::kChunk);
  REQUIRE(options.method == PullMethod::kAuto);
  REQUIRE(options.other_files == OtherFiles::kCopy);
  REQUIRE(options.compression == WireCompression::kAuto);
  REQUIRE(options.compression_level == 0);
  REQUIRE(options.for_rocksdb.empty());
  REQUIRE(options.selection.families.empty());
  REQUIRE_FALSE(options.selection.interval.begin.has_value());
  REQUIRE_FALSE(options.selection.interval.end.has_value());
  REQUIRE_FALSE(options.restart);
  REQUIRE_FALSE(options.verify);
  REQUIRE_FALSE(pull.common.json);
  REQUIRE(pull.common.progress == ProgressMode::kAuto);
  REQUIRE(pull.common.progress_interval.count() == 10'000);
  REQUIRE(pull.common.log_level == LogLevel::kInfo);
}

TEST_CASE("Pull and verify have a timeout for a source that does not answer",
          "[tools]") {
  PullArguments pull;
  REQUIRE_OK(ParsePull(PullMode::kPull, {"s", "t", "--timeout", "5m"}, &pull));
  REQUIRE(pull.options.timeouts.stall.count() == 300'000);
  REQUIRE(pull.options.timeouts.retry.count() == 300'000);
  REQUIRE(pull.options.timeouts.first_answer->count() == 300'000);
  VerifyArguments verify;
  REQUIRE_OK(ParseVerify({"l", "r", "--timeout", "1500ms"}, &verify));
  REQUIRE(verify.options.timeouts.stall.count() == 1500);
}

TEST_CASE("Pull has a time limit for retries and one for the whole run",
          "[tools]") {
  PullArguments pull;
  REQUIRE_OK(ParsePull(PullMode::kPull, {"s", "t"}, &pull));
  REQUIRE(pull.options.timeouts.retry.count() == 600'000);
  REQUIRE(pull.options.timeouts.stall.count() == 120'000);
  REQUIRE_FALSE(pull.options.timeouts.first_answer.has_value());
  REQUIRE(pull.options.deadline.count() == 0);
  pull = PullArguments();
  REQUIRE_OK(ParsePull(PullMode::kPull,
                       {"s", "t", "--timeout", "2h", "--deadline", "90s"},
                       &pull));
  REQUIRE(pull.options.timeouts.retry.count() == 7'200'000);
  REQUIRE(pull.options.deadline.count() == 90'000);
}

TEST_CASE("Pull parses every option", "[tools]") {
  PullArguments pull;
  REQUIRE_OK(ParsePull(PullMode::kPull,
                       {"--restart",
                        "--lanes",
                        "8",
                        "--chunk-bytes=16Mi",
                        "--max-rate",
                        "20M",
                        "--cf",
                        "a",
                        "--cf",
                        "b",
                        "--begin",
                        "0x00",
                        "--end=",
                        "--verify",
                        "--durability",
                        "none",
                        "--for-rocksdb",
                        "8.11.4",
                        "--snapshot-dir",
                        "/snap",
                        "--json",
                        "--progress",
                        "json",
                        "--progress-interval",
                        "500ms",
                        "--log-level",
                        "debug",
                        "/source",
                        "/target"},
                       &pull)
                     .IsInvalidArgument()
                 ? rocksdb::Status::OK()
                 : rocksdb::Status::Corruption("--end= passed"));
  pull = PullArguments();
  REQUIRE_OK(ParsePull(PullMode::kPull,
                       {"--restart",
                        "--lanes",
                        "8",
                        "--chunk-bytes=16Mi",
                        "--max-rate",
                        "20M",
                        "--cf",
                        "a",
                        "--cf",
                        "b",
                        "--begin",
                        "0x00",
                        "--end",
                        "",
                        "--verify",
                        "--durability",
                        "none",
                        "--for-rocksdb",
                        "8.11.4",
                        "--other-files",
                        "ignore",
                        "--snapshot-dir",
                        "/snap",
                        "--json",
                        "--progress",
                        "json",
                        "--progress-interval",
                        "500ms",
                        "--log-level",
                        "debug",
                        "/source",
                        "/target"},
                       &pull));
  const PullOptions& options = pull.options;
  REQUIRE(options.source.directory == "/source");
  REQUIRE(options.restart);
  REQUIRE(options.verify);
  REQUIRE(options.lanes == 8);
  REQUIRE(options.chunk_bytes == 16u << 20);
  REQUIRE(options.max_rate_bytes_per_sec == 20'000'000);
  REQUIRE(options.selection.families == Words{"a", "b"});
  REQUIRE(*options.selection.interval.begin == std::string(1, '\0'));
  REQUIRE(options.selection.interval.end->empty());
  REQUIRE(options.durability == Durability::kNone);
  REQUIRE(options.for_rocksdb == "8.11.4");
  REQUIRE(options.other_files == OtherFiles::kIgnore);
  REQUIRE(options.snapshot_dir == "/snap");
  REQUIRE(pull.common.json);
  REQUIRE(pull.common.progress == ProgressMode::kJson);
  REQUIRE(pull.common.progress_interval.count() == 500);
  REQUIRE(pull.common.log_level == LogLevel::kDebug);
}

std::string HelpOf(const std::string& command, const std::string& name) {
  for (const OptionSpec& spec : AllOptions(*FindCommand(command))) {
    if (spec.name == name) {
      return HelpText(spec);
    }
  }
  return "";
}

TEST_CASE("Option --max-rate none sets full_rate, but no --max-rate does not",
          "[tools]") {
  for (const char* const text : {"none", "20M"}) {
    const bool none = std::string(text) == "none";
    PullArguments pull;
    REQUIRE_OK(ParsePull(PullMode::kPull, {"s", "t", "--max-rate", text},
                         &pull));
    REQUIRE(pull.options.full_rate == none);
    REQUIRE((pull.options.max_rate_bytes_per_sec == 0) == none);
    ServeArguments serve;
    REQUIRE_OK(ParseServe({"/db", "--max-rate", text}, &serve));
    REQUIRE(serve.options.full_rate == none);
  }
  REQUIRE_FALSE(PullOptions().full_rate);
  REQUIRE_FALSE(ServeOptions().full_rate);
}

TEST_CASE("Help prints the enforced bounds and the member's default",
          "[tools][help]") {
  REQUIRE(PullOptions().lanes == 4);
  REQUIRE(HelpOf("pull", "lanes") ==
          "Move N parts at the same time. 1 to 64. Default: 4.");
  REQUIRE(PullOptions().chunk_bytes == 64'000'000);
  REQUIRE(HelpOf("pull", "chunk-bytes") ==
          "Size of an SST chunk. 64Ki to 4Gi. Default: 64M.");
  REQUIRE(PullOptions().timeouts.retry == std::chrono::minutes(10));
  REQUIRE(PullOptions().max_rate_bytes_per_sec == 0);
  REQUIRE(HelpOf("pull", "max-rate").ends_with(" Default: no limit."));
  REQUIRE(HelpOf("pull", "durability").ends_with(" Default: chunk."));
  REQUIRE(HelpOf("serve", "listen").ends_with(" Default: 127.0.0.1:7420."));
  REQUIRE(HelpOf("serve", "min-free").ends_with(" 0% to 99%. Default: 5%."));
  REQUIRE(HelpOf("serve", "snapshot-ttl")
              .ends_with(" 1s to 31d, or 0: do not retain it. Default: 1h."));
}

TEST_CASE("Options whose help allows 0 accept 0", "[tools]") {
  ServeArguments serve;
  REQUIRE_OK(ParseServe({"--db", "/d", "--spool", "0", "--snapshot-ttl",
                         "0", "--share-snapshots", "0"},
                        &serve));
  REQUIRE(serve.options.spool_bytes == 0);
  REQUIRE(serve.options.snapshot_ttl.count() == 0);
  REQUIRE(serve.options.share_snapshots.count() == 0);
}

TEST_CASE("Pull parses every kind of compression", "[tools]") {
  struct Row {
    std::string text;
    WireCompression compression;
    uint32_t level;
  };
  const Row rows[] = {{"auto", WireCompression::kAuto, 0},
                      {"none", WireCompression::kNone, 0},
                      {"zstd", WireCompression::kZstd, 0},
                      {"zstd:1", WireCompression::kZstd, 1},
                      {"zstd:19", WireCompression::kZstd, 19}};
  for (const Row& row : rows) {
    PullArguments pull;
    INFO(row.text);
    REQUIRE_OK(
        ParsePull(PullMode::kPull, {"s", "t", "--compress", row.text}, &pull));
    REQUIRE(pull.options.compression == row.compression);
    REQUIRE(pull.options.compression_level == row.level);
  }
  for (const std::string text :
       {"", "lz4", "zstd:", "zstd:0", "zstd:20", "zstd:-1", "zstd:1:1",
        "auto:1", "none:", "ZSTD"}) {
    INFO(text);
    REQUIRE(PullRefusal({"s", "t", "--compress", text}).find("--compress") ==
            0);
  }
}

TEST_CASE("Pull refuses wrong usage and names the option", "[tools]") {
  const std::vector<std::pair<Words, std::string>> rows = {
      {{}, "source: "},
      {{"s"}, "target: "},
      {{"", "t"}, "database address: "},
      {{"s", ""}, "target: "},
      {{"s", "t", "u"}, "operands: expected no more than 2, found \"u\""},
      {{"-v", "s", "t"}, "-v: unknown option"},
      {{"-v", "t"}, "-v: unknown option"},
      {{"s", "t", "--nonsense"}, "--nonsense"},
      {{"s", "t", "--lane", "4"}, "--lane"},
      {{"s", "t", "--lanes"}, "--lanes"},
      {{"s", "t", "--lanes", "0"}, "--lanes: "},
      {{"s", "t", "--lanes", "65"}, "--lanes: "},
      {{"s", "t", "--lanes", "-1"}, "--lanes: "},
      {{"s", "t", "--lanes", "4", "--lanes", "4"}, "--lanes"},
      {{"s", "t", "--chunk-bytes", "1K"}, "--chunk-bytes: "},
      {{"s", "t", "--chunk-bytes", "5Gi"}, "--chunk-bytes: "},
      {{"s", "t", "--max-rate", "0"}, "--max-rate: "},
      {{"s", "t", "--durability", "all"}, "--durability: "},
      {{"s", "t", "--other-files", "all"}, "--other-files: "},
      {{"s", "t", "--method", "files"}, "--method: expected auto, ingest or "},
      {{"s", "t", "--method", "clone", "--cf", "a"},
       "--cf: expected default among them"},
      {{"s", "t", "--keep-identity"}, "--method clone"},
      {{"s", "t", "--always-swap"}, "sstferry swap"},
      {{"s", "t", "--reuse", "d"}, "--method clone"},
      {{"s", "t", "--mode", "refresh"}, "--mode: unknown option"},
      {{"s", "t", "--for-rocksdb", "newest"}, "--for-rocksdb: "},
      {{"s", "t", "--begin", "0x0"}, "--begin: "},
      {{"s", "t", "--begin", "--verify"}, "--begin: "},
      {{"s", "t", "--cf", ""}, "--cf: "},
      {{"s", "t", "--cf", "a", "--cf", "a"}, "--cf: "},
      {{"s", "t", "--progress", "maybe"}, "--progress: "},
      {{"s", "t", "--progress-interval", "10"}, "--progress-interval: "},
      {{"s", "t", "--log-level", "trace"}, "--log-level: "},
      {{"s", "t", "--verify=yes"}, "--verify"},
      {{"s", "t", "--config", "/no/such/file"}, "--config /no/such/file: "},
      {{"s", "sst://host/db"}, "target: expected a directory of this machine"},
      {{"sst://host", "t"}, "source: "},
      {{"sst://host/a b", "t"}, "database name: "},
      {{"sst://host:0/db", "t"}, "port: "},
      {{"sst://host:70000/db", "t"}, "database address: "},
      {{"sst:///db", "t"}, "database address: "},
      {{"http://host/db", "t"}, "database address: "},
  };
  for (const auto& [words, expected] : rows) {
    std::string shown;
    for (const std::string& word : words) {
      shown += "[" + word + "]";
    }
    INFO(shown);
    const std::string sentence = PullRefusal(words);
    INFO(sentence);
    REQUIRE(sentence.find(expected) != std::string::npos);
  }
}

TEST_CASE("An operand after -- may begin with a dash", "[tools]") {
  PullArguments pull;
  REQUIRE_OK(ParsePull(PullMode::kPull, {"--", "-source", "-target"}, &pull));
  REQUIRE(pull.options.source.directory == Here("-source"));
  REQUIRE(pull.options.target_dir == "-target");
}

TEST_CASE("A config file sets options and operands, but the command line wins",
          "[tools]") {
  const ConfigFile file(
      "# nightly\nsource = 'sst://[::1]:7777/users'\ntarget='/copy'\n"
      "lanes = 8\ncf = ['a', 'b']\nverify = true\nmax-rate = '20M'\n");
  PullArguments pull;
  REQUIRE_OK(ParsePull(PullMode::kPull, {"--config", file.path()}, &pull));
  REQUIRE(pull.options.source.host == "::1");
  REQUIRE(pull.options.source.port == 7777);
  REQUIRE(pull.options.source.ToString() == "sst://[::1]:7777/users");
  REQUIRE(pull.options.target_dir == "/copy");
  REQUIRE(pull.options.lanes == 8);
  REQUIRE(pull.options.verify);
  REQUIRE(pull.options.selection.families == Words{"a", "b"});

  pull = PullArguments();
  REQUIRE_OK(ParsePull(PullMode::kPull,
                       {"--config", file.path(), "--lanes", "2", "--cf", "c",
                        "/other", "/elsewhere"},
                       &pull));
  REQUIRE(pull.options.source.directory == "/other");
  REQUIRE(pull.options.target_dir == "/elsewhere");
  REQUIRE(pull.options.lanes == 2);
  REQUIRE(pull.options.selection.families == Words{"c"});
  REQUIRE(pull.options.max_rate_bytes_per_sec == 20'000'000);
}

TEST_CASE("A config file with a wrong line is wrong usage", "[tools]") {
  for (const std::string text :
       {"lane = 4\n", "once = true\n", "config = 'x'\n", "help = true\n",
        "lanes = 0\n", "lanes = 4\nlanes = 5\n", "lanes\n", "[pull]\nlanes=4\n",
        "verify = 'yes'\n"}) {
    const ConfigFile file(text);
    INFO(text);
    REQUIRE_FALSE(
        PullRefusal({"s", "t", "--config", file.path()}).empty());
  }
  REQUIRE_FALSE(PullRefusal({"s", "t", "--config", "/"}).empty());
}

TEST_CASE("Serve takes databases by name and refuses a duplicate name",
          "[tools]") {
  ServeArguments serve;
  REQUIRE_OK(ParseServe(
      {"--db", "/data/a", "--db", "other=/data/a", "--listen", "[::1]:0",
       "--max-lanes", "3", "--max-rate", "1Gi", "--once", "--timeout", "90s",
       "--snapshot-ttl", "2h", "--min-free", "10%"},
      &serve));
  REQUIRE(serve.options.databases.size() == 2);
  REQUIRE(serve.options.databases[0].name == "a");
  REQUIRE(serve.options.databases[1].name == "other");
  REQUIRE(serve.options.databases[1].directory == "/data/a");
  REQUIRE(serve.listen.host == "::1");
  REQUIRE(serve.listen.port == 0);
  REQUIRE(serve.options.max_lanes == 3);
  REQUIRE(serve.options.max_rate_bytes_per_sec == 1u << 30);
  REQUIRE(serve.once);
  REQUIRE_FALSE(serve.allow_missing);
  REQUIRE(serve.options.timeouts.stall.count() == 90'000);
  REQUIRE(serve.options.snapshot_ttl.count() == 7200);
  REQUIRE(serve.options.min_free_percent == 10);

  serve = ServeArguments();
  REQUIRE_OK(ParseServe({"--db", "/data/a"}, &serve));
  REQUIRE(serve.listen.host == "127.0.0.1");
  REQUIRE(serve.listen.port == 7420);
  REQUIRE(serve.options.max_lanes == 16);
  REQUIRE(serve.options.timeouts.stall.count() == 120'000);
  REQUIRE(serve.options.snapshot_ttl.count() == 3600);
  REQUIRE(serve.options.min_free_percent == 5);

  serve = ServeArguments();
  REQUIRE_OK(ParseServe({"--db", "/data/a", "--snapshot-ttl", "0", "--min-free",
                         "0%"},
                        &serve));
  REQUIRE(serve.options.snapshot_ttl.count() == 0);
  REQUIRE(serve.options.min_free_percent == 0);

  for (const Words& words :
       std::vector<Words>{{},
                          {"--db", "/data/a", "--db", "/more/a"},
                          {"--db", "bad name=/data"},
                          {"--db", "/data/a", "/more/a"},
                          {"--db", "/data/a", "--max-lanes", "65"},
                          {"--db", "/data/a", "--snapshot-ttl", "500ms"},
                          {"--db", "/data/a", "--snapshot-ttl", "745h"},
                          {"--db", "/data/a", "--snapshot-ttl", ""},
                          {"--db", "/data/a", "--min-free", "5"},
                          {"--db", "/data/a", "--min-free", "100%"},
                          {"--db", "/data/a", "--min-free", "%"},
                          {"--db", "/data/a", "--listen", ":1"},
                          {"--db", "/data/a", "--listen", "127.0.0.1:65536"}}) {
    ServeArguments out;
    REQUIRE_FALSE(Refusal(ParseServe(words, &out)).empty());
  }
}

TEST_CASE(
    "Option --metrics needs a loopback address, --metrics-file a .prom name",
    "[tools]") {
  ServeArguments serve;
  REQUIRE_OK(ParseServe({"--db", "/d"}, &serve));
  REQUIRE_FALSE(serve.metrics.listen.has_value());
  REQUIRE_OK(ParseServe({"--db", "/d", "--metrics", "[::1]:9420"}, &serve));
  REQUIRE(serve.metrics.listen->host == "::1");
  REQUIRE(serve.metrics.listen->port == 9420);
  for (const std::string where :
       {"0.0.0.0:9420", "[::]:1", "192.0.2.1:9420", "127.0.0.1", "[::1]",
        ":9420", "127.0.0.1:x"}) {
    INFO(where);
    serve = ServeArguments();
    REQUIRE(Refusal(ParseServe({"--db", "/d", "--metrics", where}, &serve))
                .find("--metrics: ") == 0);
  }
  PullArguments pull;
  REQUIRE_OK(ParsePull(PullMode::kPull,
                       {"/s", "/t", "--metrics-file", "/var/lib/m/users.prom"},
                       &pull));
  REQUIRE(pull.metrics.file == "/var/lib/m/users.prom");
  for (const std::string file : {"", "users", "users.prom.tmp", "/d/.prom"}) {
    INFO(file);
    REQUIRE(PullRefusal({"/s", "/t", "--metrics-file", file})
                .find("--metrics-file: ") == 0);
  }
}

TEST_CASE("Serve listens on other than loopback only with --insecure",
          "[tools]") {
  for (const std::string where : {"0.0.0.0:0", "[::]:0", "192.0.2.1:7420"}) {
    ServeArguments serve;
    INFO(where);
    REQUIRE(Refusal(ParseServe({"--db", "/d", "--listen", where}, &serve))
                .find("--insecure") != std::string::npos);
    serve = ServeArguments();
    REQUIRE_OK(
        ParseServe({"--db", "/d", "--listen", where, "--insecure"}, &serve));
  }
}

TEST_CASE(
    "TLS needs all three files, and allows serve to listen on any address",
    "[tools][tls]") {
  const Words tls = {"--tls-cert", "/c", "--tls-key", "/k", "--tls-ca", "/a"};
  const auto with = [&](Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  ServeArguments serve;
  REQUIRE_OK(ParseServe(
      with({"--db", "n=/d", "--listen", "0.0.0.0:0", "--allow", "n=a=b",
            "--allow", "n=c", "--max-connections", "7", "--max-per-address",
            "5"},
           tls),
      &serve));
  REQUIRE(serve.tls.cert == "/c");
  REQUIRE(serve.tls.key == "/k");
  REQUIRE(serve.tls.ca == "/a");
  REQUIRE(serve.options.databases[0].allowed == Words{"a=b", "c"});
  REQUIRE(serve.options.max_connections == 7);
  REQUIRE(serve.options.max_connections_per_address == 5);
  PullArguments pull;
  REQUIRE_OK(ParsePull(PullMode::kPull, with({"sst://h/n", "/t"}, tls), &pull));
  REQUIRE(pull.options.tls.ca == "/a");
  VerifyArguments verify;
  REQUIRE_OK(ParseVerify(with({"sst://h/n", "/t"}, tls), &verify));
  REQUIRE(verify.options.tls.key == "/k");
  for (const Words& some :
       std::vector<Words>{{"--tls-cert", "/c"},
                          {"--tls-key", "/k", "--tls-ca", "/a"},
                          {"--tls-cert", "", "--tls-key", "/k", "--tls-ca",
                           "/a"}}) {
    pull = PullArguments();
    REQUIRE(Refusal(ParsePull(PullMode::kPull, with({"sst://h/n", "/t"}, some),
                              &pull))
                .find("--tls-") == 0);
  }
  const std::vector<std::pair<Words, std::string>> rows = {
      {{"--allow", "n=x"}, "--allow: needs --tls"},
      {with({"--allow", "m=x"}, tls), "--allow: expected a NAME that --db"},
      {with({"--allow", "n="}, tls), "--allow: expected NAME=SUBJECT"},
      {with({"--allow", "n"}, tls), "--allow: expected NAME=SUBJECT"},
      {{"--max-connections", "0"},
       "--max-connections: expected a whole number"},
      {{"--max-per-address", "0"},
       "--max-per-address: expected a whole number"},
  };
  for (const auto& [words, text] : rows) {
    serve = ServeArguments();
    const std::string said =
        Refusal(ParseServe(with({"--db", "n=/d"}, words), &serve));
    INFO(said);
    REQUIRE(said.find(text) == 0);
  }
}

TEST_CASE("A Unix socket takes --allow-uid and refuses TLS options",
          "[tools]") {
  const Words tls = {"--tls-cert", "/c", "--tls-key", "/k", "--tls-ca", "/a"};
  ServeArguments serve;
  REQUIRE_OK(ParseServe({"--db", "n=/d", "--listen", "unix:/run/s",
                         "--allow-uid", "0", "--allow-uid", "4711",
                         "--allow-uid", "root"},
                        &serve));
  REQUIRE(serve.listen.host == "/run/s");
  REQUIRE(serve.listen.is_unix());
  REQUIRE(serve.allowed_uids == std::vector<uint32_t>{0, 4711, 0});
  const Words socket = {"--db", "n=/d", "--listen", "unix:/run/s"};
  const std::vector<std::pair<Words, std::string>> rows = {
      {{"--allow-uid", "no such account"}, "--allow-uid: expected a user's"},
      {{"--allow-uid", ""}, "--allow-uid: expected a user's"},
      {{"--allow-uid", "-1"}, "--allow-uid: expected a user's"},
      {{"--allow-uid", "4294967295"}, "--allow-uid: expected a whole number"},
      // 65534 stands for all unmapped accounts in a user namespace.
      {{"--allow-uid", "65534"}, "--allow-uid: expected an account other"},
      {{"--allow", "n=x"}, "--allow: needs --tls"},
      {{"--metrics", "unix:/run/m"}, "--metrics: expected an address"},
      {tls, "--tls, --tls-cert, --tls-key, --tls-ca: expected none"},
  };
  for (const auto& [words, text] : rows) {
    Words all = socket;
    all.insert(all.end(), words.begin(), words.end());
    serve = ServeArguments();
    const std::string said = Refusal(ParseServe(all, &serve));
    INFO(said);
    REQUIRE(said.find(text) == 0);
  }
  serve = ServeArguments();
  REQUIRE(Refusal(ParseServe({"--db", "n=/d", "--allow-uid", "0"}, &serve))
              .find("--allow-uid: needs --listen unix:/PATH") == 0);
  const auto with = [&tls](Words words) {
    words.insert(words.end(), tls.begin(), tls.end());
    return words;
  };
  PullArguments pull;
  REQUIRE_OK(ParsePull(PullMode::kPull, {"unix:/run/s:n", "/t"}, &pull));
  REQUIRE(pull.options.source.ToString() == "unix:/run/s:n");
  REQUIRE(
      Refusal(ParsePull(PullMode::kPull, with({"unix:/run/s:n", "/t"}), &pull))
          .find("--tls") == 0);
  REQUIRE(Refusal(ParsePull(PullMode::kPull, {"unix:/run/s", "/t"}, &pull))
              .find("source: expected unix:/PATH:NAME") == 0);
  REQUIRE(Refusal(ParsePull(PullMode::kPull, {"/s", "unix:/t"}, &pull))
              .find("target: ") == 0);
  // The TLS options apply to the operand that is not a Unix socket.
  VerifyArguments verify;
  REQUIRE_OK(ParseVerify(with({"unix:/run/s:n", "sst://h/n"}), &verify));
  REQUIRE_OK(ParseVerify(with({"sst://h/n", "unix:/run/s:n"}), &verify));
  REQUIRE_FALSE(Refusal(ParseVerify(with({"unix:/run/s:n", "/t"}), &verify))
                    .empty());
  StatusArguments status;
  REQUIRE_OK(ParseStatus({"unix:/run/s"}, &status));
  REQUIRE_OK(ParseLs({"unix:/run/s"}, &status));
  REQUIRE_FALSE(Refusal(ParseLs(with({"unix:/run/s"}), &status)).empty());
}

TEST_CASE("Plan's help lists only options it uses, but plan takes all options",
          "[tools]") {
  for (const OptionSpec& spec : FindCommand("plan")->options) {
    REQUIRE(std::string(spec.name) != "max-rate");
  }
  PullArguments plan;
  REQUIRE_OK(ParsePlan(
      {"s", "t", "--max-rate", "5M", "--verify", "--lanes", "3", "--summary"},
      &plan));
  REQUIRE(plan.options.lanes == 3);
  REQUIRE(plan.options.mode == PullMode::kPull);
  REQUIRE(plan.summary_only);
  REQUIRE_OK(ParsePlan({"refresh", "s", "t", "--drop-missing"}, &plan));
  REQUIRE(plan.options.mode == PullMode::kRefresh);
  REQUIRE(plan.options.source.directory == Here("s"));
  REQUIRE(plan.options.drop_missing);
  REQUIRE_OK(ParsePlan({"swap", "s", "t", "--after-swap", "a"}, &plan));
  REQUIRE(plan.options.mode == PullMode::kSwap);
  REQUIRE(Refusal(ParsePlan({"s", "t", "--drop-missing"}, &plan))
              .find("--drop-missing: needs sstferry refresh") == 0);
  // A source directory that is named swap.
  REQUIRE_OK(ParsePlan({"./swap", "t"}, &plan));
  REQUIRE(plan.options.source.directory == Here("swap"));
}

TEST_CASE("A relative source is kept as an absolute path", "[tools]") {
  PullArguments pull;
  for (const char* text : {"a/b", "./a/b", "a//b/", "a/./b"}) {
    INFO(text);
    REQUIRE_OK(ParsePull(PullMode::kPull, {text, "/t"}, &pull));
    REQUIRE(pull.options.source.directory == Here("a/b"));
  }
  // A link may stand before the dots.
  REQUIRE_OK(ParsePull(PullMode::kPull, {"a/../b", "/t"}, &pull));
  REQUIRE(pull.options.source.directory == Here("a/../b"));
  REQUIRE_OK(ParsePull(PullMode::kPull, {"/a/../b/", "/t"}, &pull));
  REQUIRE(pull.options.source.directory == "/a/../b/");
  REQUIRE_OK(ParsePull(PullMode::kPull, {"db1:/a", "/t"}, &pull));
  REQUIRE(pull.options.source.directory == "/a");
}

TEST_CASE("Plan needs neither a target nor a database name", "[tools]") {
  PullArguments plan;
  REQUIRE_OK(ParsePlan({"sst://host:1"}, &plan));
  REQUIRE(plan.options.source.name.empty());
  REQUIRE(plan.options.source.ToString() == "sst://host:1");
  REQUIRE(plan.options.target_dir.empty());
  REQUIRE_FALSE(Refusal(ParsePlan({}, &plan)).empty());
  // Fails as a pull would, which runs at the target.
  REQUIRE(Refusal(ParsePlan({"/a", "sst://h/b"}, &plan))
              .find("pull runs at the target") != std::string::npos);
}

TEST_CASE("Verify parses its operands", "[tools]") {
  VerifyArguments verify;
  REQUIRE_OK(ParseVerify({"/a", "sst://h/b", "--cf", "x", "--begin", "k"},
                         &verify));
  REQUIRE(verify.options.left.directory == "/a");
  REQUIRE(verify.options.right.name == "b");
  REQUIRE(verify.options.selection.families == Words{"x"});
  REQUIRE(*verify.options.selection.interval.begin == "k");
  REQUIRE(verify.options.max_differences_shown == 10);
  REQUIRE_FALSE(verify.options.left_snapshot.has_value());
  const std::string id = "00ff" + std::string(28, 'a');
  REQUIRE_OK(ParseVerify({"/a", "/b", "--snapshot", id}, &verify));
  REQUIRE(ToHex(*verify.options.left_snapshot) == id);
  for (const std::string& wrong :
       {id + "aa", id.substr(2), "zz" + id.substr(2), std::string()}) {
    REQUIRE(Refusal(ParseVerify({"/a", "/b", "--snapshot", wrong}, &verify))
                .find("--snapshot: expected 32 hex digits") == 0);
  }
  for (const uint32_t show : {0u, 100'000u}) {
    REQUIRE_OK(ParseVerify({"/a", "/b", "--show", std::to_string(show)},
                           &verify));
    REQUIRE(verify.options.max_differences_shown == show);
  }
  for (const char* show : {"-1", "100001", "all", ""}) {
    REQUIRE(Refusal(ParseVerify({"/a", "/b", "--show", show}, &verify))
                .find("--show: ") == 0);
  }
  REQUIRE(Refusal(ParseVerify({"/a"}, &verify)).find("right: ") == 0);
  REQUIRE(Refusal(ParseVerify({"/a", "sst://h"}, &verify)).find("right: ") ==
          0);
}

TEST_CASE("Option --wal-dir needs a source directory, and serve takes several",
          "[tools]") {
  PullArguments pull;
  REQUIRE_OK(
      ParsePull(PullMode::kPull, {"/s", "/t", "--wal-dir", "/w"}, &pull));
  REQUIRE(pull.options.wal_dir == "/w");
  REQUIRE_OK(ParsePlan({"/s", "--wal-dir", "/p"}, &pull));
  REQUIRE(pull.options.wal_dir == "/p");
  REQUIRE(Refusal(ParsePull(PullMode::kPull,
                            {"sst://h/n", "/t", "--wal-dir", "/w"}, &pull))
              .find("--wal-dir: expected a source directory") == 0);
  VerifyArguments verify;
  REQUIRE_OK(ParseVerify({"/s", "/t", "--wal-dir", "/w"}, &verify));
  REQUIRE(verify.options.wal_dir == "/w");
  REQUIRE(Refusal(ParseVerify({"sst://h/n", "/t", "--wal-dir", "/w"}, &verify))
              .find("--wal-dir: expected a source directory") == 0);
  ServeArguments serve;
  REQUIRE_OK(ParseServe({"--db", "n=/d", "--db", "m=/e", "--wal-dir", "m=/w"},
                        &serve));
  REQUIRE(serve.options.databases[0].wal_dir.empty());
  REQUIRE(serve.options.databases[1].wal_dir == "/w");
  REQUIRE(Refusal(ParseServe({"--db", "n=/d", "--wal-dir", "x=/w"}, &serve))
              .find("--wal-dir: expected a NAME that --db") == 0);
  REQUIRE(Refusal(ParseServe({"--db", "n=/d", "--wal-dir", "n"}, &serve))
              .find("--wal-dir: expected NAME=DIR") == 0);
}

TEST_CASE("Status takes an address or directory, release a directory and an id",
          "[tools]") {
  StatusArguments status;
  REQUIRE_OK(ParseStatus({"/a", "--snapshot-dir", "/b"}, &status));
  REQUIRE(status.options.where.directory == "/a");
  REQUIRE(status.options.snapshot_dir == "/b");
  REQUIRE_OK(ParseStatus({"sst://h"}, &status));
  REQUIRE(status.options.where.name.empty());
  REQUIRE(Refusal(ParseStatus({}, &status)).find("place: ") == 0);
  ReleaseArguments release;
  REQUIRE_OK(ParseRelease({"/a", "00FFaabb"}, &release));
  REQUIRE(release.source.directory == "/a");
  REQUIRE(release.id == "00ffaabb");
  REQUIRE_OK(ParseRelease({"/a", std::string(32, '0')}, &release));
  for (const std::string& wrong :
       {std::string(7, '0'), std::string(33, '0'), std::string("0000000g"),
        std::string()}) {
    REQUIRE(Refusal(ParseRelease({"/a", wrong}, &release)).find("id: ") == 0);
  }
  REQUIRE(Refusal(ParseRelease({"sst://h/a", std::string(32, '0')}, &release))
              .find("source: ") == 0);
  REQUIRE(Refusal(ParseRelease({}, &release)).find("source: ") == 0);
}

TEST_CASE("Version names sstferry, RocksDB, zstd and the protocol",
          "[tools]") {
  const std::string text = VersionText();
  REQUIRE(text.find("sstferry " SSTFERRY_VERSION "\n") == 0);
  for (const char* word : {"\nRocksDB ", "\nzstd ", "\nprotocol 1"}) {
    REQUIRE(text.find(word) != std::string::npos);
  }
}

}  // namespace sstferry::commands_test
