#include "tools/sstferry/options/arguments.h"

#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/scratch_dir.h"

namespace sstferry {
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

TEST_CASE("ParseByteCount refuses what is no size and says what it wanted",
          "[tools]") {
  for (const std::string text :
       {"", "0", "0K", "-1", "+1", " 1", "1 ", "1 K", "1.5G", "64m", "64k",
        "64X", "K", "0x10", "1KK", "1Kib", "18446744073709551616",
        "18446744073709551615K", "17179869184Gi", "1e9"}) {
    uint64_t bytes = 0;
    INFO("\"" << text << "\"");
    const std::string sentence =
        Sentence(ParseByteCount("--max-rate", text, &bytes));
    REQUIRE(sentence.find("--max-rate: expected bytes") == 0);
    REQUIRE(sentence.find("found \"" + text + "\"") != std::string::npos);
  }
}

TEST_CASE("ParseDuration reads ms, s, m and h and nothing else", "[tools]") {
  std::chrono::milliseconds out{0};
  REQUIRE_OK(ParseDuration("--x", "1ms", &out));
  REQUIRE(out.count() == 1);
  REQUIRE_OK(ParseDuration("--x", "10s", &out));
  REQUIRE(out.count() == 10'000);
  REQUIRE_OK(ParseDuration("--x", "2m", &out));
  REQUIRE(out.count() == 120'000);
  REQUIRE_OK(ParseDuration("--x", "8760h", &out));
  REQUIRE(out.count() == 8760ll * 3'600'000);
  for (const std::string text :
       {"", "10", "0s", "-1s", "1.5s", "1d", "s", "10 s", "8761h",
        "99999999999999999999s", "18446744073709551615h"}) {
    INFO(text);
    REQUIRE_FALSE(Sentence(ParseDuration("--x", text, &out)).empty());
  }
}

TEST_CASE("ParseKey takes hex behind 0x and everything else as text",
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

TEST_CASE("ParseNumber keeps to its bounds", "[tools]") {
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

TEST_CASE("ParseNamedDirectory takes a name or makes one of the directory",
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
  for (const std::string text :
       {"", "a=", "=/data", "my db=/data", "/data/my db", "/", "n@me=/d",
        "a23456789012345678901234567890123456789012345678901234567890123456"
        "=/d"}) {
    NamedDirectory out;
    INFO(text);
    REQUIRE_FALSE(
        Sentence(ParseNamedDirectory("--db", text, &out)).empty());
  }
}

TEST_CASE("ReadOptions refuses wrong options that hold Boost's placeholders",
          "[tools]") {
  const std::vector<OptionSpec> specs = {
      {"lanes", "N", OptionGroup::kCommon, ""},
      {"replace", nullptr, OptionGroup::kCommon, ""},
      {"config", "FILE", OptionGroup::kCommon, ""}};
  const ScratchDir dir;
  const auto read = [&](const std::vector<std::string>& arguments) {
    OptionTexts out;
    return ReadOptions(specs, {"SOURCE"}, arguments, &out);
  };
  const auto config = [&](const std::string& text) {
    std::ofstream(dir / "config") << text;
    return read({"--config", dir / "config"});
  };
  const std::string what = "found one that is not, and '%' among them";
  for (const std::string name :
       {"%canonical_option%", "%option%", "%value%", "%original_token%"}) {
    INFO(name);
    REQUIRE(Sentence(read({"--" + name})).find(what) != std::string::npos);
    REQUIRE(Sentence(read({"--lan" + name + "=3"})).find(what) !=
            std::string::npos);
    REQUIRE(Sentence(config(name + " = 1\n")).find(what) !=
            std::string::npos);
    REQUIRE(Sentence(config("replace = " + name + "\n")).find(what) !=
            std::string::npos);
    REQUIRE_OK(read({"--lanes", name}));
    REQUIRE_OK(config("lanes = " + name + "\n"));
  }
  REQUIRE(Sentence(read({"--50%"})) == "unrecognised option '--50%'");
}

}  // namespace sstferry
