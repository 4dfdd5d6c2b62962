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

std::string Resolved(const std::string& text, std::string* local = nullptr) {
  std::string address = "s3://b/o@" + text;
  std::string unused;
  if (!ResolveMoment(kNow, &address, local == nullptr ? &unused : local)) {
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
  REQUIRE_FALSE(ResolveMoment(kNow, &address, &local));
  REQUIRE(address == "/backup/orders");
}

}  // namespace sstferry::moment_test
