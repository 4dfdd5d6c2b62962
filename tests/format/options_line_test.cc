#include "format/options_line.h"

#include "tests/support/catch.h"

namespace sstferry::options_line_test {
namespace {

TEST_CASE("A line of OPTIONS is split as RocksDB splits it",
          "[format][options]") {
  struct Row {
    const char* line;
    const char* name;
    const char* value;
  };
  const Row rows[] = {{"  wal_dir=/x", "wal_dir", "/x"},
                      {"wal_dir =/x", "wal_dir", "/x"},
                      {"\twal_dir\t=\t/x y \r", "wal_dir", "/x y"},
                      {"\vwal_dir\f=\v/x\f", "wal_dir", "/x"},
                      {"a=b=c", "a", "b=c"},
                      {"a=1 # b=2", "a", "1"},
                      {"a=\\#1", "a", "\\#1"},
                      {"a=", "a", ""}};
  for (const Row& row : rows) {
    INFO(row.line);
    std::string name;
    std::string value;
    REQUIRE(SplitOptionLine(row.line, &name, &value));
    REQUIRE(name == row.name);
    REQUIRE(value == row.value);
  }
  std::string name;
  std::string value;
  for (const char* line : {"", "[DBOptions]", "# wal_dir=/x", "wal_dir"}) {
    INFO(line);
    REQUIRE_FALSE(SplitOptionLine(line, &name, &value));
  }
}

}  // namespace
}  // namespace sstferry::options_line_test
