#include "pipeline/target/clone/clone_finish.h"

#include "tests/support/catch.h"

namespace sstferry {
namespace {

TEST_CASE("A clone's OPTIONS name no directory, however the line is written",
          "[target][clone]") {
  for (const std::string& line :
       {"wal_dir=/x", "  wal_dir=/x", "wal_dir =/x", "\twal_dir\t= /x",
        "db_log_dir  =/x", "  wal_dir=/x # why"}) {
    INFO(line);
    const std::string text =
        WithoutLogDirectories("[DBOptions]\n" + line + "\n  a=/x\n");
    REQUIRE(text.find("/x") == text.rfind("/x"));
    REQUIRE(text.find("  a=/x\n") != std::string::npos);
    REQUIRE(text.find("[DBOptions]\n") == 0);
  }
}

}  // namespace
}  // namespace sstferry
