// Damage of every kind of file of a clone is found before CURRENT is written.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "format/end_state.h"
#include "format/rocksdb/log_follower.h"
#include "pipeline/pull/clone_finish.h"
#include "pipeline/pull/file_check.h"
#include "tests/support/catch.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/test_db.h"

namespace sstferry::test::clone_damage_test {
namespace {

namespace fs = std::filesystem;
using rocksdb::FileSystem;
using rocksdb::Slice;
using rocksdb::Status;

std::string BytesOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return BytesIn(in);
}

void Fill(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

uint64_t RecordsEnd(const CloneFile& file, const std::string& bytes) {
  const bool is_wal = file.kind == CloneFileKind::kWal;
  LogFollower follower(is_wal ? LogKind::kWal : LogKind::kManifest,
                       is_wal ? file.number : 0);
  REQUIRE_OK(follower.Follow(SliceSource(Slice(bytes)),
                             [](const Slice&, uint64_t) {
                               return Status::OK();
                             }));
  return follower.end();
}

// The files of a small database, as a clone has received them.
class Received {
 public:
  Received() {
    rocksdb::ColumnFamilyOptions options = Quiet();
    options.enable_blob_files = true;
    options.min_blob_size = 100;
    {
      OpenDb db(dir_ / "source", OneFamily(options));
      for (int i = 0; i < 30; ++i) db.Put(NumberedKey(i), RandomBytes(40, i));
      db.Put("blob", RandomBytes(200, 1));
      db.Flush();
      for (int i = 0; i < 5; ++i) db.Put(NumberedKey(i), "only in the WAL");
      fs::create_directory(dir_ / "db");
      fs::create_directory(dir_ / "staging");
      Take();
    }
    clone_.unit_bytes = 1u << 20;
    std::vector<Part> units;
    REQUIRE_OK(CutIntoUnits(clone_.files, clone_.unit_bytes, &units));
    layout_ = std::make_unique<CloneLayout>(clone_, units, dir_ / "db",
                                            dir_ / "staging");
    for (const CloneFile& file : clone_.files) {
      Fill(layout_->PathOf(file), BytesOf(dir_ / "source/" +
                                          CloneFileName(file)));
    }
  }

  const CloneFile& file(CloneFileKind kind) const {
    return *layout_->Find(kind);
  }
  std::string PathOf(const CloneFile& file) const {
    return layout_->PathOf(file);
  }
  Status Check(const CloneFile& file) const {
    bool unchecked = false;
    const Status status = CheckClonedFile(FileSystem::Default().get(),
                                          PathOf(file), file, {}, &unchecked);
    REQUIRE_FALSE(unchecked);
    return status;
  }
  Status Finish() const {
    FinishedClone finished;
    return FinishClone(*layout_, /*new_id=*/std::nullopt, RocksDbRelease(), {},
                       FileSystem::Default().get(), &finished);
  }

 private:
  void Take() {
    for (const auto& entry : fs::directory_iterator(dir_ / "source")) {
      CloneFile file;
      if (!ParseCloneFileName(entry.path().filename(), &file) ||
          entry.file_size() == 0) {
        continue;
      }
      file.bytes = entry.file_size();
      if (file.kind == CloneFileKind::kWal ||
          file.kind == CloneFileKind::kManifest) {
        file.records_end = RecordsEnd(file, BytesOf(entry.path()));
      }
      clone_.files.push_back(file);
    }
  }

  const ScratchDir dir_;
  FileSet clone_;
  std::unique_ptr<CloneLayout> layout_;
};

TEST_CASE("A flipped bit of a table, a blob file or a WAL is found when the "
          "file has come", "[pipeline][clone][corruption]") {
  const Received received;
  const auto kind = GENERATE(CloneFileKind::kTable, CloneFileKind::kBlob,
                             CloneFileKind::kWal);
  const CloneFile& file = received.file(kind);
  const std::string path = received.PathOf(file);
  const std::string bytes = BytesOf(path);
  REQUIRE_OK(received.Check(file));
  for (size_t at = 0; at < bytes.size(); at += 3) {
    // Two places have no checksum: the header of a blob file (it has only a
    // magic), and the version in a table's footer.
    const bool has_none =
        (kind == CloneFileKind::kBlob && at < 30) ||
        (kind == CloneFileKind::kTable && at + 12 >= bytes.size() &&
         at + 8 < bytes.size());
    if (has_none) {
      continue;
    }
    std::string bad = bytes;
    bad[at] ^= static_cast<char>(1u << (at % 8));
    Fill(path, bad);
    INFO(CloneFileName(file) << " at byte " << at);
    REQUIRE(EndStateOf(received.Check(file)) == EndState::kCorrupt);
  }
}

TEST_CASE("A flipped bit of a MANIFEST is found before CURRENT is written",
          "[pipeline][clone][corruption]") {
  const Received received;
  const std::string path =
      received.PathOf(received.file(CloneFileKind::kManifest));
  const std::string bytes = BytesOf(path);
  REQUIRE_OK(received.Finish());
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string bad = bytes;
    bad[at] ^= static_cast<char>(1u << (at % 8));
    Fill(path, bad);
    INFO(at);
    REQUIRE(EndStateOf(received.Finish()) == EndState::kCorrupt);
  }
}

TEST_CASE("A file of a clone that is too short is found",
          "[pipeline][clone][corruption]") {
  const Received received;
  const auto kind = GENERATE(CloneFileKind::kTable, CloneFileKind::kBlob,
                             CloneFileKind::kWal, CloneFileKind::kManifest);
  const CloneFile& file = received.file(kind);
  const std::string path = received.PathOf(file);
  fs::resize_file(path, fs::file_size(path) - 1);
  const bool is_manifest = kind == CloneFileKind::kManifest;
  REQUIRE(EndStateOf(is_manifest ? received.Finish()
                                 : received.Check(file)) ==
          EndState::kCorrupt);
}

}  // namespace
}  // namespace sstferry::test::clone_damage_test
