// The databases below a directory that a server knows.
#include "pipeline/serve/served_databases.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::served_databases_test {
namespace {

namespace fs = std::filesystem;

// Makes what the server's scan takes for a database.
void MakeDirectory(const std::string& path) {
  fs::create_directories(path);
  std::ofstream(path + "/CURRENT") << "MANIFEST-000001\n";
}

TEST_CASE("A list of databases has all that were made before the request",
          "[serve][databases]") {
  const ScratchDir dir;
  // With so many directories, a scan takes long, and its result is cached for
  // some time.
  for (int i = 0; i < 1000; ++i) {
    MakeDirectory(dir / ("db" + std::to_string(i)));
  }
  ServeOptions options;
  options.tree.directory = dir.path();
  ServedDatabases databases(&options);
  for (int i = 0; i < 5; ++i) {
    const std::string name = "new" + std::to_string(i);
    MakeDirectory(dir / name);
    REQUIRE(databases.AfterNow()->Find(name) != nullptr);
    fs::remove_all(dir / name);
    REQUIRE(databases.AfterNow()->Find(name) == nullptr);
  }
}

}  // namespace
}  // namespace sstferry::served_databases_test
