// SIGHUP to a running pull.
#include <signal.h>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::reload_test {
namespace {

TEST_CASE("SIGHUP makes a pull reload its config file and use the new rate",
          "[tools]") {
  ScratchDir dir;
  SampleShape shape;
  shape.entries = 4000;
  MakeSampleDatabase(dir / "source", shape);
  const std::string conf = dir / "pull.toml";
  const std::string operands =
      "source = \"" + (dir / "source") + "\"\ntarget = \"" + (dir / "target") +
      "\"\n";
  WriteBytes(conf, operands + "max-rate = '10K'\n");  // minutes
  Process pull(Sstferry({"pull", "--config", conf, "--progress", "json",
                         "--progress-interval", "50ms"}));
  REQUIRE(pull.WaitForErr("\"transfer\""));
  WriteBytes(conf, operands + "max-rate = 'many'\n");
  pull.Signal(SIGHUP);
  const bool said = pull.WaitForErr("SIGHUP: nothing was changed");
  INFO(pull.err());
  REQUIRE(said);
  WriteBytes(conf, operands + "max-rate = '20K'\nlog-level = 'info'\n");
  pull.Signal(SIGHUP);
  REQUIRE(pull.WaitForErr("SIGHUP: max-rate 20.0 kB/s"));
  REQUIRE(pull.Wait(std::chrono::milliseconds(1)) == -1);
  WriteBytes(conf, operands + "log-level = 'error'\n");
  pull.Signal(SIGHUP);
  REQUIRE(pull.Wait() == 0);
  // The new level hides the info line about the removed limit.
  REQUIRE(pull.err().find("not limited") == std::string::npos);
}

}  // namespace
}  // namespace sstferry::reload_test
