// Tests the option --config FILE.toml.
#include "tests/support/catch.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tools/sstferry/command_arguments.h"

namespace sstferry::toml_test {
namespace {

rocksdb::Status Serve(const std::string& text, ServeArguments* out,
                      std::vector<std::string> words = {}) {
  const ScratchDir dir;
  WriteBytes(dir / "serve.toml", text);
  words.insert(words.end(), {"--config", dir / "serve.toml"});
  return ParseServe(words, out);
}

std::string Refused(const std::string& text) {
  ServeArguments unused;
  const rocksdb::Status status = Serve(text, &unused);
  INFO(text);
  REQUIRE(status.IsInvalidArgument());
  const std::string message = status.getState();
  return message.substr(message.find(".toml: ") + 7);
}

}  // namespace

TEST_CASE("A TOML file sets options by name, also switches and lists",
          "[tools][config]") {
  ServeArguments serve;
  REQUIRE_OK(Serve("# what is served\ndb = [\"a=/x\", \"b=/y y\"]\n"
                   "max-lanes = 3\nmax-rate = \"1.5M\"\nonce = true\n"
                   "allow-missing = false\nlog-format = \"json\"\n",
                   &serve, {"--max-lanes", "5"}));
  REQUIRE(serve.options.databases.size() == 2);
  REQUIRE(serve.options.databases[1].directory == "/y y");
  REQUIRE(serve.options.max_lanes == 5);  // the command line wins
  REQUIRE(serve.options.max_rate_bytes_per_sec == 1'500'000);
  REQUIRE(serve.once);
  REQUIRE_FALSE(serve.allow_missing);
  REQUIRE(serve.common.log_format == LogFormat::kJson);
}

TEST_CASE("A TOML file describes each database in a table of its own",
          "[tools][config]") {
  ServeArguments serve;
  REQUIRE_OK(Serve("tls-cert = \"c\"\ntls-key = \"k\"\ntls-ca = \"a\"\n"
                   "[[database]]\nname = \"orders\"\ndirectory = \"/x\"\n"
                   "allow = [\"replica-1\", \"replica-2\"]\n"
                   "[[database]]\nname = \"users\"\ndirectory = \"/y\"\n"
                   "wal-dir = \"/wal\"\n",
                   &serve));
  REQUIRE(serve.options.databases.size() == 2);
  REQUIRE(serve.options.databases[0].name == "orders");
  REQUIRE(serve.options.databases[0].allowed ==
          std::vector<std::string>{"replica-1", "replica-2"});
  REQUIRE(serve.options.databases[1].wal_dir == "/wal");
}

TEST_CASE("An error in a TOML file is reported with its line and the nearest "
          "name",
          "[tools][config]") {
  const std::string db = "db = \"a=/x\"\n";
  REQUIRE(Refused(db + "max-lane = 3\n") ==
          "line 2: max-lane: unknown option; did you mean max-lanes?");
  REQUIRE(Refused(db + "\nonce = \"yes\"\n").starts_with("line 3: once: "));
  REQUIRE(Refused(db + "max-lanes = true\n")
              .starts_with("line 2: max-lanes: expected a value"));
  const std::string twice = Refused(db + "max-lanes = [1, 2]\n");
  REQUIRE(twice.starts_with("line 2: "));
  REQUIRE(twice.find("max-lanes: expected once") != std::string::npos);
  REQUIRE(Refused(db + "max-lanes = 2.5\n")
              .starts_with("line 2: max-lanes: expected text"));
  REQUIRE(Refused(db + "config = \"x\"\n")
              .starts_with("line 2: config: expected this option on the "
                           "command line"));
  REQUIRE(Refused(db + "max-lanes = \n").starts_with("line 2: not TOML: "));
  REQUIRE(Refused(db + "[:x\n").starts_with("line 2: not TOML: "));
  REQUIRE(Refused("[[database]]\nname = \"a\"\ndirectory = \"/x\"\n"
                  "alow = [\"b\"]\n") ==
          "line 4: alow: unknown key of [[database]]; did you mean allow?");
  // An empty list would open the database to every certificate.
  const std::string none = "allow: expected at least one certificate";
  REQUIRE(Refused(db + "allow = []\n").starts_with("line 2: " + none));
  REQUIRE(Refused("[[database]]\nname = \"a\"\ndirectory = \"/x\"\n"
                  "allow = []\n")
              .starts_with("line 4: " + none));
  REQUIRE(Refused("\n[[database]]\nname = \"a\"\n")
              .starts_with("line 2: [[database]]: expected name and "));
  PullArguments pull;
  const ScratchDir dir;
  WriteBytes(dir / "pull.toml", "[[database]]\nname = \"a\"\n");
  REQUIRE(ParsePull(PullMode::kPull, {"--config", dir / "pull.toml"}, &pull)
              .IsInvalidArgument());
}

}  // namespace sstferry::toml_test
