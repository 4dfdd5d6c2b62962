#include "pipeline/pull/outage.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace sstferry {
namespace {

// Counts lines above kDebug.
struct Lines {
  std::vector<std::string> warnings;
  std::vector<std::string> infos;

  LogFunction Log() {
    return [this](LogLevel level, const std::string& text) {
      if (level == LogLevel::kWarning) {
        warnings.push_back(text);
      } else if (level == LogLevel::kInfo) {
        infos.push_back(text);
      }
    };
  }
};

}  // namespace

TEST_CASE("One outage is one warning and one line at its end, whatever "
          "connections it costs",
          "[target]") {
  Lines lines;
  Outage outage(lines.Log());
  const auto before = Outage::Clock::now();
  for (const char* what : {"lane 0", "control connection", "lane 1"}) {
    outage.Lost(what, before, "closed by peer");
  }
  REQUIRE(lines.warnings.size() == 1);
  REQUIRE(lines.warnings[0].find("closed by peer") != std::string::npos);
  outage.Back("lane 1");
  outage.Back("lane 0");
  REQUIRE(lines.infos.empty());
  outage.Back("control connection");
  REQUIRE(lines.infos.size() == 1);

  // A connection of before whose loss is noticed late is no second outage.
  outage.Lost("lane 2", before, "closed by peer");
  outage.Back("lane 2");
  REQUIRE(lines.warnings.size() == 1);
  REQUIRE(lines.infos.size() == 1);

  // A connection that was made since is one, also beside a late one.
  outage.Lost("lane 2", before, "closed by peer");
  outage.Lost("lane 1", Outage::Clock::now(), "timed out");
  REQUIRE(lines.warnings.size() == 2);
  outage.Back("lane 2");
  outage.Back("lane 1");
  REQUIRE(lines.infos.size() == 2);
}

TEST_CASE("An outage without a log is counted in silence", "[target]") {
  Outage outage(nullptr);
  outage.Lost("lane 0", Outage::Clock::now(), "closed");
  outage.Back("lane 0");
}

}  // namespace sstferry
