// Tests the choice of the RocksDB release that a replica is made for: what its
// application reads decides, not what sstferry's own library reads.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "format/release.h"
#include "format/byte_source.h"
#include "format/coding.h"
#include "format/options_line.h"
#include "format/rocksdb/sst_reader.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/options/options_file.h"
#include "rocksdb/table.h"
#include "rocksdb/table_properties.h"
#include "sstferry/target.h"
#include "rocksdb/version.h"
#include "tests/support/catch.h"
#include "tests/support/compacted.h"
#include "tests/support/edited_options.h"
#include "tests/support/log_bytes.h"
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

// Adds the property of tables that SstFileWriter::OpenWithEmbeddedBlobs() of
// RocksDB 11.6 makes.
class SaysEmbedded : public rocksdb::TablePropertiesCollector {
 public:
  rocksdb::Status AddUserKey(const rocksdb::Slice&, const rocksdb::Slice&,
                             rocksdb::EntryType, rocksdb::SequenceNumber,
                             uint64_t) override {
    return rocksdb::Status::OK();
  }
  rocksdb::Status Finish(rocksdb::UserCollectedProperties* found) override {
    (*found)["rocksdb.embedded.blob.stats"] = "\x01\x01";
    return rocksdb::Status::OK();
  }
  rocksdb::UserCollectedProperties GetReadableProperties() const override {
    return {};
  }
  const char* Name() const override { return "sstferry.test.SaysEmbedded"; }
};
class SayEmbedded : public rocksdb::TablePropertiesCollectorFactory {
 public:
  rocksdb::TablePropertiesCollector* CreateTablePropertiesCollector(
      Context) override {
    return new SaysEmbedded();
  }
  const char* Name() const override { return "sstferry.test.SayEmbedded"; }
};

// Checks that a clone of dir/source needs this release.
void RequireNeeds(const ScratchDir& dir, const std::string& since,
                  const std::string& because, const std::string& before) {
  INFO(because);
  PullOptions options;
  options.method = PullMethod::kClone;
  const Ferried moved =
      Ferry(dir / "source", dir / ("since " + since), options);
  INFO(moved.message());
  REQUIRE_OK(moved.status);
  REQUIRE(moved.summary.opens_since == since);
  REQUIRE(moved.summary.opens_because == because);
  options.for_rocksdb = before;
  const Ferried refused = Ferry(dir / "source", dir / "refused", options);
  INFO(refused.message());
  REQUIRE(refused.state() == EndState::kIncompatible);
  REQUIRE(refused.message().find("reads since " + since) != std::string::npos);
  REQUIRE(refused.summary.sst_bytes == 0);
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

TEST_CASE("A clone needs a release that replays the entries of its WALs",
          "[transfer][versions]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions with_blobs = WithXxh3();
  with_blobs.enable_blob_files = true;
  {
    OpenDb db(dir / "source", OneFamily(with_blobs));
    db.Put("a", RandomBytes(80, 1));
    db.Flush();
  }
  const std::vector<std::string> wals = PathsWith(dir / "source", ".log");
  const std::string wal = *std::max_element(wals.begin(), wals.end());
  uint64_t sequence = 1;
  const auto append = [&](char type, const std::string& value) {
    std::string batch;
    PutFixed64(&batch, ++sequence);
    PutFixed32(&batch, 1);
    batch += type;
    batch += "\x01k";
    batch += static_cast<char>(value.size());
    AppendBatch(wal, batch + value);
  };
  append('\x16', std::string("\x01\x01\x00\x01v", 5));
  RequireNeeds(dir, "7.5", "wide-column entities in WALs", "7.4.5");
  append('\x18', "v" + std::string(8, '\0'));
  RequireNeeds(dir, "9.1", "entries of TimedPut in WALs", "8.11.4");
  PullOptions chunks;
  chunks.method = PullMethod::kIngest;
  if (kLinkedRelease < kReadsTimedPuts) {
    const Ferried refused = Ferry(dir / "source", dir / "refused", chunks);
    INFO(refused.message());
    REQUIRE(refused.state() == EndState::kIncompatible);
    REQUIRE(refused.message().find("TimedPut") != std::string::npos);
  }
  // The column is in a blob file that the MANIFEST names.
  const fs::path blobs = PathsWith(dir / "source", ".blob").front();
  const auto number = static_cast<char>(std::stoul(blobs.stem().string()));
  REQUIRE(number > 0);
  append('\x16', ReferringEntity(std::string("\x01") + number +
                                 std::string("\x20\x05\x00", 3)));
  RequireNeeds(dir, "11.0", "wide-column entities with columns in blob files",
               "10.10");
}

TEST_CASE("A clone needs a release that reads the blobs in its tables",
          "[transfer][versions]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions says = WithXxh3();
  says.table_properties_collector_factories.push_back(
      std::make_shared<SayEmbedded>());
  {
    OpenDb db(dir / "source", OneFamily(says));
    db.Put("a", "value");
    db.Flush();
  }
  // The next OPTIONS do not name the collector.
  OpenDb(dir / "source", OneFamily(WithXxh3()));
  RequireNeeds(dir, "11.6", "tables with embedded blobs", "11.5");
  SetRelease(dir / "source", "99.1.0");
  PullOptions chunks;
  chunks.method = PullMethod::kIngest;
  if (kLinkedRelease < kReadsEmbeddedBlobs) {
    const Ferried refused = Ferry(dir / "source", dir / "refused", chunks);
    INFO(refused.message());
    REQUIRE(refused.state() == EndState::kIncompatible);
    REQUIRE(refused.message().find("embedded blobs") != std::string::npos);
  }
}

TEST_CASE("A clone with tables of format_version 1 is not for RocksDB 11",
          "[transfer][versions]") {
  const ScratchDir dir;
  rocksdb::BlockBasedTableOptions table;
  table.format_version = 2;
  table.checksum = rocksdb::kCRC32c;
  rocksdb::ColumnFamilyOptions old = Quiet();
  old.compression = rocksdb::kNoCompression;
  old.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  {
    OpenDb db(dir / "source", OneFamily(old));
    db.Put("a", "value");
    db.Flush();
  }
  SetFormatVersion(dir / "source", 1);
  PullOptions options;
  options.method = PullMethod::kClone;
  options.for_rocksdb = "11.0";
  const Ferried refused = Ferry(dir / "source", dir / "refused", options);
  INFO(refused.message());
  REQUIRE(refused.state() == EndState::kIncompatible);
  REQUIRE(refused.message().find("no longer reads since 11.0") !=
          std::string::npos);
  options.for_rocksdb = "10.11";
  const Ferried moved = Ferry(dir / "source", dir / "target", options);
  INFO(moved.message());
  REQUIRE_OK(moved.status);
}

TEST_CASE("A note says that RocksDB before 11 may not read some entities",
          "[transfer][versions]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions with_blobs = WithXxh3();
  with_blobs.enable_blob_files = true;
  {
    OpenDb db(dir / "source", OneFamily(with_blobs));
    db.Put("a", RandomBytes(80, 1));
    db.Flush();
  }
  SetRelease(dir / "source", "11.0.4");
  const std::string note = "cannot read these entities";
  PullOptions options;
  options.method = PullMethod::kClone;
  options.for_rocksdb = "10.10";
  const Ferried older = Ferry(dir / "source", dir / "older", options);
  INFO(older.message());
  REQUIRE_OK(older.status);
  REQUIRE(older.notes_mention(note));
  options.for_rocksdb = "11.0";
  const Ferried same = Ferry(dir / "source", dir / "same", options);
  REQUIRE_OK(same.status);
  REQUIRE_FALSE(same.notes_mention(note));
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
