#include "format/rocksdb/manifest_reader.h"

#include <filesystem>
#include <fstream>
#include <functional>

#include "format/coding.h"
#include "format/end_state.h"
#include "format/rocksdb/sst_coding.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/base/silent_logger.h"
#include "rocksdb/db.h"
#include "rocksdb/metadata.h"
#include "rocksdb/sst_file_writer.h"
#include "tests/support/catch.h"
#include "tests/support/log_bytes.h"
#include "tests/support/test_db.h"

namespace sstferry::manifest_reader_test {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

void ReadManifest(const std::string& directory, ManifestReader* reader) {
  const std::string bytes = test::ManifestBytes(directory);
  const test::Followed followed = test::Follow(bytes, LogKind::kManifest);
  REQUIRE_OK(followed.status);
  REQUIRE(followed.end == bytes.size());
  for (const std::string& record : followed.records) {
    REQUIRE_OK(reader->Add(record));
  }
}

std::string UserKey(const std::string& internal) {
  return internal.substr(0, internal.size() - 8);
}

// Requires that the MANIFEST names the same files as the open database.
void RequireSame(const test::OpenDb& db, const std::string& directory,
                 const std::vector<std::string>& families) {
  REQUIRE_OK(db->PauseBackgroundWork());
  ManifestReader reader;
  ReadManifest(directory, &reader);
  REQUIRE_FALSE(reader.in_group());
  const ManifestState& state = reader.state();
  REQUIRE(state.families.size() == families.size());
  std::string id;
  REQUIRE_OK(db->GetDbIdentity(id));
  if (!state.database_id.empty()) {  // write_dbid_to_manifest
    REQUIRE(state.database_id == id);
  }
  REQUIRE(state.last_sequence <= db->GetLatestSequenceNumber());
  for (const std::string& name : families) {
    INFO("family " << name);
    rocksdb::ColumnFamilyMetaData metadata;
    db->GetColumnFamilyMetaData(db.cf(name), &metadata);
    const ManifestFamily& family = state.families.at(db.cf(name)->GetID());
    REQUIRE(family.name == name);
    REQUIRE(family.id == db.cf(name)->GetID());
    REQUIRE(family.comparator == db.cf(name)->GetComparator()->Name());
    size_t files = 0;
    for (const rocksdb::LevelMetaData& level : metadata.levels) {
      for (const rocksdb::SstFileMetaData& expected : level.files) {
        ++files;
        INFO("table " << expected.file_number);
        const ManifestFile& file = family.files.at(expected.file_number);
        REQUIRE(file.number == expected.file_number);
        REQUIRE(file.level == level.level);
        REQUIRE(file.bytes == expected.size);
        REQUIRE(UserKey(file.smallest) == expected.smallestkey);
        REQUIRE(UserKey(file.largest) == expected.largestkey);
        REQUIRE(file.smallest_sequence == expected.smallest_seqno);
        REQUIRE(file.largest_sequence == expected.largest_seqno);
        REQUIRE(file.oldest_blob_file == expected.oldest_blob_file_number);
        REQUIRE(file.oldest_ancestor_time == expected.oldest_ancester_time);
        REQUIRE(file.creation_time == expected.file_creation_time);
        REQUIRE(file.has_unique_id);
        if (!file.checksum_function.empty()) {
          REQUIRE(file.checksum == expected.file_checksum);
          REQUIRE(file.checksum_function == expected.file_checksum_func_name);
        }
      }
    }
    REQUIRE(family.files.size() == files);
    REQUIRE(family.blobs.size() == metadata.blob_files.size());
    for (const rocksdb::BlobMetaData& expected : metadata.blob_files) {
      const ManifestBlobFile& blob =
          family.blobs.at(expected.blob_file_number);
      REQUIRE(blob.number == expected.blob_file_number);
      REQUIRE(blob.total_count == expected.total_blob_count);
      REQUIRE(blob.total_bytes == expected.total_blob_bytes);
      REQUIRE(blob.garbage_count == expected.garbage_blob_count);
      REQUIRE(blob.garbage_bytes == expected.garbage_blob_bytes);
    }
  }
  REQUIRE_OK(db->ContinueBackgroundWork());
}

void Fill(test::OpenDb* db, const std::string& family, uint64_t first,
          uint64_t count) {
  for (uint64_t i = first; i < first + count; ++i) {
    db->Put(test::NumberedKey(i), std::string(i % 60, 'v'), family);
  }
}

// Encodes a tag of a version edit and its numbers.
std::string Tag(uint32_t tag, const std::vector<uint64_t>& numbers = {}) {
  std::string bytes;
  sst::PutVarint64(&bytes, tag);
  for (const uint64_t number : numbers) {
    sst::PutVarint64(&bytes, number);
  }
  return bytes;
}

std::string Prefixed(const std::string& bytes) {
  std::string prefixed;
  sst::PutVarint64(&prefixed, bytes.size());
  return prefixed + bytes;
}

// Encodes a new table in level 1, in the newest form of the record.
std::string NewFile(uint64_t number, const std::string& fields = "") {
  return Tag(103, {1, number, 1000}) + Prefixed("a12345678") +
         Prefixed("b12345678") + Tag(3, {9}) + fields + Tag(1);
}

// Encodes a new blob file with one value of one byte.
std::string AddBlob(uint64_t number) {
  return Tag(400, {number, 1, 1}) + Prefixed("") + Prefixed("") + Tag(0);
}

}  // namespace

TEST_CASE("A MANIFEST names the same files as the open database",
          "[format][rocksdb]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions many_levels = test::Quiet();
  many_levels.target_file_size_base = 4 << 10;
  many_levels.max_bytes_for_level_base = 16 << 10;
  many_levels.write_buffer_size = 64 << 10;
  many_levels.disable_auto_compactions = false;
  rocksdb::ColumnFamilyOptions blobs = test::Quiet();
  blobs.enable_blob_files = true;
  blobs.min_blob_size = 40;
  blobs.blob_file_size = 4 << 10;
  blobs.enable_blob_garbage_collection = true;
  test::Families families = test::OneFamily(test::Quiet());
  families.emplace_back("levels", many_levels);
  families.emplace_back("blobs", blobs);
  families.emplace_back("dropped", test::Quiet());
  rocksdb::DBOptions options;
  options.create_if_missing = true;
  options.write_dbid_to_manifest = true;
  options.atomic_flush = GENERATE(false, true);
  options.track_and_verify_wals_in_manifest = GENERATE(false, true);
  test::OpenDb db(dir / "db", families, options);
  Fill(&db, "default", 0, 200);
  Fill(&db, "dropped", 0, 200);
  Fill(&db, "blobs", 0, 2000);
  db.Flush();
  RequireSame(db, dir / "db", {"default", "levels", "blobs", "dropped"});
  ManifestReader reader;
  ReadManifest(dir / "db", &reader);
  REQUIRE_FALSE(reader.state().database_id.empty());

  REQUIRE_OK(db->DropColumnFamily(db.cf("dropped")));
  for (int round = 0; round < 6; ++round) {
    Fill(&db, "levels", 1000 * (round % 3), 3000);
    Fill(&db, "blobs", 300 * round, 500);
    db.DeleteRange(test::NumberedKey(10), test::NumberedKey(90), "blobs");
    REQUIRE_OK(db->Flush({}, {db.cf(), db.cf("levels"), db.cf("blobs")}));
    if (round % 2 == 1) {
      db.Compact("blobs");
    }
  }
  rocksdb::SstFileWriter writer({}, {});
  REQUIRE_OK(writer.Open(dir / "1.sst"));
  REQUIRE_OK(writer.Put("ingested", "value"));
  REQUIRE_OK(writer.Finish());
  REQUIRE_OK(db->IngestExternalFile(db.cf(), {dir / "1.sst"}, {}));
  db.Compact("levels");
  RequireSame(db, dir / "db", {"default", "levels", "blobs"});
}

TEST_CASE("A MANIFEST that RocksDB rewrote names the same files",
          "[format][rocksdb]") {
  const ScratchDir dir;
  rocksdb::ColumnFamilyOptions blobs = test::Quiet();
  blobs.enable_blob_files = true;
  test::Families families = test::OneFamily(blobs);
  families.emplace_back("second", test::Quiet());
  rocksdb::DBOptions options;
  options.create_if_missing = true;
  options.max_manifest_file_size = 300;
  options.file_checksum_gen_factory =
      rocksdb::GetFileChecksumGenCrc32cFactory();
  for (int life = 0; life < 3; ++life) {
    test::OpenDb db(dir / "db", families, options);
    for (int i = 0; i < 4; ++i) {
      Fill(&db, "default", 10 * i, 20);
      Fill(&db, "second", 10 * i, 20);
      db.Flush();
      RequireSame(db, dir / "db", {"default", "second"});
    }
  }
}

TEST_CASE("A changed MANIFEST is read if RocksDB opens its database",
          "[format][rocksdb][corruption]") {
  const ScratchDir dir;
  {
    rocksdb::DBOptions options;
    options.create_if_missing = true;
    options.write_dbid_to_manifest = true;
    test::OpenDb db(dir / "db", test::OneFamily(test::Quiet()), options);
    for (uint64_t table = 0; table < 2; ++table) {
      Fill(&db, "default", 10 * table, 10);
      db.Flush();
    }
  }
  std::string path = test::FileBytes(dir / "db/CURRENT");
  path = (dir / "db/") + path.substr(0, path.find('\n'));
  const std::string whole = test::FileBytes(path);
  rocksdb::Options quiet;
  quiet.info_log = std::make_shared<SilentLogger>();
  int opened = 0;
  int refused = 0;
  const auto compare = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    std::unique_ptr<rocksdb::DB> db;
    const Status open =
        rocksdb::DB::OpenForReadOnly(quiet, dir / "db", IntoDb(&db));
    ManifestReader reader;
    const Status read = reader.Follow(SliceSource(bytes));
    INFO("RocksDB: " << open.ToString() << "; sstferry: " << read.ToString());
    REQUIRE(read.ok() == open.ok());
    REQUIRE(reader.is_damaged() == !read.ok());
    REQUIRE((read.ok() || EndStateOf(read) == EndState::kCorrupt));
    REQUIRE(reader.end() <= bytes.size());
    ++(read.ok() ? opened : refused);
  };
  compare(whole);
  REQUIRE(opened == 1);
  for (size_t at = 0; at < whole.size(); ++at) {
    INFO("byte " << at);
    std::string changed = whole;
    // With other bits, a type may become that of a recyclable record, with
    // which RocksDB 11 does not end.
    changed[at] ^= at % 2 == 0 ? 0x40 : 0x01;
    compare(changed);
  }
  REQUIRE(refused > static_cast<int>(whole.size() / 2));
  for (size_t size = 0; size < whole.size(); size += 3) {
    INFO("cut to " << size);
    compare(whole.substr(0, size));
  }
  REQUIRE(opened > 20);
}

TEST_CASE("A MANIFEST is followed while it grows", "[format][rocksdb]") {
  const std::string begin = test::PhysicalRecord(
      1, Tag(2, {7}) + Tag(3, {8}) + Tag(4, {9}));
  const auto member = [](uint64_t number, uint64_t behind) {
    return test::PhysicalRecord(1, NewFile(number) + Tag(300, {behind}));
  };
  const std::string log = begin + member(5, 1) + member(6, 0);
  std::vector<uint64_t> ends;
  ManifestReader* watched = nullptr;
  ManifestReader reader([&](const VersionEdit&, const ManifestState&) {
    ends.push_back(watched->end());
  });
  watched = &reader;
  for (size_t size = 0; size <= log.size(); ++size) {
    INFO(size);
    const Status status = reader.Follow(SliceSource(Slice(log.data(), size)));
    REQUIRE(status.ok() == (size >= begin.size()));
    REQUIRE(reader.is_damaged() == !status.ok());
    REQUIRE(reader.end() == (size < begin.size() ? 0
                             : size < log.size() ? begin.size()
                                                 : log.size()));
  }
  REQUIRE(reader.state().families.at(0).files.size() == 2);
  REQUIRE(ends ==
          std::vector<uint64_t>{begin.size(), log.size(), log.size()});
}

TEST_CASE("A MANIFEST says which WALs recovery needs", "[format][rocksdb]") {
  const ScratchDir dir;
  test::Families families = test::OneFamily(test::Quiet());
  families.emplace_back("second", test::Quiet());
  rocksdb::DBOptions options;
  options.create_if_missing = true;
  options.track_and_verify_wals_in_manifest = true;
  test::OpenDb db(dir / "db", families, options);
  std::vector<uint64_t> wals;
  const auto current = [&] {
    std::unique_ptr<rocksdb::LogFile> wal;
    REQUIRE_OK(db->GetCurrentWalFile(&wal));
    return wal->LogNumber();
  };
  db.Put("a", "1", "second");
  const uint64_t first = current();
  db.Put("a", "1");
  REQUIRE_OK(db->Flush({}, db.cf()));
  db.Put("b", "1");
  REQUIRE_OK(db->SyncWAL());
  const uint64_t second = current();
  REQUIRE(first < second);
  ManifestReader reader;
  ReadManifest(dir / "db", &reader);
  REQUIRE(OldestNeededWal(reader.state(), false) <= first);
  REQUIRE(reader.state().families.at(0).log_number == second);
  REQUIRE(reader.state().wals.count(first) == 1);
  REQUIRE(reader.state().wals.at(first) ==
          std::filesystem::file_size(dir / "db" + "/" + test::WalName(first)));

  REQUIRE_OK(db->Flush({}, db.cf("second")));
  ManifestReader later;
  ReadManifest(dir / "db", &later);
  REQUIRE(OldestNeededWal(later.state(), false) == second);
  REQUIRE(later.state().wals.count(first) == 0);
  REQUIRE(later.state().deleted_wals_before == second);
}

TEST_CASE("Older forms of a record are read", "[format][rocksdb]") {
  const std::string keys = Prefixed("a12345678") + Prefixed("b12345678");
  ManifestReader reader;
  REQUIRE_OK(reader.Add(Tag(7, {2, 10, 100}) + keys +
                        Tag(100, {3, 11, 101}) + keys + Tag(4, {8}) +
                        Tag(102, {4, 12, 2, 102}) + keys + Tag(5, {9}) +
                        Tag(8196) + Tag(7) + Tag(2, {4096, 1}) +  // WAL
                        Tag(5, {2}) + Prefixed("c12345678")));
  // A record about WALs changes nothing else.
  REQUIRE(reader.state().families.at(0).files.empty());
  REQUIRE(reader.state().wals == std::map<uint64_t, uint64_t>{{7, 4096}});
  REQUIRE_OK(reader.Add(Tag(7, {2, 10, 100}) + keys + Tag(100, {3, 11, 101}) +
                        keys + Tag(4, {8}) + Tag(102, {4, 12, 2, 102}) + keys +
                        Tag(5, {9})));
  const auto& files = reader.state().families.at(0).files;
  REQUIRE(files.size() == 3);
  REQUIRE(files.at(10).level == 2);
  REQUIRE(files.at(11).largest_sequence == 8);
  REQUIRE(files.at(12).path_id == 2);
  REQUIRE(files.at(12).bytes == 102);
  REQUIRE_OK(reader.Add(Tag(8197, {8})));
  REQUIRE(reader.state().wals.empty());
}

TEST_CASE("Unknown fields are ignored if they may be, and refused otherwise",
          "[format][rocksdb]") {
  ManifestReader reader;
  REQUIRE_OK(reader.Add(Tag(8192 + 77) + Prefixed("future") +
                        NewFile(5, Tag(30) + Prefixed("future") + Tag(65) +
                                       Prefixed(std::string(1, '\1')))));
  REQUIRE(reader.state().families.at(0).files.at(5).path_id == 1);
  for (const std::string& bad :
       {Tag(11), Tag(104), Tag(402, {1}), NewFile(6, Tag(66) + Prefixed("x")),
        Tag(400, {1, 2, 3}) + Prefixed("") + Prefixed("") + Tag(65) +
            Prefixed("x"),
        Tag(8192 + 7) + Prefixed(Tag(7, {3, 1}))}) {
    ManifestReader fresh;
    REQUIRE(fresh.Add(bad).IsNotSupported());
  }
}

TEST_CASE("A change that contradicts the state is damage",
          "[format][rocksdb]") {
  const std::string other_family = Tag(200, {7});
  for (const std::string& bad :
       {NewFile(5), Tag(6, {2, 5}), Tag(6, {1, 6}), other_family + NewFile(6),
        other_family + Tag(202), Tag(202),
        Tag(200, {0}) + Tag(201) + Prefixed("default"),
        Tag(401, {9, 1, 1, 0}), NewFile(6, Tag(65) + Prefixed("\4")),
        NewFile(6, Tag(12) + Prefixed("short")), Tag(6, {256, 5}),
        Tag(7, {1, 6, 100}) + Prefixed("short") + Prefixed("b12345678")}) {
    ManifestReader reader;
    REQUIRE_OK(reader.Add(NewFile(5)));
    const Status status = reader.Add(bad);
    INFO(Slice(bad).ToString(true));
    REQUIRE(status.IsCorruption());
    REQUIRE(status.ToString().find("MANIFEST: ") != std::string::npos);
  }
}

TEST_CASE("A file may move to another level in one record",
          "[format][rocksdb]") {
  ManifestReader reader;
  REQUIRE_OK(reader.Add(NewFile(5)));
  REQUIRE_OK(reader.Add(Tag(6, {1, 5}) + NewFile(5)));
  REQUIRE(reader.state().families.at(0).files.size() == 1);
}

TEST_CASE("An atomic group takes effect as a whole", "[format][rocksdb]") {
  const auto member = [](uint64_t number, uint64_t behind) {
    return NewFile(number) + Tag(300, {behind});
  };
  ManifestReader reader;
  REQUIRE_OK(reader.Add(member(5, 2)));
  REQUIRE_OK(reader.Add(member(6, 1)));
  REQUIRE(reader.in_group());
  REQUIRE(reader.state().families.at(0).files.empty());
  REQUIRE_OK(reader.Add(member(7, 0)));
  REQUIRE_FALSE(reader.in_group());
  REQUIRE(reader.state().families.at(0).files.size() == 3);

  REQUIRE_OK(reader.Add(member(8, 1)));
  REQUIRE(reader.Add(NewFile(9)).IsCorruption());
  ManifestReader wrong_count;
  REQUIRE_OK(wrong_count.Add(member(8, 2)));
  REQUIRE(wrong_count.Add(member(9, 0)).IsCorruption());
  ManifestReader too_large;
  REQUIRE(too_large.Add(member(8, UINT32_MAX)).IsCorruption());
}

TEST_CASE("A database with 300,000 tables in one record and 20,000 column "
          "families is read",
          "[format][rocksdb]") {
  std::string tables;
  for (uint64_t number = 1; number <= 300'000; ++number) {
    tables += NewFile(number, Tag(13) + Prefixed("\1"));
  }
  ManifestReader reader;
  REQUIRE_OK(reader.Add(tables));
  for (uint64_t id = 1; id < 20'000; ++id) {
    REQUIRE_OK(reader.Add(Tag(200, {id}) + Tag(201) +
                          Prefixed("family " + std::to_string(id))));
  }
  REQUIRE(reader.state().families.at(0).files.size() == 300'000);
  REQUIRE(reader.state().families.size() == 20'000);
}

TEST_CASE("An edit examines only the blob files that it changes",
          "[format][rocksdb]") {
  constexpr uint64_t kBlobs = 1000;
  std::string record;
  for (uint64_t number = 1; number <= kBlobs; ++number) {
    record += AddBlob(number);
  }
  ManifestReader reader;
  REQUIRE_OK(reader.Add(record + NewFile(kBlobs + 1, Tag(4) + Prefixed("\1"))));
  for (uint64_t i = 0; i < 1000; ++i) {
    REQUIRE_OK(reader.Add(Tag(4, {i})));
    REQUIRE_OK(reader.Add(NewFile(kBlobs + 2 + i)));
    REQUIRE_OK(reader.Add(Tag(6, {1, kBlobs + 2 + i})));
  }
  REQUIRE(reader.state().families.at(0).blobs.size() == kBlobs);
  REQUIRE(reader.examined_blobs() <= kBlobs);
}

TEST_CASE("A blob file counts until it has only garbage and no table, or all "
          "tables need only later ones",
          "[format][rocksdb]") {
  ManifestReader reader;
  const auto linked = [](uint64_t table, char blob) {
    return NewFile(table, Tag(4) + Prefixed(std::string(1, blob)));
  };
  const auto numbers = [&reader] {
    std::vector<uint64_t> found;
    for (const auto& [number, blob] : reader.state().families.at(0).blobs) {
      found.push_back(number);
    }
    return found;
  };
  using Numbers = std::vector<uint64_t>;
  REQUIRE_OK(reader.Add(AddBlob(4) + AddBlob(5) + AddBlob(6) + AddBlob(7) +
                        AddBlob(8) + linked(15, 5) + linked(16, 6) +
                        linked(26, 6) + linked(17, 7)));
  REQUIRE(numbers() == Numbers{5, 6, 7, 8});
  REQUIRE_OK(reader.Add(Tag(401, {6, 1, 1, 0}) + Tag(6, {1, 16})));
  REQUIRE(numbers() == Numbers{5, 6, 7, 8});
  REQUIRE_OK(reader.Add(Tag(6, {1, 26})));  // had the last link to 6
  REQUIRE(numbers() == Numbers{5, 7, 8});
  REQUIRE_OK(reader.Add(Tag(401, {8, 1, 1, 0})));
  REQUIRE(numbers() == Numbers{5, 7});
  REQUIRE_OK(reader.Add(Tag(6, {1, 17}) + linked(27, 7)));
  REQUIRE(numbers() == Numbers{5, 7});
  REQUIRE_OK(reader.Add(Tag(6, {1, 15})));
  REQUIRE(numbers() == Numbers{7});
  REQUIRE_OK(reader.Add(Tag(6, {1, 27})));
  REQUIRE(numbers().empty());
}

TEST_CASE("The memory of a state is bounded, and removed items do not count",
          "[format][rocksdb]") {
  const std::string text(100, 'x');
  // Adds item `i`, or replaces the one before; the second record removes it.
  struct Item {
    const char* what;
    std::function<std::string(uint64_t i)> add;
    std::function<std::string(uint64_t i)> remove;
  };
  const auto number = [](uint64_t i) { return Tag(static_cast<uint32_t>(i)); };
  const std::vector<Item> items{
      {"table", [](uint64_t i) { return NewFile(i); },
       [](uint64_t i) { return Tag(6, {1, i}); }},
      {"family",
       [&text](uint64_t i) {
         return Tag(200, {i}) + Tag(201) + Prefixed(text) + Tag(1) +
                Prefixed(text);
       },
       [](uint64_t i) { return Tag(200, {i}) + Tag(202); }},
      {"blob file",
       [&number](uint64_t i) {
         return AddBlob(i) + NewFile(i, Tag(4) + Prefixed(number(i)));
       },
       [](uint64_t i) { return Tag(6, {1, i}); }},
      {"WAL",
       [&number](uint64_t i) {
         return Tag(8199) + Prefixed(number(i) + Tag(1));
       },
       [&number](uint64_t i) { return Tag(8200) + Prefixed(number(i + 1)); }}};
  for (const Item& item : items) {
    INFO(item.what);
    ManifestReader reader(nullptr, 100'000);
    uint64_t i = 1;
    for (; i <= 5000; ++i) {
      REQUIRE_OK(reader.Add(item.add(i)));
      REQUIRE_OK(reader.Add(item.remove(i)));
    }
    Status status;
    for (; status.ok() && i < 10'000; ++i) {
      status = reader.Add(item.add(i));
    }
    INFO(i);
    REQUIRE(status.IsNotSupported());
    REQUIRE(i > 5100);
  }
  ManifestReader reader(nullptr, 100'000);
  for (int i = 0; i < 5000; ++i) {
    REQUIRE_OK(reader.Add(Tag(8193) + Prefixed(text) + Tag(1) +
                          Prefixed(text) + Tag(8198) + Prefixed(text)));
  }
  Status status;
  for (uint64_t behind = 5000; status.ok(); --behind) {
    status = reader.Add(Tag(300, {behind}));
  }
  REQUIRE(status.IsNotSupported());
}

}  // namespace sstferry::manifest_reader_test
