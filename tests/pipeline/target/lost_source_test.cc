#include "pipeline/pull/lost_source.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace sstferry::lost_source_test {
namespace {

// Collects log lines above kDebug.
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

TEST_CASE("A lost source gives one warning and one line at its end, however "
          "many connections are lost",
          "[target]") {
  Lines lines;
  LostSource lost(lines.Log());
  const auto before = LostSource::Clock::now();
  for (const char* what : {"lane 0", "control connection", "lane 1"}) {
    lost.Lost(what, before, "closed by peer");
  }
  REQUIRE(lines.warnings.size() == 1);
  REQUIRE(lines.warnings[0].find("closed by peer") != std::string::npos);
  lost.Back("lane 1");
  lost.Back("lane 0");
  REQUIRE(lines.infos.empty());
  lost.Back("control connection");
  REQUIRE(lines.infos.size() == 1);

  // If the loss of an older connection is noticed late, it is not a second
  // loss.
  lost.Lost("lane 2", before, "closed by peer");
  lost.Back("lane 2");
  REQUIRE(lines.warnings.size() == 1);
  REQUIRE(lines.infos.size() == 1);

  // The loss of a connection that was made since is a second one.
  lost.Lost("lane 2", before, "closed by peer");
  lost.Lost("lane 1", LostSource::Clock::now(), "timed out");
  REQUIRE(lines.warnings.size() == 2);
  lost.Back("lane 2");
  lost.Back("lane 1");
  REQUIRE(lines.infos.size() == 2);
}

TEST_CASE("A lost source without a log is no error", "[target]") {
  LostSource lost(nullptr);
  lost.Lost("lane 0", LostSource::Clock::now(), "closed");
  lost.Back("lane 0");
}

}  // namespace sstferry::lost_source_test
