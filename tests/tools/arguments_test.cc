#include "tools/sstferry/arguments.h"
#include "tools/sstferry/command_arguments.h"

#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::arguments_test {
namespace {

std::string Sentence(const rocksdb::Status& status) {
  REQUIRE(status.IsInvalidArgument());
  return status.getState() == nullptr ? "" : status.getState();
}

}  // namespace

TEST_CASE("ParseByteCount reads every unit", "[tools]") {
  const std::vector<std::pair<std::string, uint64_t>> good = {
      {"1", 1},
      {"7B", 7},
      {"2K", 2000},
      {"2KB", 2000},
      {"64M", 64'000'000},
      {"64MB", 64'000'000},
      {"3G", 3'000'000'000},
      {"3GB", 3'000'000'000},
      {"2Ki", 2048},
      {"2KiB", 2048},
      {"64Mi", 64ull << 20},
      {"64MiB", 64ull << 20},
      {"4Gi", 4ull << 30},
      {"4GiB", 4ull << 30},
      {"64m", 64'000'000},
      {"64k", 64'000},
      {"1Kib", 1024},
      {"64mIb", 64ull << 20},
      {"1.5G", 1'500'000'000},
      {"1.5gib", 3ull << 29},
      {"0.25Ki", 256},
      {"1.9999K", 1999},
      {"2T", 2'000'000'000'000},
      {"2Ti", 2ull << 40},
      {"18446744073.709551615G", UINT64_MAX},
      {"18446744073709551615", UINT64_MAX},
      {"17179869183Gi", 17179869183ull << 30},
  };
  for (const auto& [text, expected] : good) {
    uint64_t bytes = 0;
    INFO(text);
    REQUIRE_OK(ParseByteCount("--x", text, &bytes));
    REQUIRE(bytes == expected);
  }
}

TEST_CASE("ParseByteCount refuses other text and says what it expected",
          "[tools]") {
  for (const std::string text : {"",
                                 "0",
                                 "0K",
                                 "-1",
                                 "+1",
                                 " 1",
                                 "1 ",
                                 "1 K",
                                 "1.5",
                                 "1.5B",
                                 "1.",
                                 ".5K",
                                 "1..5K",
                                 "1.5.0K",
                                 "1.K",
                                 "0.0001K",
                                 "1.0000000001T",
                                 "64X",
                                 "K",
                                 "0x10",
                                 "1KK",
                                 "1bb",
                                 "64MiBs",
                                 "16777216Ti",
                                 "18446744073.709551616G",
                                 "18446744073709551616",
                                 "18446744073709551615K",
                                 "17179869184Gi",
                                 "1e9"}) {
    uint64_t bytes = 0;
    INFO("\"" << text << "\"");
    const std::string sentence =
        Sentence(ParseByteCount("--max-rate", text, &bytes));
    REQUIRE(sentence.find("--max-rate: expected bytes") == 0);
    REQUIRE(sentence.find("found \"" + text + "\"") != std::string::npos);
  }
}

TEST_CASE("ParseDuration reads d, h, m, s and ms, largest unit first",
          "[tools]") {
  std::chrono::milliseconds out{0};
  REQUIRE_OK(ParseDuration("--x", "1ms", &out));
  REQUIRE(out.count() == 1);
  REQUIRE_OK(ParseDuration("--x", "10s", &out));
  REQUIRE(out.count() == 10'000);
  REQUIRE_OK(ParseDuration("--x", "2m", &out));
  REQUIRE(out.count() == 120'000);
  REQUIRE_OK(ParseDuration("--x", "8760h", &out));
  REQUIRE(out.count() == 8760ll * 3'600'000);
  const std::vector<std::pair<std::string, long long>> good = {
      {"90s", 90'000},
      {"1h30m", 5'400'000},
      {"4h30m", 16'200'000},
      {"1d", 86'400'000},
      {"1d12h", 129'600'000},
      {"1d2h3m4s5ms", 93'784'005},
      {"1m500ms", 60'500},
      {"0h30m", 1'800'000},
      {"365d", 31'536'000'000},
  };
  for (const auto& [text, millis] : good) {
    INFO(text);
    REQUIRE_OK(ParseDuration("--x", text, &out));
    REQUIRE(out.count() == millis);
  }
  for (const std::string text :
       {"", "10", "0s", "-1s", "1.5s", "s", "10 s", "8761h", "366d",
        "30m1h", "1h1h", "1h30", "1h m", "1dd", "1D", "365d1ms", "0d0s", "1w",
        "99999999999999999999s", "18446744073709551615h"}) {
    INFO(text);
    REQUIRE_FALSE(Sentence(ParseDuration("--x", text, &out)).empty());
  }
}

TEST_CASE("ParseKey reads hexadecimal after 0x and all else as text",
          "[tools]") {
  const std::vector<std::pair<std::string, std::string>> good = {
      {"", ""},
      {"0x", ""},
      {"0x00fF", std::string("\x00\xff", 2)},
      {"user:1", "user:1"},
      {"0X41", "0X41"},
      {"x0x41", "x0x41"},
      {"\xc3\xa9", "\xc3\xa9"},
  };
  for (const auto& [text, expected] : good) {
    std::string key = "before";
    INFO(text);
    REQUIRE_OK(ParseKey("--begin", text, &key));
    REQUIRE(key == expected);
  }
  for (const std::string text : {"0x0", "0xabc", "0xzz", "0x 1", "0x-1"}) {
    std::string key;
    INFO(text);
    REQUIRE(Sentence(ParseKey("--begin", text, &key)).find("--begin: ") == 0);
  }
  std::string key;
  REQUIRE_FALSE(
      Sentence(ParseKey("--end", std::string(300'000, 'k'), &key)).empty());
}

TEST_CASE("ParseNumber enforces its bounds", "[tools]") {
  uint64_t number = 0;
  REQUIRE_OK(ParseNumber("--lanes", "1", 1, 64, &number));
  REQUIRE(number == 1);
  REQUIRE_OK(ParseNumber("--lanes", "64", 1, 64, &number));
  REQUIRE(number == 64);
  for (const std::string text : {"", "0", "65", "-1", "4x", " 4", "1K",
                                 "18446744073709551617"}) {
    INFO(text);
    REQUIRE(Sentence(ParseNumber("--lanes", text, 1, 64, &number)) ==
            "--lanes: expected a whole number from 1 to 64, found \"" + text +
                "\"");
  }
}

TEST_CASE("ParseNamedDirectory reads a name or derives it from the directory",
          "[tools]") {
  struct Row {
    std::string text, name, directory;
  };
  const Row good[] = {
      {"/data/users", "users", "/data/users"},
      {"/data/users/", "users", "/data/users/"},
      {"/data/users/.", "users", "/data/users/."},
      {"/data/x/../users", "users", "/data/x/../users"},
      {"live=/data/users", "live", "/data/users"},
      {"a=b=c", "a", "b=c"},
      {"./d=1", "", ""},
      {"users", "users", "users"},
  };
  for (const Row& row : good) {
    NamedDirectory out;
    INFO(row.text);
    if (row.name.empty()) {
      REQUIRE_FALSE(
          Sentence(ParseNamedDirectory("--db", row.text, &out)).empty());
      continue;
    }
    REQUIRE_OK(ParseNamedDirectory("--db", row.text, &out));
    REQUIRE(out.name == row.name);
    REQUIRE(out.directory == row.directory);
  }
  const std::string long_name(241, 'a');
  for (const std::string& text : std::vector<std::string>{
           "", "a=", "=/data", "my db=/data", "/data/my db", "/", "n@me=/d",
           long_name + "=/d"}) {
    NamedDirectory out;
    INFO(text);
    REQUIRE_FALSE(
        Sentence(ParseNamedDirectory("--db", text, &out)).empty());
  }
}

TEST_CASE("An option that permits one act is refused in a config file",
          "[tools]") {
  const ScratchDir dir;
  std::ofstream(dir / "config") << "dir = '/d'\nadopt = true\n";
  const std::string refused = "--config " + (dir / "config") +
                              ": line 2: adopt: expected this option on the "
                              "command line, not in this file";
  PullArguments pull;
  FollowArguments follow;
  ArchiveArguments archive;
  const std::vector<std::string> words = {"--config", dir / "config"};
  REQUIRE(Sentence(ParseFollow(words, &follow)) == refused);
  std::ofstream(dir / "config") << "target = '/d'\nadopt = true\n";
  REQUIRE(Sentence(ParsePull(PullMode::kRefresh, words, &pull)) == refused);
  REQUIRE(Sentence(ParsePull(PullMode::kSwap, words, &pull)) == refused);
  std::ofstream(dir / "config") << "label = 'x'\nadopt = true\n";
  REQUIRE(Sentence(ParseArchive({"push", "/s", "/a", "--config",
                                 dir / "config"},
                                &archive)) == refused);
  std::ofstream(dir / "config") << "dir = '/d'\n";
  REQUIRE_OK(ParseFollow({"/s", "/d", "--adopt"}, &follow));
  REQUIRE(follow.options.adopt);
}

TEST_CASE("The error for an unknown option lists the nearest options",
          "[tools]") {
  const std::vector<OptionSpec> specs = {
      {"lanes", "N", OptionGroup::kCommon, ""},
      {"verify", nullptr, OptionGroup::kCommon, ""},
      {"tls-cert", "FILE", OptionGroup::kNetwork, ""},
      {"tls-key", "FILE", OptionGroup::kNetwork, ""},
      {"config", "FILE", OptionGroup::kCommon, ""}};
  const ScratchDir dir;
  const auto read = [&](const std::vector<std::string>& arguments) {
    OptionTexts out;
    return ReadOptions(specs, {"source"}, arguments, &out);
  };
  const auto config = [&](const std::string& text) {
    std::ofstream(dir / "config") << text;
    return read({"--config", dir / "config"});
  };
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"--lane", "--lane: unknown option; did you mean --lanes?"},
      {"--lnaes=4", "--lnaes: unknown option; did you mean --lanes?"},
      {"--verfiy", "--verfiy: unknown option; did you mean --verify?"},
      {"-verify", "-verify: unknown option; did you mean --verify?"},
      {"--tls", "--tls: unknown option; did you mean --tls-cert or --tls-key?"},
      {"--nonsense", "--nonsense: unknown option"},
      {"--%option%", "--%option%: unknown option"},
      {"-x", "-x: unknown option"},
      {"--=x", "--: unknown option"},
      {"--=", "--: unknown option"},
      {"---lanes=4", "---lanes: unknown option; did you mean --lanes?"},
      {"--lane=", "--lane: unknown option; did you mean --lanes?"},
      {"--verify=", "--verify: expected no value, found \"\""},
  };
  for (const auto& [argument, sentence] : rows) {
    REQUIRE(Sentence(read({argument})) == sentence);
  }
  const std::string file = "--config " + (dir / "config") + ": ";
  REQUIRE(Sentence(config("lanes = 1\n\nlane = 2\n")) ==
          file + "line 3: lane: unknown option; did you mean lanes?");
  REQUIRE(Sentence(config("sorce = 'x'\n")) ==
          file + "line 1: sorce: unknown option; did you mean source?");
  REQUIRE(Sentence(config("--lane = 2\n")) ==
          file + "line 1: --lane: unknown option; did you mean lanes?");
  REQUIRE(Sentence(config("--verify = true\n")) ==
          file + "line 1: --verify: unknown option; did you mean verify?");
  REQUIRE(Sentence(config("config = 'x'\n")) ==
          file + "line 1: config: expected this option on the command line, "
                 "not in this file");
  for (const std::string line : {"[]", "= 3", "lanes", "lanes = x"}) {
    REQUIRE(Sentence(config(line)).starts_with(file + "line 1: not TOML: "));
  }
  REQUIRE(Sentence(config("'%value%' = 'x'\n")) ==
          file + "line 1: %value%: unknown option");
  REQUIRE(Sentence(config("verify = 'perhaps'\n")) ==
          file + "line 1: verify: expected true or false, found \"perhaps\"");
  REQUIRE_OK(config("lanes = '%value%'  # a comment\r\n"));
}

TEST_CASE("ReadOptions refuses wrong options that contain Boost's placeholders",
          "[tools]") {
  const std::vector<OptionSpec> specs = {
      {"lanes", "N", OptionGroup::kCommon, ""},
      {"replace", nullptr, OptionGroup::kCommon, ""},
      {"config", "FILE", OptionGroup::kCommon, ""}};
  const ScratchDir dir;
  OptionTexts out;
  const auto read = [&](const std::vector<std::string>& arguments) {
    return ReadOptions(specs, {"source"}, arguments, &out);
  };
  const auto config = [&](const std::string& text) {
    std::ofstream(dir / "config") << text;
    return read({"--config", dir / "config"});
  };
  const std::string line = "--config " + (dir / "config") + ": line 1: ";
  for (const std::string text :
       {"%canonical_option%", "%option%", "%value%", "%original_token%",
        "%prefix%", "%invalid_line%", "50%", "%"}) {
    INFO(text);
    REQUIRE(Sentence(read({"--" + text})) == "--" + text + ": unknown option");
    REQUIRE(Sentence(read({"-" + text})) == "-" + text + ": unknown option");
    REQUIRE(Sentence(read({"--q" + text + "=" + text})) ==
            "--q" + text + ": unknown option");
    REQUIRE(Sentence(read({"--replace=" + text})) ==
            "--replace: expected no value, found \"" + text + "\"");
    REQUIRE(Sentence(read({"--lanes", text, "--lanes", text})) ==
            "--lanes: expected once, found again");
    REQUIRE(Sentence(read({text, text})) ==
            "operands: expected no more than 1, found \"" + text + "\"");
    REQUIRE(Sentence(config("'" + text + "' = 1\n")) ==
            line + text + ": unknown option");
    REQUIRE(Sentence(config("replace = '" + text + "'")) ==
            line + "replace: expected true or false, found \"" + text + "\"");
    for (const auto& arguments : std::vector<std::vector<std::string>>{
             {"--lanes", text}, {"--lanes=" + text}}) {
      REQUIRE_OK(read(arguments));
      REQUIRE(out.Get("lanes") == text);
    }
    REQUIRE_OK(config("lanes = '" + text + "'"));
    REQUIRE(out.Get("lanes") == text);
  }
}

TEST_CASE("ReadOptions says what it expected instead of what it found",
          "[tools]") {
  const std::vector<OptionSpec> specs = {
      {"end", "KEY", OptionGroup::kCommon, ""},
      {"verify", nullptr, OptionGroup::kCommon, ""},
      {"cf", "NAME", OptionGroup::kCommon, "", true},
      {"config", "FILE", OptionGroup::kCommon, ""}};
  const auto read = [&](const std::vector<std::string>& arguments,
                        OptionTexts* out) {
    return ReadOptions(specs, {"source"}, arguments, out);
  };
  OptionTexts out;
  REQUIRE(Sentence(read({"a", "b"}, &out)) ==
          "operands: expected no more than 1, found \"b\"");
  REQUIRE(Sentence(read({"--end"}, &out)) ==
          "--end: expected a value, found nothing");
  REQUIRE(Sentence(read({"--end="}, &out)).find("a word of its own") !=
          std::string::npos);
  REQUIRE(Sentence(read({"--end", "a", "--end=a"}, &out)) ==
          "--end: expected once, found again");
  REQUIRE(Sentence(read({"a", "--source", "a"}, &out)) ==
          "--source: expected once, found again");
  REQUIRE(Sentence(read({"--verify=yes"}, &out)) ==
          "--verify: expected no value, found \"yes\"");
  REQUIRE(Sentence(read({"--end", "--verify"}, &out)).find("--end=VALUE") !=
          std::string::npos);
  REQUIRE_OK(read({"--cf", "a", "--verify", "--cf=--b", "--end", "-1", "-"},
                  &out));
  REQUIRE(out.GetAll("cf") == std::vector<std::string>{"a", "--b"});
  REQUIRE(out.Get("end") == "-1");
  REQUIRE(out.Get("source") == "-");
  REQUIRE(out.IsSet("verify"));
  REQUIRE_OK(read({"--", "--verify"}, &out));
  REQUIRE(out.Get("source") == "--verify");
  REQUIRE_FALSE(out.IsSet("verify"));
}

}  // namespace sstferry::arguments_test
