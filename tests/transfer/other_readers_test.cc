// Tests with other readers: RocksDB's own tools must read the same from both
// sides.
#include <sys/wait.h>

#include <cstdio>
#include <iostream>

#include "format/digest.h"
#include "rocksdb/comparator.h"
#include "rocksdb/table.h"
#include "tests/support/catch.h"
#include "tests/support/test_db.h"

namespace sstferry::test::other_readers_test {
namespace {

struct Output {
  int code = -1;
  std::string text;
};

Output RunShell(const std::string& command) {
  Output output;
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  char buffer[65536];
  for (size_t n; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) {
    output.text.append(buffer, n);
  }
  const int status = pclose(pipe);
  output.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return output;
}

bool HaveProgram(const std::string& name, const std::string& package) {
  if (RunShell("command -v " + name + " 2>&1").code == 0) {
    return true;
  }
  std::cerr << "SKIPPED, " << name << " is missing: install " << package
            << "\n";
  WARN("skipped: " << name << " of " << package << " is missing");
  return false;
}

std::string Quote(const std::string& text) { return "'" + text + "'"; }

// Returns the output of ldb for one family: "0xKEY : 0xVALUE" or, in later
// versions, "0xKEY ==> 0xVALUE".
Output LdbScan(const std::string& directory, const std::string& family) {
  return RunShell("ldb --db=" + Quote(directory) +
                  " --try_load_options --ignore_unknown_options"
                  " --column_family=" + Quote(family) +
                  " --hex scan 2>/dev/null");
}

// Returns the records of Debian's package index: "Package Version" -> text.
std::map<std::string, std::string> PackageIndex() {
  std::map<std::string, std::string> records;
  const std::string all =
      RunShell("apt-cache dumpavail 2>/dev/null | head -c 24000000").text;
  for (size_t at = 0; at < all.size();) {
    size_t end = all.find("\n\n", at);
    end = end == std::string::npos ? all.size() : end;
    const std::string record = all.substr(at, end - at);
    at = end + 2;
    const size_t version = record.find("\nVersion: ");
    if (record.starts_with("Package: ") && version != std::string::npos) {
      records[record.substr(9, record.find('\n') - 9) + " " +
              record.substr(version + 10,
                            record.find('\n', version + 1) - version - 10)] =
          record;
    }
  }
  return records;
}

}  // namespace

TEST_CASE("ldb and sst_dump read the same from both sides",
          "[transfer][readers]") {
  if (!HaveProgram("ldb", "rocksdb-tools") ||
      !HaveProgram("sst_dump", "rocksdb-tools")) {
    return;
  }
  const ScratchDir dir;
  Families families = {{"default", Quiet()}, {"backwards", Quiet()},
                       {"empty", Quiet()}};
  families[0].options.compression = rocksdb::kLZ4Compression;
  families[1].options.comparator = rocksdb::ReverseBytewiseComparator();
  {
    OpenDb db(dir / "source", families);
    for (int i = 0; i < 4000; ++i) {
      db.Put(NumberedKey(i), RandomBytes(i % 100, i));
      db.Put(NumberedKey(i), RandomBytes(i % 60, i), "backwards");
      if (i % 4 == 0) db.Delete(NumberedKey(i / 2));
      if (i == 2000) db.Flush();
    }
    db.Put("", "of the empty key");
    db.Flush();
  }
  PullOptions options;
  options.chunk_bytes = 64 << 10;
  const Ferried moved = Ferry(dir / "source", dir / "target", options);
  REQUIRE_OK(moved.status);
  for (const auto& family : families) {
    INFO("column family " << family.name);
    const Output source = LdbScan(dir / "source", family.name);
    const Output target = LdbScan(dir / "target", family.name);
    REQUIRE(source.code == 0);
    REQUIRE(target.code == 0);
    REQUIRE(source.text.empty() == (family.name == "empty"));
    REQUIRE(ToHex(DigestOf(source.text)) == ToHex(DigestOf(target.text)));
  }
  const auto files = PathsWith(dir / "target", ".sst");
  REQUIRE(files.size() > 4);
  for (const std::string& file : files) {
    const Output verified =
        RunShell("sst_dump --command=verify --file=" + Quote(file) + " 2>&1");
    INFO(file << ": " << verified.text);
    REQUIRE(verified.code == 0);
    REQUIRE(verified.text.find("orruption") == std::string::npos);
    REQUIRE(verified.text.find("file is ok") != std::string::npos);
  }
}

TEST_CASE("The Debian package index arrives record by record",
          "[transfer][exact]") {
  if (!HaveProgram("apt-cache", "apt")) {
    return;
  }
  const std::map<std::string, std::string> records = PackageIndex();
  if (records.size() < 1000) {
    std::cerr << "SKIPPED, apt-cache dumpavail is empty: run apt-get update\n";
    WARN("skipped: the package index is empty");
    return;
  }
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.compression = rocksdb::kZSTD;
  {
    OpenDb db(dir / "source", OneFamily(options));
    for (const auto& [key, value] : records) db.Put(key, value);
    db.Flush();
  }
  PullOptions pull;
  pull.chunk_bytes = 256 << 10;
  Expectation expected;
  expected.families = OneFamily(options);
  RequireMoves(dir, expected, pull);
  const auto found = EntriesOf(dir / "tcp", OneFamily(options));
  REQUIRE(found == decltype(found)(records.begin(), records.end()));
}

}  // namespace sstferry::test::other_readers_test
