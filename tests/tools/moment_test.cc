#include "tools/sstferry/moment.h"

#include <stdlib.h>
#include <time.h>

#include <string>
#include <utility>

#include "tests/support/catch.h"

namespace sstferry::moment_test {
namespace {

// Sets the time zone of this process; the destructor restores the old one.
class Zone {
 public:
  explicit Zone(const char* name) {
    const char* const old = getenv("TZ");
    had_ = old != nullptr;
    if (had_) old_ = old;
    setenv("TZ", name, 1);
    tzset();
  }
  ~Zone() {
    had_ ? setenv("TZ", old_.c_str(), 1) : unsetenv("TZ");
    tzset();
  }

 private:
  bool had_ = false;
  std::string old_;
};

// 2026-11-28T13:00:00Z, which is 14:00 in the zone `kAhead`.
constexpr uint64_t kNow = 1795870800;
constexpr char kAhead[] = "XXX-1";  // one hour ahead of UTC

// Returns "-" for other text, and "refused" for a time that is not unique.
std::string Resolved(const std::string& text, std::string* local = nullptr,
                     uint64_t now = kNow) {
  const std::string before = "s3://b/o@" + text;
  std::string address = before;
  std::string own;
  std::string* const resolved = local == nullptr ? &own : local;
  if (!ResolveMoment(now, &address, resolved).ok()) {
    REQUIRE(address == before);
    return "refused";
  }
  if (resolved->empty()) {
    REQUIRE(address == before);
    return "-";
  }
  REQUIRE(address.starts_with("s3://b/o@"));
  return address.substr(9);
}

}  // namespace

TEST_CASE("ResolveMoment converts the times that operators write to UTC",
          "[tools]") {
  const Zone zone(kAhead);
  for (const auto& [text, moment] :
       {std::pair("-2h", "2026-11-28T11:00:00Z"),
        std::pair("-90m", "2026-11-28T11:30:00Z"),
        std::pair("-1d", "2026-11-27T13:00:00Z"),
        std::pair("-2w", "2026-11-14T13:00:00Z"),
        std::pair("yesterday", "2026-11-27T22:59:59Z"),
        std::pair("13:50", "2026-11-28T12:50:00Z"),
        std::pair("13:50:07", "2026-11-28T12:50:07Z"),
        std::pair("14:50", "2026-11-27T13:50:00Z"),
        std::pair("2026-11-24", "2026-11-24T22:59:59Z"),
        std::pair("2026-11-24T14:50:00+03:00", "2026-11-24T11:50:00Z"),
        std::pair("2026-11-24 14:50", "2026-11-24T13:50:00Z"),
        std::pair("2026-11-24T14:50:01", "2026-11-24T13:50:01Z")}) {
    INFO(text);
    REQUIRE(Resolved(text) == moment);
  }
  std::string local;
  Resolved("13:50", &local);
  REQUIRE(local == "2026-11-28T13:50:00+0100");
}

TEST_CASE("ResolveMoment leaves other text unchanged", "[tools]") {
  const Zone zone(kAhead);
  for (const char* text :
       {"", "latest", "nightly", "sequence:7", "2026-11-24T14:50:00Z",
        "20261124T145000Z", "20261124T145000Z-0011223344556677", "-2", "-h",
        "-2y", "-99999999999h", "25:00", "14:50pm", "host:/dir", "14",
        "2026-11-31", "2026-02-30T10:00", "2026-02-30T10:00:00+01:00"}) {
    INFO(text);
    REQUIRE(Resolved(text) == "-");
  }
  std::string address = "/backup/orders";
  std::string local;
  REQUIRE(ResolveMoment(kNow, &address, &local).ok());
  REQUIRE(local.empty());
  REQUIRE(address == "/backup/orders");
}

TEST_CASE("ResolveMoment chooses no time that the time zone has twice or never",
          "[tools]") {
  const Zone zone("CET-1CEST,M3.5.0,M10.5.0/3");
  // 2026-10-25T00:40:00Z, when clocks show 02:40 for the first time.
  constexpr uint64_t kFirst = 1'792'888'800;
  const auto at = [](const std::string& text, uint64_t now) {
    return Resolved(text, nullptr, now);
  };
  REQUIRE(at("02:30", kFirst) == "2026-10-25T00:30:00Z");
  REQUIRE(at("02:30", kFirst + 1800) == "2026-10-25T00:30:00Z");
  REQUIRE(at("02:30", kFirst + 3600) == "2026-10-25T01:30:00Z");
  REQUIRE(at("02:50", kFirst) == "2026-10-24T00:50:00Z");
  REQUIRE(at("2026-10-25T02:30", kFirst) == "refused");
  REQUIRE(at("2026-10-25 02:30:00", kFirst) == "refused");
  REQUIRE(at("2026-10-25T02:30+01:00", kFirst) == "2026-10-25T01:30:00Z");
  REQUIRE(at("2026-10-25T03:00", kFirst) == "2026-10-25T02:00:00Z");
  REQUIRE(at("2026-10-25T01:59", kFirst) == "2026-10-24T23:59:00Z");
  REQUIRE(at("2026-10-25", kFirst) == "2026-10-25T22:59:59Z");
  REQUIRE(at("2026-03-29T02:30", kFirst) == "refused");
  // 2026-03-29T01:10:00Z, when clocks show 03:10.
  REQUIRE(at("02:30", 1'774'746'600) == "2026-03-28T01:30:00Z");
}

}  // namespace sstferry::moment_test
