// Feeds hostile bytes to the readers of RocksDB's logs and MANIFESTs: none may
// crash them or take much memory.
#include <zstd.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "format/rocksdb/log_follower.h"
#include "format/rocksdb/manifest_reader.h"
#include "format/rocksdb/wal_facts.h"
#include "tests/format/allocations.h"
#include "tests/format/golden_files.h"
#include "tests/support/catch.h"
#include "tests/support/log_bytes.h"

namespace sstferry::rocksdb_hostile_test {

using rocksdb::Slice;
using rocksdb::Status;
using test::Follow;
using test::Followed;
using test::PhysicalRecord;

namespace {

using Random = std::mt19937_64;

// Returns the logical records of the golden files with names that begin with
// `kind`.
std::vector<std::string> GoldenRecords(const std::string& kind,
                                       LogKind log_kind) {
  std::vector<std::string> records;
  for (const auto& entry : std::filesystem::directory_iterator(
           TestsFolder() / "golden" / "rocksdb")) {
    if (entry.path().extension() == ".hex" &&
        entry.path().filename().string().rfind(kind, 0) == 0) {
      const Golden golden = ReadGolden(entry.path());
      const Followed followed = Follow(golden.bytes, log_kind,
                                       std::stoull(golden.notes.at("number")));
      records.insert(records.end(), followed.records.begin(),
                     followed.records.end());
    }
  }
  REQUIRE(records.size() > 5);
  return records;
}

// Damages a few places: changes single bytes or lengths, cuts, inserts.
void Mutate(Random* random, std::string* bytes) {
  for (uint64_t n = 1 + (*random)() % 3; n > 0 && !bytes->empty(); --n) {
    const size_t at = (*random)() % bytes->size();
    switch ((*random)() % 5) {
      case 0:
        (*bytes)[at] = static_cast<char>((*random)());
        break;
      case 1:
        for (size_t i = at; i < std::min(at + 5, bytes->size()); ++i) {
          (*bytes)[i] = i < at + 4 ? '\xff' : '\x0f';
        }
        break;
      case 2:
        bytes->resize(at);
        break;
      case 3:
        bytes->insert(at, 1 + (*random)() % 32, '\0');
        break;
      default:
        (*bytes)[at] ^= static_cast<char>(1u << ((*random)() % 8));
        break;
    }
  }
}

// Requires that `read` allocates at most a multiple of its input.
template <typename Read>
Status WithinBounds(const Slice& input, Read read) {
  const size_t before = AllocatedBytes();
  const Status status = read(input);
  const size_t allocated = AllocatedBytes() - before;
  if (allocated > 64 * input.size() + 16384) {
    FAIL(input.size() << " bytes took " << allocated << " bytes of memory");
  }
  return status;
}

Status AddToManifest(const Slice& record) {
  ManifestReader reader;
  return reader.Add(record);
}

Status AddToFacts(const Slice& record) {
  WalFacts facts;
  return facts.Add(1, record);
}

// Reads every truncation and many mutations of every record: some are valid,
// most are refused.
void Survive(const std::vector<std::string>& records,
             Status (*add)(const Slice&)) {
  Random random(5);
  size_t good = 0;
  size_t bad = 0;
  const auto count = [&](const std::string& bytes) {
    ++(WithinBounds(bytes, add).ok() ? good : bad);
  };
  for (const std::string& record : records) {
    for (size_t size = 0; size < record.size(); ++size) {
      count(record.substr(0, size));
    }
  }
  for (int i = 0; i < 100000; ++i) {
    std::string bytes = records[random() % records.size()];
    Mutate(&random, &bytes);
    count(bytes);
  }
  INFO(good << " good, " << bad << " bad");
  REQUIRE(good > 1000);
  REQUIRE(bad > 10000);
}

}  // namespace

TEST_CASE("Mutated version edits are read or refused within memory bounds",
          "[format][rocksdb][corruption]") {
  Survive(GoldenRecords("manifest", LogKind::kManifest), AddToManifest);
}

TEST_CASE("A compressed MANIFEST is refused within memory bounds",
          "[format][rocksdb][corruption]") {
  std::string edits;
  while (edits.size() < (16u << 20)) {
    edits.append("\6\0\5", 3);  // deletes table 5 of level 0
  }
  std::string small(ZSTD_compressBound(edits.size()), '\0');
  small.resize(ZSTD_compress(small.data(), small.size(), edits.data(),
                             edits.size(), /*compressionLevel=*/1));
  REQUIRE(small.size() < 30'000);
  const std::string log = PhysicalRecord(9, std::string("\7\0\0\0", 4)) +
                          PhysicalRecord(1, small);
  const Status status = WithinBounds(log, [](const Slice& bytes) {
    ManifestReader reader;
    return reader.Follow(SliceSource(bytes));
  });
  REQUIRE(status.IsNotSupported());
}

TEST_CASE("A version edit with many small items is refused within its memory",
          "[format][rocksdb][corruption]") {
  const std::string key = std::string(1, '\10') + std::string(8, 'k');
  const std::vector<std::string> items{
      std::string("\7\1\5\1", 4) + key + key,  // a table
      std::string("\6\1\5", 3),               // a deleted table
      std::string("\x90\3\5\1\1\0\0\0", 8),   // a blob file
      std::string("\x91\3\5\1\1\0", 6),       // garbage in a blob file
      std::string("\x87\x40\2\5\1", 5)};       // a WAL
  constexpr uint64_t kMost = 1 << 20;
  for (const std::string& item : items) {
    INFO(Slice(item).ToString(true));
    VersionEdit one;
    REQUIRE_OK(DecodeVersionEdit(item, &one, kMost));
    std::string record;
    while (record.size() < 2 * kMost) {
      record += item;
    }
    VersionEdit edit;
    const size_t before = AllocatedBytes();
    const Status status = DecodeVersionEdit(record, &edit, kMost);
    REQUIRE(status.IsNotSupported());
    // A vector that grows allocates its bytes several times.
    REQUIRE(AllocatedBytes() - before < 6 * kMost);
  }
}

// A MANIFEST with one record that does not end.
class EndlessRecord : public ByteSource {
 public:
  Status Read(uint64_t offset, size_t n, std::string* /*scratch*/,
              Slice* out) const override {
    REQUIRE(n == test::kLogBlockBytes);
    *out = offset == 0 ? first_ : middle_;
    return Status::OK();
  }
  uint64_t size() const override { return 2 * kMaxManifestMemoryBytes; }

 private:
  const std::string payload_ = std::string(test::kLogBlockBytes - 7, '\0');
  const std::string first_ = PhysicalRecord(2, payload_);
  const std::string middle_ = PhysicalRecord(3, payload_);
};

TEST_CASE("A MANIFEST with a record above its limit is refused",
          "[format][rocksdb][corruption][.slow]") {
  ManifestReader reader;
  const Status status = reader.Follow(EndlessRecord());
  INFO(status.ToString());
  REQUIRE(status.IsNotSupported());
  REQUIRE(status.ToString().find("expected at most 536870912 bytes") !=
          std::string::npos);
}

TEST_CASE("Mutated write batches are read or refused within memory bounds",
          "[format][rocksdb][corruption]") {
  Survive(GoldenRecords("wal", LogKind::kWal), AddToFacts);
}

TEST_CASE("Mutated logs yield only whole records within memory bounds",
          "[format][rocksdb][corruption]") {
  Random random(6);
  size_t whole = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           TestsFolder() / "golden" / "rocksdb")) {
    if (entry.path().extension() != ".hex") {
      continue;
    }
    const Golden golden = ReadGolden(entry.path());
    const uint64_t number = std::stoull(golden.notes.at("number"));
    const Followed sound = Follow(golden.bytes, LogKind::kWal, number);
    for (int i = 0; i < 5000; ++i) {
      std::string bytes = golden.bytes;
      Mutate(&random, &bytes);
      LogFollower follower(LogKind::kWal, number);
      size_t handed_out = 0;
      const size_t before = AllocatedBytes();
      follower
          .Follow(SliceSource(bytes),
                  [&](const Slice& record, uint64_t) {
                    handed_out += std::count(sound.records.begin(),
                                             sound.records.end(),
                                             record.ToString()) > 0
                                      ? 1
                                      : 1000;
                    return Status::OK();
                  })
          .PermitUncheckedError();
      // One block of a zstd stream, and its decompressed bytes.
      REQUIRE(AllocatedBytes() - before < 64 * bytes.size() + (512 << 10));
      REQUIRE(handed_out <= sound.records.size());
      REQUIRE(follower.end() <= bytes.size());
      whole += handed_out == sound.records.size() ? 1 : 0;
    }
  }
  REQUIRE(whole > 0);
}

TEST_CASE("A record that decompresses to more than the bound is damage",
          "[format][rocksdb][corruption][.slow]") {
  // 16 MiB of zeros, a hundred times over, in one logical record.
  const std::string zeros(16 << 20, '\0');
  std::string bomb(ZSTD_compressBound(zeros.size()), '\0');
  bomb.resize(ZSTD_compress(bomb.data(), bomb.size(), zeros.data(),
                            zeros.size(), 3));
  std::string log = PhysicalRecord(9, std::string("\7\0\0\0", 4));
  std::string stream;
  for (int i = 0; i < 100; ++i) {
    stream += bomb;
  }
  for (size_t at = 0; at < stream.size();) {
    const size_t room =
        test::kLogBlockBytes - log.size() % test::kLogBlockBytes - 7;
    const std::string part = stream.substr(at, room);
    log += PhysicalRecord(at == 0 ? 2 : 3, part);
    at += part.size();
  }
  REQUIRE(Follow(log).status.IsCorruption());
}

}  // namespace sstferry::rocksdb_hostile_test
