// Tests the choice of the RocksDB release that a replica is made for: what its
// application reads decides, not what sstferry's own library reads.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "format/release.h"
#include "format/byte_source.h"
#include "format/options_line.h"
#include "format/rocksdb/sst_reader.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/options/options_file.h"
#include "rocksdb/table.h"
#include "sstferry/target.h"
#include "rocksdb/version.h"
#include "tests/support/catch.h"
#include "tests/support/compacted.h"
#include "tests/support/edited_options.h"
#include "tests/support/refreshed.h"
#include "tests/support/sample_database.h"
#include "tests/support/test_db.h"

namespace sstferry::test::for_rocksdb_test {
namespace {

namespace fs = std::filesystem;

// RocksDB 6.27 is the first to read XXH3 checksums, the default since 7.0.
constexpr char kBeforeXxh3[] = "6.20.3";

rocksdb::ColumnFamilyOptions WithXxh3() {
  rocksdb::BlockBasedTableOptions table;
  table.checksum = rocksdb::kXXH3;
  table.format_version = 5;
  rocksdb::ColumnFamilyOptions options = Quiet();
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

void Fill(const std::string& path, int entries = 500, int from = 0) {
  OpenDb db(path, OneFamily(WithXxh3()));
  for (int i = from; i < from + entries; ++i) {
    db.Put(NumberedKey(i), RandomBytes(80, i));
  }
  db.Flush();
}

std::vector<std::string> OptionsFilesIn(const std::string& dir) {
  std::vector<std::string> paths;
  for (const std::string& path : PathsWith(dir, "")) {
    if (fs::path(path).filename().string().starts_with("OPTIONS-")) {
      paths.push_back(path);
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string OptionsIn(const std::string& dir) {
  const std::vector<std::string> paths = OptionsFilesIn(dir);
  REQUIRE(!paths.empty());
  return BytesOf(paths.back());
}

void SetRelease(const std::string& dir, const std::string& release) {
  EditOptions(dir, "rocksdb_version=" + RocksDbVersion() + "\n",
              "rocksdb_version=" + release + "\n");
}

// Writes that format_version into the footers of all tables of a closed
// database: four bytes before the magic number.
void SetFormatVersion(const std::string& dir, char version) {
  for (const std::string& path : PathsWith(dir, ".sst")) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-12, std::ios::end);
    file.put(version);
  }
}

std::vector<SstFooter> FootersIn(const std::string& dir) {
  std::vector<SstFooter> footers;
  for (const std::string& path : PathsWith(dir, ".sst")) {
    const std::string bytes = BytesOf(path);
    const SliceSource source(bytes);
    SstReader reader;
    REQUIRE_OK(reader.Open(&source));
    footers.push_back(reader.footer());
  }
  return footers;
}

std::set<SstChecksum> ChecksumsIn(const std::string& dir) {
  std::set<SstChecksum> checksums;
  for (const SstFooter& footer : FootersIn(dir)) {
    checksums.insert(footer.checksum);
  }
  return checksums;
}

DatabaseDescription Parsed(const std::string& text) {
  DatabaseDescription description;
  std::vector<std::string> notes;
  REQUIRE_OK(ParseOptionsText(text, &description, &notes));
  return description;
}

std::vector<NamedValue> Sorted(std::vector<NamedValue> options) {
  std::sort(options.begin(), options.end(),
            [](const NamedValue& a, const NamedValue& b) {
              return a.name < b.name;
            });
  return options;
}

TEST_CASE("A seed keeps the source's OPTIONS word for word, and writes no "
          "others",
          "[transfer][versions]") {
  const ScratchDir dir;
  Fill(dir / "source");
  // Imitates a fork that claims an old version but has a newer option, and the
  // spelling of a list in 6.14.
  SetRelease(dir / "source", "7.1.2");
  EditOptions(dir / "source", "[DBOptions]\n",
              "[DBOptions]\n  refresh_options_sec=0\n");
  EditOptions(dir / "source", "max_bytes_for_level_multiplier_additional=1:1:",
              "max_bytes_for_level_multiplier_additional=1:{1}:");
  for (const PullMethod method : {PullMethod::kIngest, PullMethod::kClone}) {
    PullOptions options;
    options.method = method;
    const std::string target = method == PullMethod::kIngest ? "a" : "b";
    const Ferried moved = Ferry(dir / "source", dir / target, options);
    INFO(moved.message());
    REQUIRE_OK(moved.status);
    REQUIRE(moved.summary.for_rocksdb == "7.1.2");
    REQUIRE(OptionsFilesIn(dir / target).size() == 1);
    const DatabaseDescription there = Parsed(OptionsIn(dir / "source"));
    const DatabaseDescription here = Parsed(OptionsIn(dir / target));
    REQUIRE(here.release == RocksDbRelease{7, 1, 2});
    REQUIRE(Sorted(here.options) == Sorted(there.options));
    REQUIRE(here.families.size() == 1);
    REQUIRE(Sorted(here.families[0].options) ==
            Sorted(there.families[0].options));
    REQUIRE(Sorted(here.families[0].table_options) ==
            Sorted(there.families[0].table_options));
  }
}

TEST_CASE("A transfer of a part has the options of its families and of default",
          "[transfer][versions]") {
  const ScratchDir dir;
  Families families = OneFamily(Quiet());
  families.emplace_back("odd #1:\\", WithXxh3());
  {
    OpenDb db(dir / "source", families);
    db.Put("a", "b", "odd #1:\\");
    db.Put("c", "d");
  }
  PullOptions options;
  options.selection.families = {"odd #1:\\"};
  REQUIRE_OK(Ferry(dir / "source", dir / "target", options).status);
  const DatabaseDescription here = Parsed(OptionsIn(dir / "target"));
  REQUIRE(here.families.size() == 2);
  REQUIRE(here.families[0].name == "default");
  REQUIRE(here.families[1].name == "odd #1:\\");
  OpenDb opened(dir / "target", families);
  std::string value;
  REQUIRE_OK(opened->Get({}, opened.cf("odd #1:\\"), "a", &value));
}

TEST_CASE("Chunks are built for the requested release",
          "[transfer][versions]") {
  const ScratchDir dir;
  Fill(dir / "source");
  PullOptions options;
  options.for_rocksdb = kBeforeXxh3;
  const Ferried moved = Ferry(dir / "source", dir / "target", options);
  INFO(moved.message());
  REQUIRE_OK(moved.status);
  REQUIRE(moved.summary.for_rocksdb == kBeforeXxh3);
  REQUIRE(moved.summary.opens_since.empty());
  REQUIRE(ChecksumsIn(dir / "target") ==
          std::set<SstChecksum>{SstChecksum::kCrc32c});
  const std::string text = OptionsIn(dir / "target");
  REQUIRE(ReleaseOfOptions(text) == RocksDbRelease{6, 20, 3});
  // 6.20 ignores unknown names only if the file says that a later release wrote
  // it.
  REQUIRE(text.find("rocksdb_version=" + RocksDbVersion()) !=
          std::string::npos);
  REQUIRE(text.find("kXXH3") == std::string::npos);
  ExpectSameEntries(dir / "source", dir / "target");
  options.for_rocksdb = "5.15.10";
  REQUIRE_OK(Ferry(dir / "source", dir / "older", options).status);
  for (const SstFooter& footer : FootersIn(dir / "older")) {
    REQUIRE(footer.format_version == 3);
  }
}

TEST_CASE("The release that files need is reported, and checked only if the "
          "user names a release",
          "[transfer][versions]") {
  const ScratchDir dir;
  Fill(dir / "source");
  // The source's OPTIONS name a release that cannot read its files. That is
  // not checked, because the source's application does open them.
  SetRelease(dir / "source", kBeforeXxh3);
  PullOptions options;
  options.method = PullMethod::kClone;
  const Ferried moved = Ferry(dir / "source", dir / "target", options);
  REQUIRE_OK(moved.status);
  REQUIRE(moved.summary.opens_since == "6.27");
  REQUIRE(moved.summary.opens_because == "XXH3 checksums");
  options.for_rocksdb = "6.26.1";
  const Ferried refused = Ferry(dir / "source", dir / "refused", options);
  INFO(refused.message());
  REQUIRE(refused.state() == EndState::kIncompatible);
  REQUIRE(refused.message().find("reads since 6.27;") != std::string::npos);
  REQUIRE(refused.message().find("--method ingest") != std::string::npos);
  REQUIRE(refused.summary.sst_bytes == 0);
  options.for_rocksdb = "6.27";
  REQUIRE_OK(Ferry(dir / "source", dir / "allowed", options).status);
  options.for_rocksdb = "newest";
  REQUIRE(Ferry(dir / "source", dir / "odd", options).state() ==
          EndState::kRefused);
}

TEST_CASE("A replica stays readable for its own application, however often it "
          "is refreshed",
          "[transfer][versions]") {
  const bool swap = GENERATE(false, true);
  const ScratchDir dir;
  Fill(dir / "source");
  PullOptions seed;
  seed.for_rocksdb = kBeforeXxh3;
  REQUIRE_OK(Ferry(dir / "source", dir / "target", seed).status);
  const std::string before = OptionsIn(dir / "target");
  PullOptions options;
  options.mode = swap ? PullMode::kSwap : PullMode::kRefresh;
  for (int night = 1; night <= 3; ++night) {
    INFO("night " << night);
    Fill(dir / "source", 50, night * 400);
    const Ferried refreshed = Refresh(dir / "source", dir / "target", options);
    INFO(refreshed.message());
    REQUIRE_OK(refreshed.status);
    REQUIRE(refreshed.summary.for_rocksdb == kBeforeXxh3);
    const std::string text = OptionsIn(dir / "target");
    REQUIRE((swap || text == before));
    REQUIRE(ReleaseOfOptions(text) == RocksDbRelease{6, 20, 3});
    REQUIRE(ChecksumsIn(dir / "target") ==
            std::set<SstChecksum>{SstChecksum::kCrc32c});
  }
}

TEST_CASE("A clone does not replace a replica if its application could not "
          "open the clone",
          "[transfer][versions]") {
  const ScratchDir dir;
  Fill(dir / "source");
  PullOptions options;
  options.for_rocksdb = kBeforeXxh3;
  REQUIRE_OK(Ferry(dir / "source", dir / "target", options).status);
  Fill(dir / "source", 50, 400);
  const std::string before = Fingerprint(dir / "target");
  options = PullOptions();
  options.mode = PullMode::kSwap;
  options.method = PullMethod::kClone;
  const Ferried refused = Refresh(dir / "source", dir / "target", options);
  INFO(refused.message());
  REQUIRE(refused.state() == EndState::kIncompatible);
  REQUIRE(refused.message().find("6.20.3") != std::string::npos);
  REQUIRE(Fingerprint(dir / "target") == before);
  // The application was upgraded, and has opened the replica since.
  {
    OpenDb db(dir / "target", OneFamily(Quiet()));
    db.Put("of", "its own");
  }
  const Ferried cloned = Refresh(dir / "source", dir / "target", options);
  INFO(cloned.message());
  REQUIRE_OK(cloned.status);
  REQUIRE(cloned.summary.for_rocksdb ==
          ReleaseName({ROCKSDB_MAJOR, ROCKSDB_MINOR, ROCKSDB_PATCH}));
}

TEST_CASE("A column family that a refresh creates has the source's OPTIONS",
          "[transfer][versions]") {
  const ScratchDir dir;
  Fill(dir / "source");
  REQUIRE_OK(Ferry(dir / "source", dir / "target").status);
  {
    Families families = OneFamily(WithXxh3());
    families.emplace_back("new", Quiet());
    OpenDb db(dir / "source", families);
    db.Put("a", "b", "new");
  }
  EditOptions(dir / "source", "[CFOptions \"new\"]\n",
              "[CFOptions \"new\"]\n  shape_of_a_fork=round\n");
  const Ferried refreshed = Refresh(dir / "source", dir / "target");
  INFO(refreshed.message());
  REQUIRE_OK(refreshed.status);
  const std::string text = OptionsIn(dir / "target");
  REQUIRE(text.find("shape_of_a_fork=round") >
          text.find("[CFOptions \"new\"]"));
  REQUIRE(text.find("shape_of_a_fork=round") != std::string::npos);
}

TEST_CASE("A clone has tables of a format that is unknown here",
          "[transfer][versions]") {
  const ScratchDir dir;
  Fill(dir / "source");
  SetFormatVersion(dir / "source", 8);
  PullOptions options;
  options.method = PullMethod::kClone;
  const Ferried moved = Ferry(dir / "source", dir / "target", options);
  INFO(moved.message());
  REQUIRE_OK(moved.status);
  REQUIRE(moved.summary.opens_since == "11.10");
  REQUIRE(moved.summary.opens_because == "format_version 8");
  const std::vector<std::string> there = PathsWith(dir / "source", ".sst");
  const std::vector<std::string> here = PathsWith(dir / "target", ".sst");
  REQUIRE(here.size() == there.size());
  for (size_t i = 0; i < here.size(); ++i) {
    REQUIRE(BytesOf(here[i]) == BytesOf(there[i]));
  }
  options.for_rocksdb = "11.9";
  REQUIRE(Ferry(dir / "source", dir / "refused", options).state() ==
          EndState::kIncompatible);
}

TEST_CASE("A database whose future tables have a format that this RocksDB "
          "cannot read is cloned from the start",
          "[transfer][versions]") {
  const ScratchDir dir;
  {
    OpenDb db(dir / "source", OneFamily(WithXxh3()));
    db.Put("all", "in the WAL");
  }
  PullOptions options;
  options.method = PullMethod::kIngest;
  REQUIRE_OK(Ferry(dir / "source", dir / "replica", options).status);
  EditOptions(dir / "source", "  format_version=5\n", "  format_version=8\n");
  const Ferried refused = Ferry(dir / "source", dir / "refused", options);
  INFO(refused.message());
  REQUIRE(refused.state() == EndState::kIncompatible);
  REQUIRE(refused.message().find("OPTIONS") != std::string::npos);
  const Ferried refreshed = Refresh(dir / "source", dir / "replica");
  INFO(refreshed.message());
  REQUIRE_OK(refreshed.status);
  REQUIRE(refreshed.notes_mention("only a swap with --method clone"));
  options.method = PullMethod::kAuto;
  const Ferried moved = FerryByRule(dir / "source", dir / "target", options);
  INFO(moved.message());
  REQUIRE_OK(moved.status);
  REQUIRE(moved.summary.method == "clone");
}

TEST_CASE(
    "Tables that this RocksDB does not read are cloned, or refused by one "
    "name",
    "[transfer][versions]") {
  const ScratchDir dir;
  Fill(dir / "source");
  SetRelease(dir / "source", "99.1.0");
  SetFormatVersion(dir / "source", 8);
  PullOptions options;
  options.method = PullMethod::kIngest;
  const Ferried refused = Ferry(dir / "source", dir / "refused", options);
  INFO(refused.message());
  REQUIRE(refused.state() == EndState::kIncompatible);
  REQUIRE(refused.message().find("format_version 8") != std::string::npos);
  options.method = PullMethod::kAuto;
  const Ferried moved = FerryByRule(dir / "source", dir / "target", options);
  INFO(moved.message());
  REQUIRE_OK(moved.status);
  REQUIRE(moved.summary.method == "clone");
  // A refresh in place fails too: the replica's own tables have that format.
  const Ferried in_place = Refresh(dir / "source", dir / "target");
  INFO(in_place.message());
  REQUIRE(in_place.state() == EndState::kIncompatible);
  REQUIRE(in_place.message().find("with --method clone") != std::string::npos);
  PullOptions swap;
  swap.mode = PullMode::kSwap;
  swap.method = PullMethod::kClone;
  REQUIRE_OK(Refresh(dir / "source", dir / "target", swap).status);
}

}  // namespace
}  // namespace sstferry::test::for_rocksdb_test
