#include "format/rocksdb/log_follower.h"

#include <filesystem>
#include <fstream>
#include <random>

#include "format/end_state.h"
#include "format/limits.h"
#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "tests/support/catch.h"
#include "tests/support/log_bytes.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/test_db.h"

namespace sstferry::log_follower_test {

using rocksdb::Slice;
using rocksdb::Status;
using test::FileBytes;
using test::Follow;
using test::Followed;
using test::kLogBlockBytes;
using test::PhysicalRecord;
using test::WalName;

namespace {

// A database that writes batches of many sizes, each with a distinct key.
class WritingDb {
 public:
  WritingDb(const std::string& path, const rocksdb::DBOptions& options)
      : path_(path), db_(path, test::OneFamily(test::Quiet()), options) {}

  void Write(size_t value_bytes) {
    rocksdb::WriteBatch batch;
    std::string value(value_bytes, '\0');
    for (char& byte : value) {
      byte = static_cast<char>('a' + random_() % 20);
    }
    REQUIRE_OK(batch.Put(test::NumberedKey(next_++), value));
    REQUIRE_OK(db_->Write({}, &batch));
    written_.push_back(batch.Data());
  }

  void WriteMany(int count) {
    for (int i = 0; i < count; ++i) {
      const uint64_t kind = random_() % 20;
      Write(kind == 0 ? random_() % 200000 : kind < 5 ? random_() % 9000
                                                      : random_() % 100);
    }
  }

  void Flush() {
    db_.Flush();
    written_.clear();
  }

  uint64_t WalNumber() {
    std::unique_ptr<rocksdb::LogFile> wal;
    REQUIRE_OK(db_->GetCurrentWalFile(&wal));
    return wal->LogNumber();
  }

  // The batches that were written since the last Flush().
  const std::vector<std::string>& written() const { return written_; }
  std::string Wal() { return FileBytes(path_ + "/" + WalName(WalNumber())); }

 private:
  std::string path_;
  test::OpenDb db_;
  std::mt19937_64 random_{7};
  uint64_t next_ = 0;
  std::vector<std::string> written_;
};

rocksdb::DBOptions WalOptions(bool recycled, bool compressed) {
  rocksdb::DBOptions options;
  options.create_if_missing = true;
  options.recycle_log_file_num = recycled ? 2 : 0;
  // In other modes RocksDB does not recycle WALs.
  options.wal_recovery_mode =
      rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords;
  options.wal_compression =
      compressed ? rocksdb::kZSTD : rocksdb::kNoCompression;
  return options;
}

// Returns a log of three records. The middle one is split at a block's end.
std::string PlainLog() {
  const std::string first(kLogBlockBytes - 7 - 7 - 10, 'a');
  return PhysicalRecord(1, first) + PhysicalRecord(2, "0123456789") +
         PhysicalRecord(4, "rest") + PhysicalRecord(1, "last");
}

}  // namespace

TEST_CASE("A follower returns the batches RocksDB wrote, in every form of WAL",
          "[format][rocksdb]") {
  const bool recycled = GENERATE(false, true);
  const bool compressed = GENERATE(false, true);
  const ScratchDir dir;
  WritingDb db(dir / "db", WalOptions(recycled, compressed));
  for (int life = 0; life < 4; ++life) {
    db.WriteMany(life == 0 ? 400 : 150);
    const Followed followed = Follow(db.Wal(), LogKind::kWal, db.WalNumber());
    REQUIRE_OK(followed.status);
    REQUIRE(followed.records == db.written());
    REQUIRE(followed.recyclable == recycled);
    REQUIRE(followed.meta_types.count(9) == (compressed ? 1 : 0));
    REQUIRE_FALSE(followed.stopped_inside);
    db.Flush();
  }
}

TEST_CASE(
    "Records of a log that grows byte by byte are returned once, in order",
    "[format][rocksdb]") {
  const bool recycled = GENERATE(false, true);
  const bool compressed = GENERATE(false, true);
  const ScratchDir dir;
  WritingDb db(dir / "db", WalOptions(recycled, compressed));
  db.WriteMany(100);
  const std::string wal = db.Wal();
  LogFollower follower(LogKind::kWal, db.WalNumber());
  std::vector<std::string> records;
  std::mt19937_64 random(3);
  for (size_t size = 0;; size += 1 + random() % 3000) {
    size = std::min(size, wal.size());
    REQUIRE_OK(follower.Follow(
        SliceSource(Slice(wal.data(), size)),
        [&](const Slice& record, uint64_t end) {
          REQUIRE(end <= size);
          records.push_back(record.ToString());
          return Status::OK();
        }));
    REQUIRE(follower.end() <= size);
    REQUIRE(follower.stopped_inside() == (follower.end() < size));
    if (size == wal.size()) {
      break;
    }
  }
  REQUIRE(records == db.written());
}

TEST_CASE("A log cut at any byte yields the complete records before the cut",
          "[format][rocksdb]") {
  const std::string log = PlainLog();
  const Followed whole = Follow(log);
  REQUIRE(whole.records.size() == 3);
  REQUIRE(whole.records[1] == "0123456789rest");
  REQUIRE(whole.end == log.size());
  REQUIRE_FALSE(whole.stopped_inside);
  for (size_t size = 0; size < log.size(); ++size) {
    const Followed cut = Follow(Slice(log.data(), size));
    REQUIRE_OK(cut.status);
    uint64_t end = 0;
    size_t count = 0;
    while (count < whole.ends.size() && whole.ends[count] <= size) {
      end = whole.ends[count++];
    }
    REQUIRE(cut.records.size() == count);
    REQUIRE(cut.end == end);
    REQUIRE(cut.stopped_inside == (end < size));
  }
}

TEST_CASE("A MANIFEST ends only at a record whose end is missing",
          "[format][rocksdb]") {
  const std::string log = PlainLog();
  const Followed whole = Follow(log, LogKind::kManifest);
  REQUIRE_OK(whole.status);
  REQUIRE(whole.records.size() == 3);
  // Bytes are missing at the end.
  for (size_t size = kLogBlockBytes - 40; size < log.size(); ++size) {
    const Followed cut = Follow(Slice(log.data(), size), LogKind::kManifest);
    REQUIRE_OK(cut.status);
    REQUIRE_FALSE(cut.is_damaged);
  }
  // A record is complete, but has a wrong byte.
  const std::string two = PhysicalRecord(1, "one") + PhysicalRecord(1, "two");
  const size_t record = two.size() / 2;
  for (size_t at = 0; at < two.size(); ++at) {
    std::string bad = two;
    bad[at] ^= 0x40;
    INFO(at);
    const Followed followed = Follow(bad, LogKind::kManifest);
    // The length seems to reach beyond the end of the file.
    const bool is_cut = at % record == 4 || at % record == 5;
    REQUIRE(followed.stopped_inside);
    REQUIRE(followed.is_damaged == !is_cut);
    REQUIRE(followed.status.ok() == is_cut);
    REQUIRE(followed.records.size() == at / record);
    if (!is_cut) {
      REQUIRE(EndStateOf(followed.status) == EndState::kCorrupt);
      REQUIRE(MessageOf(followed.status)
                  .starts_with("MANIFEST: record at offset " +
                               std::to_string(at / record * record) +
                               ": expected checksum "));
    }
    const Followed wal = Follow(bad);
    REQUIRE_OK(wal.status);
    REQUIRE(wal.stopped_inside);
    REQUIRE_FALSE(wal.is_damaged);
  }
  // The length reaches beyond the end of the block.
  std::string block = two;
  block += PhysicalRecord(1, std::string(kLogBlockBytes - two.size() - 7, 'x'));
  block[5] ^= '\x80';
  const Followed followed = Follow(block, LogKind::kManifest);
  REQUIRE(MessageOf(followed.status) ==
          "MANIFEST: record at offset 0: expected at most 32761 bytes up to "
          "the block's end, found 32771");
  REQUIRE(followed.is_damaged);
}

TEST_CASE("Records of a MANIFEST that are out of place are damage",
          "[format][rocksdb]") {
  const std::string data = PhysicalRecord(1, "data");
  std::string zeros = PhysicalRecord(2, "part");
  zeros.resize(kLogBlockBytes - data.size());
  for (const std::string& bad :
       {PhysicalRecord(3, "middle"), PhysicalRecord(4, "last"),
        PhysicalRecord(2, "part") + data,
        PhysicalRecord(2, "part") + PhysicalRecord(200, "of the future"),
        PhysicalRecord(0, "written"), PhysicalRecord(5, "recyclable"),
        PhysicalRecord(131, "recyclable"), zeros}) {
    const Followed followed = Follow(data + bad + data, LogKind::kManifest);
    INFO(followed.status.ToString());
    REQUIRE(EndStateOf(followed.status) == EndState::kCorrupt);
    REQUIRE(followed.is_damaged);
    REQUIRE(followed.records == std::vector<std::string>{"data"});
    REQUIRE(followed.end == data.size());
  }
}

TEST_CASE("Records that RocksDB does not write into a MANIFEST are refused",
          "[format][rocksdb]") {
  const std::string data = PhysicalRecord(1, "data");
  for (const std::string& bad :
       {PhysicalRecord(9, std::string("\7\0\0\0", 4)),
        PhysicalRecord(10, std::string(12, 't')), PhysicalRecord(12, "x")}) {
    const Followed refused = Follow(bad + data, LogKind::kManifest);
    REQUIRE(EndStateOf(refused.status) == EndState::kRefused);
    REQUIRE(MessageOf(refused.status)
                .starts_with("MANIFEST: expected record types 1 to 4, found a "
                             "record of type "));
    REQUIRE(refused.records.empty());
    REQUIRE_FALSE(refused.is_damaged);
  }
  const Followed ignored =
      Follow(PhysicalRecord(200, "of the future") + data, LogKind::kManifest);
  REQUIRE_OK(ignored.status);
  REQUIRE(ignored.records == std::vector<std::string>{"data"});
}

TEST_CASE("After a failed callback, the same record is passed again",
          "[format][rocksdb]") {
  const std::string log = PlainLog();
  LogFollower follower(LogKind::kManifest);
  int calls = 0;
  const auto fail_at_second = [&](const Slice&, uint64_t) {
    return ++calls == 2 ? Status::Aborted() : Status::OK();
  };
  REQUIRE(follower.Follow(SliceSource(log), fail_at_second).IsAborted());
  REQUIRE(follower.end() == kLogBlockBytes - 17);
  REQUIRE_OK(follower.Follow(SliceSource(log), fail_at_second));
  REQUIRE(calls == 4);
  REQUIRE(follower.end() == log.size());
}

TEST_CASE(
    "Records from before a WAL was recycled end the log, and are no damage",
    "[format][rocksdb]") {
  const std::string ours =
      PhysicalRecord(5, "one", 12) + PhysicalRecord(5, "two", 12);
  const std::string old = PhysicalRecord(5, std::string(300, 'o'), 9) +
                          PhysicalRecord(5, "old", 9);
  // Old bytes that begin at a record, or in the middle of one.
  for (const std::string& tail : {old, old.substr(20)}) {
    const Followed followed = Follow(ours + tail, LogKind::kWal, 12);
    REQUIRE_OK(followed.status);
    REQUIRE(followed.records == std::vector<std::string>{"one", "two"});
    REQUIRE(followed.end == ours.size());
    REQUIRE(followed.recyclable);
    REQUIRE_FALSE(followed.stopped_inside);
    // RocksDB reports only bytes in the middle of a record as damage.
    REQUIRE(followed.stop ==
            (tail == old ? LogStop::kOldRecord : LogStop::kOther));
  }
  REQUIRE(Follow(ours, LogKind::kWal, 12).stop == LogStop::kEnd);
  REQUIRE(Follow(old, LogKind::kWal, 12).stop == LogStop::kOldRecord);
  // An old record of which the file has only a part is damage to RocksDB.
  REQUIRE(Follow(ours + old.substr(0, 20), LogKind::kWal, 12).stop ==
          LogStop::kOther);
  // A torn record of the current log: its checksum is wrong, or the file ends.
  std::string torn = PhysicalRecord(5, "three", 12);
  torn.back() = 'x';
  REQUIRE(Follow(ours + torn + old, LogKind::kWal, 12).stopped_inside);
  REQUIRE(Follow(ours + torn.substr(0, 9), LogKind::kWal, 12).stopped_inside);
  // The first part of a record of the current log, then old records.
  const Followed part = Follow(ours + PhysicalRecord(6, "part", 12) + old,
                               LogKind::kWal, 12);
  REQUIRE(part.records.size() == 2);
  REQUIRE(part.end == ours.size());
  REQUIRE(part.stopped_inside);
  REQUIRE(part.stop == LogStop::kOther);
}

TEST_CASE("Zeros are skipped up to the block's end, as RocksDB does",
          "[format][rocksdb]") {
  const std::string first = PhysicalRecord(1, "first");
  std::string log = first;
  log.resize(kLogBlockBytes);
  const Followed padded = Follow(log);
  REQUIRE(padded.end == first.size());
  REQUIRE_FALSE(padded.stopped_inside);
  REQUIRE(padded.stop == LogStop::kEnd);
  log += PhysicalRecord(1, "second");
  REQUIRE(Follow(log).records == std::vector<std::string>{"first", "second"});
  // Ten bytes of zeros: too few for a recyclable header (11 bytes), but enough
  // for a plain one (7).
  std::string recyclable =
      PhysicalRecord(5, std::string(kLogBlockBytes - 11 - 10, 'a'), 3);
  recyclable.resize(kLogBlockBytes);
  recyclable += PhysicalRecord(5, "second", 3);
  REQUIRE(Follow(recyclable, LogKind::kWal, 3).records.size() == 2);
  // Zeros inside a record are not skipped: RocksDB takes them for damage.
  std::string inside = PhysicalRecord(2, "part");
  inside.resize(kLogBlockBytes);
  inside += PhysicalRecord(4, "rest");
  const Followed stopped = Follow(inside);
  REQUIRE(stopped.records.empty());
  REQUIRE(stopped.stopped_inside);
}

TEST_CASE("A MANIFEST above its limit is refused before a byte is read",
          "[format][rocksdb]") {
  class Sparse : public ByteSource {
   public:
    explicit Sparse(uint64_t size) : size_(size) {}
    rocksdb::Status Read(uint64_t, size_t, std::string*,
                         rocksdb::Slice*) const override {
      return rocksdb::Status::IOError("it was read");
    }
    uint64_t size() const override { return size_; }

   private:
    const uint64_t size_;
  };
  const auto follow = [](LogKind kind, uint64_t size) {
    LogFollower follower(kind, 7);
    return follower.Follow(Sparse(size), [](const rocksdb::Slice&, uint64_t) {
      return rocksdb::Status::OK();
    });
  };
  const rocksdb::Status refused =
      follow(LogKind::kManifest, kMaxManifestFileBytes + 1);
  REQUIRE(EndStateOf(refused) == EndState::kRefused);
  REQUIRE(MessageOf(refused) ==
          "MANIFEST: expected at most 4294967296 bytes, found 4294967297; let "
          "its application reopen the database, which starts a new MANIFEST");
  REQUIRE(follow(LogKind::kManifest, kMaxManifestFileBytes).IsIOError());
  REQUIRE(follow(LogKind::kWal, kMaxManifestFileBytes + 1).IsIOError());
}

TEST_CASE("Records about the log are remembered or refused",
          "[format][rocksdb]") {
  const std::string data = PhysicalRecord(1, "data");
  const std::string known = PhysicalRecord(10, std::string(12, 't')) +
                            PhysicalRecord(130, "info") +
                            PhysicalRecord(200, "of the future");
  const Followed followed = Follow(known + data);
  REQUIRE_OK(followed.status);
  REQUIRE(followed.records == std::vector<std::string>{"data"});
  REQUIRE(followed.meta_types == std::set<uint8_t>{10, 130, 200});
  for (const std::string& bad :
       {PhysicalRecord(12, "x"), PhysicalRecord(127, "x"),
        PhysicalRecord(9, std::string("\4\0\0\0", 4))}) {
    const Followed refused = Follow(bad + data);
    REQUIRE(refused.status.IsNotSupported());
    REQUIRE(refused.records.empty());
  }
  // Such records at places where they are not allowed.
  const std::string zstd = PhysicalRecord(9, std::string("\7\0\0\0", 4));
  for (const std::string& bad :
       {data + zstd + data, data + PhysicalRecord(10, "12345") + data,
        data + PhysicalRecord(2, "part") + PhysicalRecord(130, "info") +
            PhysicalRecord(4, "rest"),
        data + PhysicalRecord(3, "middle") + data,
        data + PhysicalRecord(2, "part") + data,
        data + PhysicalRecord(5, "recyclable")}) {
    const Followed stopped = Follow(bad);
    REQUIRE_OK(stopped.status);
    REQUIRE(stopped.records.size() == 1);
    REQUIRE(stopped.end == data.size());
    REQUIRE(stopped.stopped_inside);
  }
}

TEST_CASE("A follower reads of a damaged WAL what RocksDB recovers",
          "[format][rocksdb]") {
  const bool recycled = GENERATE(false, true);
  const bool compressed = GENERATE(false, true);
  const ScratchDir dir;
  std::mt19937_64 random(11);
  uint64_t wal_number = 0;
  std::string wal;
  {
    WritingDb db(dir / "db", WalOptions(recycled, compressed));
    for (int life = 0; recycled && life < 3; ++life) {
      db.WriteMany(60);
      db.Flush();
    }
    db.WriteMany(60);
    wal_number = db.WalNumber();
    wal = db.Wal();
    std::filesystem::copy(dir / "db", dir / "crashed",
                          std::filesystem::copy_options::recursive);
  }
  rocksdb::Options options(WalOptions(recycled, compressed), test::Quiet());
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  options.recycle_log_file_num = 0;
  size_t shortest = SIZE_MAX;
  for (int round = 0; round < 25; ++round) {
    std::string damaged = wal;
    if (round % 3 == 0) {
      damaged.resize(random() % wal.size());
    } else {
      damaged[random() % wal.size()] ^= static_cast<char>(1 + random() % 255);
    }
    const Followed followed = Follow(damaged, LogKind::kWal, wal_number);
    REQUIRE_OK(followed.status);
    shortest = std::min(shortest, followed.records.size());

    std::filesystem::remove_all(dir / "copy");
    std::filesystem::copy(dir / "crashed", dir / "copy");
    std::ofstream(dir / "copy/" + WalName(wal_number), std::ios::binary)
        << damaged;
    std::unique_ptr<rocksdb::DB> db;
    REQUIRE_OK(
        rocksdb::DB::OpenForReadOnly(options, dir / "copy", IntoDb(&db)));
    size_t recovered = 0;
    const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator({}));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      ++recovered;
    }
    // Keys that were written before this WAL are in tables.
    const size_t in_tables = recycled ? 180 : 0;
    INFO("round " << round << " of " << damaged.size() << " bytes");
    REQUIRE(recovered - in_tables == followed.records.size());
  }
  REQUIRE(shortest < 30);
}

}  // namespace sstferry::log_follower_test
