// Tests sources that are missing, incomplete or damaged: the pull fails, names
// the file, and renames nothing.
#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::damaged_source_test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> FilesOf(const std::string& dir,
                                 const std::string& suffix) {
  std::vector<std::string> found;
  for (const std::string& name : NamesOf(dir)) {
    if (name.size() > suffix.size() &&
        name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0) {
      found.push_back(name);
    }
  }
  return found;
}

// Requires that the pull fails with exit code 1 and a message that contains
// `part`.
void RequireFails(const ScratchDir& dir, const std::string& part) {
  const Summary summary = RunPull(PullFrom(dir / "source", dir / "target"));
  INFO("expected \"" << part << "\" in " << summary.status.ToString());
  REQUIRE_FALSE(summary.status.ok());
  REQUIRE(ExitCodeOf(EndStateOf(summary.status)) == 1);
  REQUIRE(summary.status.ToString().find(part) != std::string::npos);
  REQUIRE_FALSE(fs::exists(dir / "target"));
  // Only the source and the workspace may exist.
  REQUIRE(NamesOf(dir.path()).size() <= 2);
}

TEST_CASE("A pull from something that is not a database names the directory",
          "[bad_input][source]") {
  ScratchDir dir;
  const std::string no_database = "no CURRENT file in " + (dir / "source") +
                                  ": this is not a RocksDB database";
  SECTION("missing") {
    RequireFails(dir, "cannot open database " + (dir / "source") +
                          ": No such file or directory");
  }
  SECTION("a file") {
    WriteBytes(dir / "source", "not a database");
    RequireFails(dir, "cannot open directory " + (dir / "source") +
                          ": Not a directory");
  }
  SECTION("empty") {
    fs::create_directory(dir / "source");
    RequireFails(dir, no_database);
  }
  SECTION("other files") {
    fs::create_directory(dir / "source");
    WriteBytes(dir / "source/readme", "hello");
    RequireFails(dir, no_database);
  }
}

TEST_CASE("A pull from an incomplete database fails", "[bad_input][source]") {
  ScratchDir dir;
  MakeSampleDatabase(dir / "source");
  std::string part;
  SECTION("CURRENT names a MANIFEST that is missing") {
    WriteBytes(dir / "source/CURRENT", "MANIFEST-999999\n");
    part = "MANIFEST-999999 is missing";
  }
  SECTION("CURRENT is empty") {
    WriteBytes(dir / "source/CURRENT", "");
    part = "CURRENT: expected the name of a MANIFEST";
  }
  SECTION("an SST file is missing") {
    const std::string name = FilesOf(dir / "source", ".sst")[1];
    fs::remove(dir / ("source/" + name));
    part = name + ", which MANIFEST-";
  }
  SECTION("an SST file is truncated") {
    const std::string name = FilesOf(dir / "source", ".sst")[1];
    const std::string path = dir / ("source/" + name);
    fs::resize_file(path, fs::file_size(path) / 2);
    part = name + ": expected ";
  }
  RequireFails(dir, part);
}

TEST_CASE("After a flipped byte anywhere in an SST file, the pull fails and "
          "names the file",
          "[bad_input][source][corruption]") {
  ScratchDir dir;
  SampleShape shape;
  shape.entries = 400;
  shape.files = 1;
  MakeSampleDatabase(dir / "source", shape);
  const std::string name = FilesOf(dir / "source", ".sst").at(0);
  const std::string path = dir / ("source/" + name);
  const std::string good = BytesOf(path);
  // The first places are in data blocks, the others in the index, properties,
  // metaindex and footer.
  std::vector<size_t> places;
  for (size_t i = 0; i < 8; ++i) {
    places.push_back(100 + i * (good.size() / 8));
  }
  for (size_t back = 60; back < 2400; back += 180) {
    places.push_back(good.size() - back);
  }
  for (const size_t at : places) {
    INFO("byte " << at << " of " << good.size());
    std::string bad = good;
    bad[at] ^= 1;
    WriteBytes(path, bad);
    RequireFails(dir, name);
  }
  WriteBytes(path, good);
  REQUIRE_OK(RunPull(PullFrom(dir / "source", dir / "target")).status);
}

TEST_CASE("After a flipped byte anywhere in a WAL, the pull fails and names "
          "the file",
          "[bad_input][source][corruption]") {
  ScratchDir dir;
  SampleShape shape;
  shape.entries = 400;
  shape.in_wal_only = true;
  MakeSampleDatabase(dir / "source", shape);
  std::string name;
  for (const std::string& log : FilesOf(dir / "source", ".log")) {
    if (fs::file_size(dir / ("source/" + log)) > 0) {
      name = log;
    }
  }
  const std::string path = dir / ("source/" + name);
  const std::string good = BytesOf(path);
  // Not in the last record, where damage looks like a torn tail.
  for (size_t i = 0; i < 10; ++i) {
    const size_t at = 20 + i * (good.size() / 11);
    INFO("byte " << at << " of " << good.size());
    std::string bad = good;
    bad[at] ^= 1;
    WriteBytes(path, bad);
    RequireFails(dir, name);
  }
  WriteBytes(path, good);
  const Summary summary = RunPull(PullFrom(dir / "source", dir / "target"));
  REQUIRE_OK(summary.status);
  REQUIRE(summary.entries == 400);
}

}  // namespace
}  // namespace sstferry::damaged_source_test
