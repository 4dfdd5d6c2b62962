#include "format/release.h"

#include "tests/support/catch.h"

namespace sstferry::release_test {
namespace {

TEST_CASE("A release is one to three numbers, with the suffix of a fork",
          "[format]") {
  const auto parse = [](const std::string& text) {
    RocksDbRelease release;
    return ParseRelease(text, &release) ? ReleaseName(release) : "none";
  };
  REQUIRE(parse("8.11.4") == "8.11.4");
  REQUIRE(parse("10.4.0") == "10.4");
  REQUIRE(parse("10.4") == "10.4");
  REQUIRE(parse("9") == "9.0");
  REQUIRE(parse("8.1.1-fork") == "8.1.1");
  REQUIRE(parse("6.20.3.1") == "6.20.3");
  for (const char* bad : {"", "x", "8.", "8..1", ".8", "8.11.x", "-1", "0.1.2",
                          "8.11.4x", "10000.1", "99999999999999999999",
                          " 8.1"}) {
    INFO(bad);
    REQUIRE(parse(bad) == "none");
  }
}

TEST_CASE("Releases are compared by their numbers", "[format]") {
  REQUIRE(RocksDbRelease{9, 10, 0} > RocksDbRelease{9, 9, 9});
  REQUIRE(RocksDbRelease{10, 0, 0} > RocksDbRelease{9, 99, 0});
  REQUIRE(RocksDbRelease() < RocksDbRelease{6, 8, 1});
}

TEST_CASE("Each format_version can be read since a certain release",
          "[format]") {
  REQUIRE(MaxFormatVersion({6, 8, 1}) == 5);
  REQUIRE(MaxFormatVersion({8, 5, 4}) == 5);
  for (uint32_t version = 6; version <= 8; ++version) {
    const RocksDbRelease first = FirstWithFormat(version);
    REQUIRE(MaxFormatVersion(first) == version);
    RocksDbRelease before = first;
    before.minor--;
    REQUIRE(MaxFormatVersion(before) < version);
  }
  REQUIRE(FirstWithFormat(9) > RocksDbRelease{99, 0, 0});
}

TEST_CASE("Needs keep the feature that requires the latest release",
          "[format]") {
  Needs needs;
  REQUIRE(!needs.release().is_known());
  needs.AddFormatVersion(5);
  needs.AddWalRecord(1);
  REQUIRE(!needs.release().is_known());
  needs.AddFormatVersion(7);
  needs.AddFormatVersion(6);
  needs.AddWalRecord(10);
  REQUIRE(needs.release() == RocksDbRelease{10, 4, 0});
  REQUIRE(needs.what() == "format_version 7");
  needs.Add(kReadsMarkedBlocks, "marked blocks");
  REQUIRE(ReleaseName(needs.release()) == "11.1");
  needs.AddFormatVersion(2);
  REQUIRE_FALSE(needs.has_old_formats());
  needs.AddFormatVersion(1);
  REQUIRE(needs.has_old_formats());
}

}  // namespace
}  // namespace sstferry::release_test
