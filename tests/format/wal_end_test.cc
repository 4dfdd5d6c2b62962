// The end of the WALs: the end of the newest one that has a record. Newer files
// without a record do not count.
#include "format/rocksdb/wal_end.h"

#include <map>
#include <string>
#include <vector>

#include "format/history.h"
#include "tests/support/catch.h"
#include "tests/support/log_bytes.h"

namespace sstferry::wal_end_test {
namespace {

using rocksdb::Slice;
using rocksdb::Status;
using test::PhysicalRecord;

// Returns the record that says that a log is compressed with zstd.
std::string Compression() {
  return PhysicalRecord(9, std::string("\7\0\0\0", 4));
}

WalEnd EndOf(const std::map<uint64_t, std::string>& wals, int* opened) {
  std::vector<CloneFile> files = {{CloneFileKind::kManifest, 99, 10, 10}};
  for (const auto& [number, bytes] : wals) {
    files.push_back({CloneFileKind::kWal, number, bytes.size(), bytes.size()});
  }
  WalEnd end;
  REQUIRE_OK(FindWalEnd(
      files,
      [&](const CloneFile& file, std::unique_ptr<ByteSource>* wal) {
        ++*opened;
        *wal = std::make_unique<SliceSource>(wals.at(file.number));
        return Status::OK();
      },
      &end));
  return end;
}

TEST_CASE("The WALs end with the newest one that has a record", "[format]") {
  const std::string one = PhysicalRecord(1, "record");
  int opened = 0;
  REQUIRE(EndOf({}, &opened) == WalEnd());
  REQUIRE(EndOf({{4, one}, {8, one + one}}, &opened) ==
          WalEnd{8, 2 * one.size()});
  REQUIRE(opened == 1);
  // A WAL that is empty, or has only a record about compression, is ignored.
  REQUIRE(EndOf({{4, one}, {8, ""}, {9, Compression()}}, &opened) ==
          WalEnd{4, one.size()});
  REQUIRE(opened == 3);
  REQUIRE(EndOf({{4, ""}, {8, Compression()}}, &opened) == WalEnd{4, 0});
  // Half a record is ignored.
  REQUIRE(EndOf({{4, one}, {8, PhysicalRecord(2, "half of it")}}, &opened) ==
          WalEnd{4, one.size()});
}

// The history of a database, as a target may have followed it.
class Known : public History {
 public:
  const std::string& database_id() const override { return id; }
  uint64_t manifest_number() const override { return 5; }
  Status ManifestBegin(uint64_t bytes, FileBegin* begin,
                       Digest128* digest) const override {
    *begin = bytes > manifest.size() ? FileBegin::kShort : FileBegin::kKnown;
    if (*begin == FileBegin::kKnown) {
      *digest = DigestOf(Slice(manifest.data(), bytes));
    }
    return Status::OK();
  }
  Status WalBegin(uint64_t number, uint64_t bytes, FileBegin* begin,
                  Digest128* digest) const override {
    *begin = number != 8           ? FileBegin::kGone
             : bytes > wal.size()  ? FileBegin::kShort
                                   : FileBegin::kKnown;
    if (*begin == FileBegin::kKnown) {
      *digest = DigestOf(Slice(wal.data(), bytes));
    }
    return Status::OK();
  }
  Status IsWalFlushed(uint64_t number, uint64_t,
                      bool* is_flushed) const override {
    *is_flushed = number == 4;
    return Status::OK();
  }
  std::string id = "the database";
  std::string manifest = "manifest";
  std::string wal = "records";
};

TEST_CASE("Only the same id, MANIFEST and WAL are the same history",
          "[format]") {
  Known known;
  FollowPosition at{known.id, 5, 4, 8, DigestOf("manifest"), 8, 7,
                    DigestOf("records")};
  const auto standing = [&] {
    Standing found = Standing::kAhead;
    REQUIRE_OK(FindStanding(at, known, &found));
    return found;
  };
  REQUIRE(standing() == Standing::kSame);
  known.wal += ", and more";
  known.manifest += ", and more";
  REQUIRE(standing() == Standing::kSame);
  SECTION("another id") {
    known.id = "another";
    REQUIRE(standing() == Standing::kAnother);
  }
  SECTION("an unknown id equals nothing") {
    known.id.clear();
    at.database_id.clear();
    REQUIRE(standing() == Standing::kAnother);
  }
  SECTION("another MANIFEST") {
    at.manifest_number = 6;
    REQUIRE(standing() == Standing::kAnother);
  }
  SECTION("other bytes after the cut, which were compared") {
    known.manifest[6] = 'X';
    REQUIRE(standing() == Standing::kAnother);
  }
  SECTION("a MANIFEST that is shorter") {
    known.manifest.resize(7);
    REQUIRE(standing() == Standing::kAhead);
  }
  SECTION("other records of one size") {
    known.wal = "RECORDS";
    REQUIRE(standing() == Standing::kAnother);
  }
  SECTION("a WAL that is shorter") {
    known.wal.resize(6);
    REQUIRE(standing() == Standing::kAhead);
  }
  SECTION("a missing WAL proves nothing") {
    at.wal_number = 7;
    REQUIRE(standing() == Standing::kNotHeld);
  }
  SECTION("a missing WAL that the same MANIFEST calls flushed is accepted") {
    at.wal_number = 4;
    REQUIRE(standing() == Standing::kSame);
  }
  SECTION("a target without WALs") {
    at.wal_number = 0;
    REQUIRE(standing() == Standing::kSame);
  }
}

}  // namespace
}  // namespace sstferry::wal_end_test
