#include "pipeline/follow/standby.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "format/clone_file.h"
#include "format/coding.h"
#include "format/end_state.h"
#include "format/file_name.h"
#include "format/health_file.h"
#include "format/history.h"
#include "format/rocksdb/manifest_reader.h"
#include "format/rocksdb/manifest_state.h"
#include "format/rocksdb/wal_end.h"
#include "pipeline/base/database_name.h"
#include "pipeline/base/file_lock.h"
#include "pipeline/base/file_source.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/base/other_accounts.h"
#include "pipeline/base/standby_files.h"
#include "pipeline/base/standby_record.h"
#include "pipeline/base/this_machine.h"
#include "pipeline/disk/durable.h"
#include "pipeline/snapshot/posix_files.h"
#include "pipeline/snapshot/snapshot_manifest.h"
#include "pipeline/snapshot/snapshot_wals.h"
#include "sstferry/descriptor.h"
#include "sstferry/follow.h"

namespace sstferry {
namespace {

using rocksdb::FileOptions;
using rocksdb::IOOptions;
using rocksdb::Slice;
using rocksdb::Status;
using std::chrono::steady_clock;

// If a WAL is in both directories, Carry() compares only the last
// kComparedBytes of the bytes that both files have. This is enough: only one
// process writes a WAL, so two files of this WAL cannot differ earlier and be
// equal here, unless one of the files is damaged. The checksums of the records
// detect such damage.
constexpr uint64_t kComparedBytes = 64u << 10;
// CompareBytes() reads this many bytes at once.
constexpr uint64_t kCompareBytes = 1u << 20;
// Like kLostInfix, for directories that are kept although it is unknown whether
// the source lost anything.
constexpr char kUnprovenInfix[] = ".sstferry-unproven-";

std::string WalName(uint64_t number) { return NumberedName(number, ".log"); }

Status ListWals(const std::string& dir, std::map<uint64_t, std::string>* wals) {
  std::vector<std::string> names;
  RETURN_IF_ERROR(ListDirectory(dir, &names));
  *wals = WalsIn(names);
  return Status::OK();
}

Gap GapAt(const std::string& where, const Slice& record, WalStep step) {
  return {step == WalStep::kBlobIndex ? CutReason::kBlobIndex
                                      : CutReason::kSequenceGap,
          where + ", before sequence " +
              std::to_string(DecodeFixed64(record.data()))};
}

Status BytesOf(rocksdb::FileSystem* file_system, const std::string& path,
               uint64_t* bytes) {
  const Status status =
      file_system->GetFileSize(path, IOOptions(), bytes, nullptr);
  return WithContext(status, EndStateOf(status), path);
}

Status NoStandby(const std::string& dir) {
  return MakeStatus(EndState::kRefused,
                    dir + ": expected a standby, found no " +
                        std::string(kFollowFileName),
                    MendStandbyCommand("SOURCE", dir));
}

// Returns true if `dir` is certainly missing or empty.
bool IsFree(const std::string& dir) {
  namespace fs = std::filesystem;
  std::error_code error;
  return fs::symlink_status(dir, error).type() == fs::file_type::not_found ||
         (fs::is_directory(dir, error) && fs::is_empty(dir, error));
}

Status ShortWal(const std::string& dir, const FollowMark& mark,
                uint64_t bytes) {
  return MakeStatus(EndState::kCorrupt,
                    dir + "/" + WalName(mark.wal_number) +
                        ": expected at least the " +
                        std::to_string(mark.wal_bytes) +
                        " bytes that were durable, found " +
                        std::to_string(bytes));
}

// Creates an empty file for marks. The file need not be durable: if a crash
// removes it, only the next scan takes longer.
Status MakeMarks(rocksdb::FileSystem* file_system, const std::string& dir,
                 const Access& access) {
  const std::string path = dir + "/" + kFollowMarkName;
  std::unique_ptr<rocksdb::FSWritableFile> file;
  Status status =
      file_system->NewWritableFile(path, FileOptions(), &file, nullptr);
  if (status.ok()) {
    status = file->Append(
        std::string(kFollowMarkSlots * kFollowMarkSlotBytes, '\0'),
        IOOptions(), nullptr);
  }
  if (file != nullptr) {
    const Status closed = file->Close(IOOptions(), nullptr);
    if (status.ok()) status = closed;
  }
  if (status.ok()) status = SetAccess(path, access);
  return WithContext(status, EndStateOf(status), "write " + path);
}

Status WriteMark(rocksdb::FileSystem* file_system, const std::string& dir,
                 const FollowMark& mark) {
  const std::string path = dir + "/" + kFollowMarkName;
  std::string slot;
  EncodeFollowMark(mark, &slot);
  std::unique_ptr<rocksdb::FSRandomRWFile> file;
  Status status =
      file_system->NewRandomRWFile(path, FileOptions(), &file, nullptr);
  if (status.ok()) {
    status = file->Write(mark.count % kFollowMarkSlots * kFollowMarkSlotBytes,
                         slot, IOOptions(), nullptr);
  }
  if (file != nullptr) {
    const Status closed = file->Close(IOOptions(), nullptr);
    if (status.ok()) status = closed;
  }
  return WithContext(status, EndStateOf(status), "write " + path);
}

// The history of a database. Reads it from the files of a directory.
class HistoryOfFiles : public History {
 public:
  HistoryOfFiles(rocksdb::FileSystem* file_system, std::string dir,
                 const FollowFile& record)
      : file_system_(file_system), dir_(std::move(dir)), record_(record) {}
  const std::string& database_id() const override {
    return record_.source_database_id;
  }
  uint64_t manifest_number() const override { return record_.manifest_number; }
  Status ManifestBegin(uint64_t bytes, FileBegin* begin,
                       Digest128* digest) const override {
    return Begin(ManifestNameOf(record_), bytes, begin, digest);
  }
  Status WalBegin(uint64_t number, uint64_t bytes, FileBegin* begin,
                  Digest128* digest) const override {
    return Begin(WalName(number), bytes, begin, digest);
  }
  Status IsWalFlushed(uint64_t number, uint64_t manifest_bytes,
                      bool* is_flushed) const override {
    std::unique_ptr<FileSource> source;
    RETURN_IF_ERROR(FileSource::Open(
        file_system_, dir_ + "/" + ManifestNameOf(record_), &source));
    return IsFlushedBy(*source, manifest_bytes, number, is_flushed);
  }

 private:
  Status Begin(const std::string& name, uint64_t bytes, FileBegin* begin,
               Digest128* digest) const {
    const std::string path = dir_ + "/" + name;
    *begin = FileBegin::kGone;
    FileId named;
    RETURN_IF_ERROR(FileIdOfName(path, &named));
    if (!named.exists()) {
      return Status::OK();
    }
    uint64_t found = 0;
    RETURN_IF_ERROR(BytesOf(file_system_, path, &found));
    *begin = found < bytes ? FileBegin::kShort : FileBegin::kKnown;
    if (found < bytes) {
      return Status::OK();
    }
    std::unique_ptr<FileSource> source;
    RETURN_IF_ERROR(FileSource::Open(file_system_, path, &source));
    Digest128Stream stream;
    RETURN_IF_ERROR(AddToDigest(*source, 0, bytes, &stream));
    *digest = stream.Finish();
    return Status::OK();
  }

  rocksdb::FileSystem* const file_system_;
  const std::string dir_;
  const FollowFile& record_;
};

// Sets *has_record to true if a WAL of the directory has a record and a number
// above `number`.
Status HasLaterRecord(rocksdb::FileSystem* file_system, const std::string& dir,
                      const std::map<uint64_t, std::string>& wals,
                      uint64_t number, bool* has_record) {
  *has_record = false;
  for (auto wal = wals.upper_bound(number);
       wal != wals.end() && !*has_record; ++wal) {
    std::unique_ptr<FileSource> source;
    RETURN_IF_ERROR(
        FileSource::Open(file_system, dir + "/" + wal->second, &source));
    RETURN_IF_ERROR(
        HasRecord(*source, wal->first, source->size(), has_record));
  }
  return Status::OK();
}

// Sets *same to true if two files have the same bytes from `begin` to `end`.
Status CompareBytes(rocksdb::FileSystem* file_system, const std::string& a,
                    const std::string& b, uint64_t begin, uint64_t end,
                    bool* same) {
  std::unique_ptr<FileSource> sources[2];
  RETURN_IF_ERROR(FileSource::Open(file_system, a, &sources[0]));
  RETURN_IF_ERROR(FileSource::Open(file_system, b, &sources[1]));
  *same = true;
  std::string scratch[2];
  for (uint64_t at = begin; at < end && *same; at += kCompareBytes) {
    Slice found[2];
    for (int i = 0; i < 2; ++i) {
      RETURN_IF_ERROR(sources[i]->Read(
          at, static_cast<size_t>(std::min(end - at, kCompareBytes)),
          &scratch[i], &found[i]));
    }
    *same = found[0] == found[1];
  }
  return Status::OK();
}

// Returns those directories in `recorded` that exist next to `dir` and whose
// names begin with the name of `dir`. The others belong to another standby, if
// `dir` is a copy of it.
std::vector<std::string> OwnDirs(const std::string& dir,
                                 const std::string& infix,
                                 const std::vector<std::string>& recorded) {
  namespace fs = std::filesystem;
  const std::string own = fs::path(dir).filename().string();
  std::vector<std::string> dirs;
  for (const std::string& path : recorded) {
    const std::string name = fs::path(path).filename().string();
    if (name.starts_with(own + infix)) {
      const std::string beside = dir + name.substr(own.size());
      FileId found;
      const bool is_known = FileIdOfName(beside, &found).ok();
      if (!is_known || found.exists()) dirs.push_back(beside);
    }
  }
  return dirs;
}

// Returns a directory next to `dir` in which an unfinished cut has begun to
// keep the files of `dir`. Such a directory contains only hard links to these
// files. Ignores the directories in `recorded`, because they are complete and
// must not be filled again, even if they are empty now. Returns "" if there is
// no such directory.
std::string FindBegun(const std::string& dir, const std::string& infix,
                      const std::vector<std::string>& recorded) {
  namespace fs = std::filesystem;
  const std::string own = fs::path(dir).filename().string() + infix;
  const fs::path parent = fs::path(dir).parent_path();
  std::vector<std::string> names;
  ListDirectory(parent.empty() ? "." : parent.string(), &names)
      .PermitUncheckedError();  // error: the caller makes a new directory
  for (const std::string& name : names) {
    const std::string kept = (parent / name).string();
    std::vector<std::string> files;
    const bool is_recorded =
        std::any_of(recorded.begin(), recorded.end(),
                    [&name](const std::string& path) {
                      return fs::path(path).filename() == name;
                    });
    if (name.starts_with(own) && !is_recorded &&
        OpenOwnDirectory(kept).is_open() &&
        ListDirectory(kept, &files).ok() &&
        std::all_of(files.begin(), files.end(), [&](const std::string& file) {
          FileId linked;
          FileId own_file;
          return file.starts_with("CURRENT") ||
                 (FileIdOfName(kept + "/" + file, &linked).ok() &&
                  FileIdOfName(dir + "/" + file, &own_file).ok() &&
                  linked.IsSameFile(own_file));
        })) {
      return kept;
    }
  }
  return "";
}

Status OtherBytes(const std::string& a, const std::string& b, uint64_t end) {
  return MakeStatus(EndState::kCorrupt,
                    a + ": expected the bytes of " + b + " before byte " +
                        std::to_string(end) + ", found others");
}

// Finds the number of the newest OPTIONS file in a directory; 0: no such file.
// RocksDB writes an OPTIONS file whenever it opens a database.
Status FindNewestOptions(const std::string& dir, uint64_t* number) {
  *number = 0;
  std::vector<std::string> names;
  RETURN_IF_ERROR(ListDirectory(dir, &names));
  for (const std::string& name : names) {
    CloneFile file;
    if (ParseCloneFileName(name, &file) &&
        file.kind == CloneFileKind::kOptions) {
      *number = std::max(*number, file.number);
    }
  }
  return Status::OK();
}

// Finds the first sequence number in a WAL. Sets *sequence to 0 if no record of
// the WAL has one.
Status FindFirstSequence(rocksdb::FileSystem* file_system,
                         const std::string& dir, uint64_t number,
                         uint64_t* sequence) {
  *sequence = 0;
  std::unique_ptr<FileSource> source;
  RETURN_IF_ERROR(FileSource::Open(file_system, dir + "/" + WalName(number),
                                   &source));
  LogFollower follower(LogKind::kWal, number);
  WalContinuity continuity(0);
  const Status status =
      follower.Follow(*source, [&](const Slice& record, uint64_t) {
        WalStep step = WalStep::kContinues;
        RETURN_IF_ERROR(continuity.Add(number, record, &step));
        if (!continuity.has_entries()) {
          return Status::OK();
        }
        *sequence = DecodeFixed64(record.data());
        return Status::Aborted("found");
      });
  return *sequence != 0 ? Status::OK() : status;
}

Status ReadManifest(rocksdb::FileSystem* file_system, const std::string& dir,
                    const FollowFile& record, ManifestReader* reader) {
  const std::string path = dir + "/" + ManifestNameOf(record);
  std::unique_ptr<FileSource> source;
  RETURN_IF_ERROR(FileSource::Open(file_system, path, &source));
  const Status status = reader->Follow(*source);
  return WithContext(status, EndStateOf(status), path);
}

bool IsSameTable(const ManifestFile& a, const ManifestFile& b) {
  const bool is_other_id =
      a.has_unique_id && b.has_unique_id && !(a.unique_id == b.unique_id);
  return !is_other_id && a.bytes == b.bytes &&
         a.smallest_sequence == b.smallest_sequence &&
         a.largest_sequence == b.largest_sequence;
}

// Returns true if the two MANIFESTs have different tables with the same number.
// RocksDB never uses a number twice, so neither MANIFEST can then continue the
// other.
bool HaveOtherTables(const ManifestState& a, const ManifestState& b) {
  std::map<uint64_t, const ManifestFile*> tables;
  for (const auto& [id, family] : a.families) {
    for (const auto& [number, table] : family.files) tables[number] = &table;
  }
  for (const auto& [id, family] : b.families) {
    for (const auto& [number, table] : family.files) {
      const auto found = tables.find(number);
      if (found != tables.end() && !IsSameTable(*found->second, table)) {
        return true;
      }
    }
  }
  return false;
}

// Receives one record of a WAL, and the offset after the record.
using OnWalRecord = std::function<Status(uint64_t wal, const Slice& record,
                                         uint64_t end)>;
// Receives the offset after the last record of a WAL, and the size of the file.
using OnWalEnd =
    std::function<Status(uint64_t wal, uint64_t end, uint64_t bytes)>;

// Reads the WALs in `dir`. If `from_mark` is true, reads only the bytes after
// the newest mark. Reads from the disk, not from the page cache, because an
// earlier follower may have failed to sync the WALs. Sets *end as
// FindStandbyEnd() does, with the sequence number of the mark.
Status ReadWals(rocksdb::FileSystem* file_system, const std::string& dir,
                bool from_mark, const OnWalRecord& on_record,
                const OnWalEnd& on_end, StandbyPosition* end) {
  *end = StandbyPosition();
  // Reads the mark before listing the WALs. A mark that is read later could
  // name a WAL that the list does not have.
  const FollowMark mark = ReadFollowMark(dir);
  std::map<uint64_t, std::string> wals;
  RETURN_IF_ERROR(ListWals(dir, &wals));
  const auto marked = wals.find(mark.wal_number);
  if (mark.wal_number != 0) {
    uint64_t bytes = 0;
    if (marked != wals.end()) {
      RETURN_IF_ERROR(
          BytesOf(file_system, dir + "/" + marked->second, &bytes));
    }
    if (bytes < mark.wal_bytes) {
      return ShortWal(dir, mark, bytes);
    }
    end->last_sequence = mark.last_sequence;
    end->read_micros = mark.read_micros;
    end->judged = mark.judged;
  }
  if (mark.wal_bytes == 0 && !wals.empty()) {
    end->wal_number = wals.begin()->first;  // stays if no WAL has a record
  }
  for (auto wal = wals.lower_bound(from_mark ? mark.wal_number : 0);
       wal != wals.end(); ++wal) {
    std::unique_ptr<FileSource> source;
    RETURN_IF_ERROR(FileSource::OpenFromDisk(
        file_system, dir + "/" + wal->second, &source));
    LogFollower follower(LogKind::kWal, wal->first);
    const bool is_marked = wal->first == mark.wal_number;
    bool has_record = is_marked && mark.wal_bytes > 0;
    const uint64_t begin = is_marked && from_mark ? mark.wal_bytes : 0;
    Status status = StartAt(*source, begin, &follower);
    if (status.ok()) {
      status = follower.Follow(
          *source, [&](const Slice& record, uint64_t record_end) {
            RETURN_IF_ERROR(on_record(wal->first, record, record_end));
            has_record = true;
            return Status::OK();
          });
    }
    if (has_record) {
      end->wal_number = wal->first;
      end->wal_bytes = follower.end();
    }
    if (status.ok() && is_marked && follower.end() < mark.wal_bytes) {
      return ShortWal(dir, mark, follower.end());
    }
    RETURN_IF_ERROR(
        WithContext(status, EndStateOf(status), dir + "/" + wal->second));
    RETURN_IF_ERROR(on_end(wal->first, follower.end(), source->size()));
  }
  return Status::OK();
}

Status OtherThanCut(const std::string& dir, uint64_t wal, uint64_t expected,
                    uint64_t found) {
  return MakeStatus(EndState::kCorrupt,
                    dir + "/" + WalName(wal) +
                        ": expected whole records up to byte " +
                        std::to_string(expected) +
                        ", as in the last cut, found some up to byte " +
                        std::to_string(found));
}

// Truncates a file to `most_bytes` if it is longer. The change is durable.
Status TruncateTo(rocksdb::FileSystem* file_system, const std::string& path,
                  uint64_t most_bytes) {
  uint64_t bytes = 0;
  RETURN_IF_ERROR(BytesOf(file_system, path, &bytes));
  if (bytes <= most_bytes) {
    return Status::OK();
  }
  std::unique_ptr<rocksdb::FSWritableFile> file;
  Status status =
      file_system->ReopenWritableFile(path, FileOptions(), &file, nullptr);
  if (status.ok()) {
    status = file->Truncate(most_bytes, IOOptions(), nullptr);
  }
  if (status.ok()) status = file->Fsync(IOOptions(), nullptr);
  if (file != nullptr) {
    const Status closed = file->Close(IOOptions(), nullptr);
    if (status.ok()) status = closed;
  }
  return WithContext(status, EndStateOf(status), "truncate " + path);
}

}  // namespace

// The WAL to which records are appended.
struct Standby::Wal {
  Wal(uint64_t log_number, std::string file_path)
      : number(log_number),
        path(std::move(file_path)),
        follower(std::make_unique<LogFollower>(LogKind::kWal, log_number)) {}

  const uint64_t number;
  const std::string path;
  // Checks the records that are appended.
  std::unique_ptr<LogFollower> follower;
  // Closed by its last user, because a running Sync() may still use the file
  // when the next WAL begins.
  std::unique_ptr<rocksdb::FSWritableFile> file;
};

Status LockStandby(const std::string& dir, Descriptor* lock) {
  const std::string path = dir + "/" + kFollowFileName;
  Descriptor file = OpenToLock(path);
  if (!file.is_open()) {
    return errno == ENOENT || errno == ENOTDIR
               ? NoStandby(dir)
               : ErrnoStatus(EndState::kRefused, "open", path, errno);
  }
  const Status busy = MakeStatus(
      EndState::kBusy, dir + ": a follower holds " + path +
                           "; stop it first, with SIGTERM");
  const Status locked = LockFile(file.get(), path);
  if (!locked.ok()) {
    return EndStateOf(locked) == EndState::kBusy ? busy : locked;
  }
  // The follower that held the lock may have exchanged the directory with
  // another cut. Then this file is not the standby's lock any more.
  bool is_named = false;
  RETURN_IF_ERROR(IsNamed(file.get(), path, &is_named));
  if (!is_named) {
    return busy;
  }
  *lock = std::move(file);
  return Status::OK();
}

Status FindStandbyEnd(rocksdb::FileSystem* file_system, const std::string& dir,
                      StandbyPosition* end) {
  const auto nothing = [](auto&&...) { return Status::OK(); };
  return ReadWals(file_system, dir, /*from_mark=*/true, nothing, nothing, end);
}

Status ReadStandbyWals(rocksdb::FileSystem* file_system, const std::string& dir,
                       const FollowFile& record, StandbyWals* wals) {
  wals->continuity = std::make_unique<WalContinuity>(0);
  // The cut's WALs that are not read yet: number -> bytes.
  std::map<uint64_t, uint64_t> cut;
  for (const CutWal& wal : record.wals) {
    cut[wal.number] = wal.bytes;
  }
  const uint64_t oldest_of_cut = cut.empty() ? 0 : cut.begin()->first;
  bool is_behind_cut = false;
  uint64_t torn_wal = 0;  // no later WAL may have a record; 0: not set
  const OnWalRecord on_record = [&](uint64_t wal, const Slice& each,
                                    uint64_t end) {
    const auto of_cut = cut.find(wal);
    const bool is_of_cut = of_cut != cut.end() ? end <= of_cut->second
                                               : wal < oldest_of_cut;
    if (!is_behind_cut && !is_of_cut) {
      wals->continuity->BeginBehindCut(record.sequence);
      is_behind_cut = true;
    }
    WalStep step = WalStep::kContinues;
    RETURN_IF_ERROR(wals->continuity->Add(wal, each, &step));
    if (is_behind_cut && step != WalStep::kContinues) {
      return MakeStatus(EndState::kCorrupt,
                        GapAt("records are missing", each, step).note);
    }
    if (torn_wal != 0) {
      return MakeStatus(EndState::kCorrupt,
                        "expected no records after the torn end of " +
                            WalName(torn_wal) + ", found some");
    }
    wals->end.last_sequence = std::max(wals->end.last_sequence,
                                       wals->continuity->last_sequence());
    return Status::OK();
  };
  const OnWalEnd on_end = [&](uint64_t wal, uint64_t end, uint64_t bytes) {
    const auto of_cut = cut.find(wal);
    if (of_cut != cut.end() && end < of_cut->second) {
      return OtherThanCut(dir, wal, of_cut->second, end);
    }
    if (of_cut != cut.end()) cut.erase(of_cut);
    // In a cut, older WALs may end inside a record, as they do at the source.
    if (is_behind_cut && bytes > end) torn_wal = wal;
    return Status::OK();
  };
  RETURN_IF_ERROR(ReadWals(file_system, dir, /*from_mark=*/false, on_record,
                           on_end, &wals->end));
  if (!cut.empty()) {
    return OtherThanCut(dir, cut.begin()->first, cut.begin()->second, 0);
  }
  if (!is_behind_cut) wals->continuity->BeginBehindCut(record.sequence);
  // All records were read, so takes the number from them and not from the mark.
  // In older versions of sstferry, the mark also counts prepared entries that
  // were not committed.
  wals->end.last_sequence = wals->continuity->last_sequence();
  return Status::OK();
}

Status ProveStandby(rocksdb::FileSystem* file_system, const std::string& dir,
                    HealthFile* fault, std::optional<StandbyPosition>* end) {
  std::optional<StandbyPosition> read;
  const Status found = FindStandbyFault(
      file_system, dir, fault, [&](const FollowFile& record) {
        StandbyWals wals;
        RETURN_IF_ERROR(ReadStandbyWals(file_system, dir, record, &wals));
        read = wals.end;
        return Status::OK();
      });
  RETURN_IF_ERROR(found);
  if (fault->fault != ReplicaFault::kNone) read.reset();
  if (end != nullptr) *end = read;
  return Status::OK();
}

Status TrimStandby(rocksdb::FileSystem* file_system, const std::string& dir,
                   const StandbyPosition& end) {
  std::map<uint64_t, std::string> wals;
  RETURN_IF_ERROR(ListWals(dir, &wals));
  for (auto wal = wals.lower_bound(std::max<uint64_t>(end.wal_number, 1));
       wal != wals.end(); ++wal) {
    RETURN_IF_ERROR(
        TruncateTo(file_system, dir + "/" + wal->second,
                   wal->first == end.wal_number ? end.wal_bytes : 0));
  }
  return Status::OK();
}

Status WriteStandbyCurrent(rocksdb::FileSystem* file_system,
                           const std::string& dir, const Access& access) {
  const std::string path = dir + "/CURRENT";
  RETURN_IF_ERROR(WriteDurably(file_system, path, kStandbyCurrent));
  return SetAccess(path, access);
}

Standby::Standby(std::string dir,
                 std::shared_ptr<rocksdb::FileSystem> file_system)
    : dir_(std::move(dir)), file_system_(std::move(file_system)) {}

Standby::~Standby() = default;

Status Standby::Open(const std::string& dir,
                     std::shared_ptr<rocksdb::FileSystem> file_system,
                     std::unique_ptr<Standby>* standby) {
  std::unique_ptr<Standby> opened(new Standby(dir, std::move(file_system)));
  opened->heard_.begun_micros = MicrosNow();
  const bool is_new = IsFree(dir);
  RETURN_IF_ERROR(CheckOnlyRoot(dir, !is_new));
  if (!is_new) {
    std::lock_guard<std::mutex> lock(opened->mu_);
    RETURN_IF_ERROR(LockStandby(dir, &opened->lock_));
    RETURN_IF_ERROR(CheckNotTaken(dir));
    if (!IsStandby(dir)) {
      return MakeStatus(EndState::kRefused,
                        dir + ": expected a standby, found one whose promotion "
                              "was interrupted (CURRENT is there)",
                        "sstferry promote " + ShellWord(dir));
    }
    RETURN_IF_ERROR(opened->Load());
    FileId current;
    RETURN_IF_ERROR(FileIdOfName(dir + "/CURRENT", &current));
    if (!current.exists()) {
      RETURN_IF_ERROR(WriteStandbyCurrent(opened->file_system_.get(), dir,
                                          opened->access_));
    }
  }
  if (!is_new) {
    RETURN_IF_ERROR(opened->Sync());
  }
  *standby = std::move(opened);
  return Status::OK();
}

Status Standby::Adopt(const std::string& dir,
                      std::shared_ptr<rocksdb::FileSystem> file_system,
                      std::unique_ptr<Standby>* standby) {
  std::unique_ptr<Standby> opened(new Standby(dir, std::move(file_system)));
  opened->heard_.begun_micros = MicrosNow();
  RETURN_IF_ERROR(CheckOnlyRoot(dir, /*in_place=*/true));
  {
    std::lock_guard<std::mutex> lock(opened->mu_);
    opened->adopts_ = true;
    RETURN_IF_ERROR(opened->LockAdopted());
  }
  *standby = std::move(opened);
  return Status::OK();
}

Status Standby::LockAdopted() {
  if (!adopts_ || adopted_ != nullptr) {
    return Status::OK();
  }
  auto lock = std::make_unique<DatabaseLock>();
  RETURN_IF_ERROR(WithContext(lock->Take(dir_, /*makes=*/false),
                              EndState::kBusy,
                              "--adopt: the database must be closed"));
  adopted_ = std::move(lock);
  return Status::OK();
}

Status Standby::Load() {
  bool found = false;
  RETURN_IF_ERROR(ReadStandbyRecord(dir_, &found, &record_));
  RETURN_IF_ERROR(AccessBeside(dir_, &access_));
  const FollowMark mark = ReadFollowMark(dir_);
  marks_ = std::max(marks_, mark.count);
  if (heard_.heard_micros == 0) {
    heard_.heard_micros = mark.heard_micros;
    heard_.source_process = mark.source_process;
  }
  marked_heard_ = SourceHeard();
  RETURN_IF_ERROR(LoadWals());
  durable_ = StandbyPosition();
  if (!is_damaged()) {
    RETURN_IF_ERROR(TrimStandby(file_system_.get(), dir_, received_));
  }
  FaultPoint("Standby:TailCut");
  std::map<uint64_t, std::string> wals;
  RETURN_IF_ERROR(ListWals(dir_, &wals));
  older_.clear();
  for (const auto& [number, name] : wals) {
    if (number != received_.wal_number) {
      RETURN_IF_ERROR(
          BytesOf(file_system_.get(), dir_ + "/" + name, &older_[number]));
    }
  }
  RETURN_IF_ERROR(OpenNewest());
  exists_ = true;
  FileId marks;
  RETURN_IF_ERROR(FileIdOfName(dir_ + "/" + kFollowMarkName, &marks));
  return marks.exists()
             ? Status::OK()
             : MakeMarks(file_system_.get(), dir_, access_);
}

// Finds the end of the WALs in DIR. Also reads all records, unless DIR is a new
// cut that has only records which this object has already seen.
Status Standby::LoadWals() {
  const StandbyPosition before = received_;
  const bool is_known =
      std::exchange(carried_all_, false) && continuity_ != nullptr;
  gap_ = {};
  StandbyWals wals;
  const Status status =
      is_known ? FindStandbyEnd(file_system_.get(), dir_, &received_)
               : ReadStandbyWals(file_system_.get(), dir_, record_, &wals);
  // Damage is no error here, because the next cut repairs it.
  if (EndStateOf(status) == EndState::kCorrupt) {
    gap_ = {CutReason::kDamage, MessageOf(status)};
  } else {
    RETURN_IF_ERROR(status);
  }
  if (is_known) {
    received_.last_sequence =
        std::max({received_.last_sequence, before.last_sequence,
                  record_.sequence});
    received_.wal = before.wal;
    received_.closed_micros = before.closed_micros;  // nothing is newer
    return Status::OK();
  }
  received_ = wals.end;
  continuity_ = std::move(wals.continuity);
  digest_ = std::make_unique<Digest128Stream>();
  if (received_.wal_bytes > 0) {
    std::unique_ptr<FileSource> wal;
    RETURN_IF_ERROR(FileSource::Open(
        file_system_.get(), dir_ + "/" + WalName(received_.wal_number), &wal));
    RETURN_IF_ERROR(
        AddToDigest(*wal, 0, received_.wal_bytes, digest_.get()));
    received_.wal = digest_->Finish();
  }
  return Status::OK();
}

Status Standby::OpenNewest() {
  wal_.reset();
  if (received_.wal_number == 0 || is_damaged()) {
    return Status::OK();
  }
  auto wal = std::make_shared<Wal>(
      received_.wal_number, dir_ + "/" + WalName(received_.wal_number));
  std::unique_ptr<FileSource> source;
  RETURN_IF_ERROR(FileSource::Open(file_system_.get(), wal->path, &source));
  RETURN_IF_ERROR(
      StartAt(*source, received_.wal_bytes, wal->follower.get()));
  const Status status = file_system_->ReopenWritableFile(
      wal->path, FileOptions(), &wal->file, nullptr);
  RETURN_IF_ERROR(WithContext(status, EndStateOf(status), wal->path));
  wal_ = std::move(wal);
  return Status::OK();
}

bool Standby::exists() const {
  std::lock_guard<std::mutex> lock(mu_);
  return exists_;
}

bool Standby::adopts() const {
  std::lock_guard<std::mutex> lock(mu_);
  return adopts_;
}

FollowFile Standby::record() const {
  std::lock_guard<std::mutex> lock(mu_);
  return record_;
}

StandbyPosition Standby::received() const {
  std::lock_guard<std::mutex> lock(mu_);
  return received_;
}

FollowPosition Standby::position() const {
  std::lock_guard<std::mutex> lock(mu_);
  return PositionNow();
}

FollowPosition Standby::PositionNow() const {
  FollowPosition position;
  if (!exists_) {
    return position;
  }
  position.database_id = record_.source_database_id;
  position.manifest_number = record_.manifest_number;
  position.cut_bytes = record_.manifest_bytes;
  position.manifest_bytes = record_.manifest_bytes;
  position.manifest = record_.manifest_digest;
  if (received_.judged.manifest_bytes > record_.manifest_bytes) {
    position.manifest_bytes = received_.judged.manifest_bytes;
    position.manifest = received_.judged.manifest;
  }
  position.wal_number = received_.wal_number;
  position.wal_bytes = received_.wal_bytes;
  position.wal = received_.wal;
  return position;
}

Gap Standby::gap() const {
  std::lock_guard<std::mutex> lock(mu_);
  return gap_;
}

StandbyPosition Standby::durable() const {
  std::lock_guard<std::mutex> lock(mu_);
  return durable_;
}

uint64_t Standby::replay_bytes() const {
  std::lock_guard<std::mutex> lock(mu_);
  uint64_t bytes = received_.wal_bytes;
  for (const auto& [number, older] : older_) {
    bytes += older;
  }
  return bytes;
}

Status Standby::CheckUsable() const {
  if (!failed_.ok()) {
    return failed_;
  }
  return exists_ ? CheckOwned() : NoStandby(dir_);
}

// Checks that DIR is still the directory that this object began with. (DIR is
// written and exchanged by its path.) It must be the standby that this object
// has locked. Before the first cut, it must still have no files. If this object
// adopts a database, DIR may now contain another database, which the exchange
// would also keep; but it must not contain a standby.
Status Standby::CheckOwned() const {
  const bool is_locked = lock_.is_open();
  bool is_owned = false;
  if (is_locked) {
    RETURN_IF_ERROR(
        IsNamed(lock_.get(), dir_ + "/" + kFollowFileName, &is_owned));
  } else if (adopts_) {
    is_owned = !IsStandby(dir_);
  } else {
    is_owned = IsFree(dir_);
  }
  if (is_owned) {
    return Status::OK();
  }
  return MakeStatus(EndState::kRefused,
                    dir_ + ": expected " +
                        (is_locked ? "the standby that this follower locked, "
                                     "found another directory, or none"
                                   : "what was there when this follower "
                                     "began, found something else") +
                        "; the follower changes nothing there");
}

Status Standby::Fail(const Status& status) {
  if (!status.ok() && failed_.ok()) {
    failed_ = status;
  }
  return status;
}

// Syncs the newest WAL. After a failure, all later calls fail, because the
// kernel reports lost bytes only once.
Status Standby::SyncWal() {
  RETURN_IF_ERROR(failed_);
  if (wal_ == nullptr) {
    return Status::OK();
  }
  const Status status = wal_->file->Fsync(IOOptions(), nullptr);
  return Fail(WithContext(status, EndStateOf(status), wal_->path));
}

Status Standby::Append(const FollowPosition& asked, const Round& round) {
  std::lock_guard<std::mutex> lock(mu_);
  RETURN_IF_ERROR(CheckUsable());
  if (!(asked == PositionNow()) || gap_.reason != CutReason::kNone) {
    if (!round.end.source_closed) received_.closed_micros = 0;
    return Status::OK();
  }
  for (const WalBytes& log : round.logs) {
    RETURN_IF_ERROR(Fail(AppendTo(log)));
    if (gap_.reason != CutReason::kNone) {
      return Status::OK();
    }
  }
  if (!round.logs.empty() && !(received_.wal == round.end.wal)) {
    gap_ = {CutReason::kNewLife, WalName(received_.wal_number) +
                                     ": the source's bytes differ from the "
                                     "standby's"};
    return Status::OK();
  }
  // Skips this if the source has more bytes, because the received bytes are
  // then older than read_micros.
  if (round.end.more_bytes == 0) {
    received_.read_micros =
        std::max(received_.read_micros, round.end.read_micros);
  }
  if (round.end.judged.manifest_bytes != 0) {
    received_.judged = round.end.judged;
  }
  received_.closed_micros =
      round.end.source_closed && round.end.more_bytes == 0 ? round.asked_micros
                                                           : 0;
  return Status::OK();
}

void Standby::Ask() {
  std::lock_guard<std::mutex> lock(mu_);
  // If the follower was already waiting, the silence continues. A failed
  // request does not end it.
  if (!silent_since_) silent_since_ = steady_clock::now();
}

void Standby::HearBytes(bool is_over) {
  std::lock_guard<std::mutex> lock(mu_);
  if (silent_since_) silent_since_ = steady_clock::now();
  if (is_over) silent_since_.reset();
  heard_.silent_micros = 0;
}

// If the source is silent, records this once a second.
void Standby::NoteSilence() {
  if (!silent_since_ ||
      steady_clock::now() - *silent_since_ <= kSourceSilent) {
    return;
  }
  const uint64_t now = MicrosNow();
  // If the clock was set back, this unsigned difference is large, too.
  if (now - heard_.silent_micros >= 1'000'000) heard_.silent_micros = now;
}

void Standby::Hear(const Round& round) {
  std::lock_guard<std::mutex> lock(mu_);
  silent_since_.reset();
  heard_.silent_micros = 0;
  heard_.heard_micros = round.heard_micros;
  heard_.source_process = round.end.source_process;
}

void Standby::HearOn() {
  std::lock_guard<std::mutex> lock(mu_);
  heard_.heard_micros = MicrosNow();
  heard_.ForgetClosed();
}

Status Standby::ForgetClosed() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (std::exchange(received_.closed_micros, 0) == 0) {
      return Status::OK();
    }
  }
  return Sync();
}

Status Standby::AppendTo(const WalBytes& log) {
  const bool is_new = log.wal_number > received_.wal_number;
  const uint64_t expected = is_new ? 0 : received_.wal_bytes;
  // If there is no WAL yet, received_.wal_number is 0. No file has this number.
  if (log.wal_number == 0 || log.wal_number < received_.wal_number ||
      log.offset_bytes != expected) {
    return MakeStatus(
        EndState::kCorrupt,
        "records of a WAL: expected bytes from offset " +
            std::to_string(received_.wal_bytes) + " of " +
            WalName(received_.wal_number) +
            " on, or the beginning of a later WAL, found bytes from offset " +
            std::to_string(log.offset_bytes) + " of " +
            WalName(log.wal_number) + " on");
  }
  if (log.bytes.empty()) {
    return Status::OK();
  }
  auto next = std::make_unique<LogFollower>(LogKind::kWal, log.wal_number);
  LogFollower* const follower = is_new ? next.get() : wal_->follower.get();
  const Status followed = FollowBehind(
      expected, log.bytes, follower, [&](const Slice& record, uint64_t) {
        WalStep step = WalStep::kContinues;
        RETURN_IF_ERROR(continuity_->Add(log.wal_number, record, &step));
        if (step == WalStep::kContinues) {
          return Status::OK();
        }
        gap_ = GapAt("records of " + WalName(log.wal_number), record, step);
        return Status::Aborted("a gap");
      });
  if (gap_.reason != CutReason::kNone) {
    return Status::OK();  // the next step is a cut, so nothing is appended
  }
  RETURN_IF_ERROR(followed);
  const uint64_t end = expected + log.bytes.size();
  if (follower->end() != end) {
    return MakeStatus(EndState::kCorrupt,
                      "records of " + WalName(log.wal_number) +
                          ": expected whole records up to byte " +
                          std::to_string(end) + ", found whole ones only up to "
                                                "byte " +
                          std::to_string(follower->end()));
  }
  if (is_new) {
    RETURN_IF_ERROR(BeginWal(log.wal_number));
    wal_->follower = std::move(next);
  }
  const Status status = wal_->file->Append(log.bytes, IOOptions(), nullptr);
  RETURN_IF_ERROR(WithContext(status, EndStateOf(status), wal_->path));
  FaultPoint("Standby:Appended");
  received_.wal_bytes = end;
  digest_->Add(log.bytes);
  received_.wal = digest_->Finish();
  received_.last_sequence =
      std::max(received_.last_sequence, continuity_->last_sequence());
  return Status::OK();
}

// Begins a new WAL. Syncs the previous WAL, then the name of the new WAL. Only
// after that, bytes are written. So a power failure leaves complete records in
// order.
Status Standby::BeginWal(uint64_t number) {
  RETURN_IF_ERROR(SyncWal());
  if (wal_ != nullptr) older_[wal_->number] = received_.wal_bytes;
  older_.erase(number);  // a file without a record may exist
  FaultPoint("Standby:WalEnded");
  auto wal =
      std::make_shared<Wal>(number, dir_ + "/" + WalName(number));
  Status status = file_system_->NewWritableFile(wal->path, FileOptions(),
                                                &wal->file, nullptr);
  if (status.ok()) status = SetAccess(wal->path, access_);
  RETURN_IF_ERROR(WithContext(status, EndStateOf(status), wal->path));
  RETURN_IF_ERROR(SyncDirectory(file_system_.get(), dir_));
  FaultPoint("Standby:WalBegun");
  wal_ = std::move(wal);
  received_.wal_number = number;
  received_.wal_bytes = 0;
  received_.wal = Digest128();
  digest_ = std::make_unique<Digest128Stream>();
  return Status::OK();
}

Status Standby::Sync() {
  std::lock_guard<std::mutex> one(sync_mu_);
  std::shared_ptr<Wal> wal;
  FollowMark mark;
  bool is_durable = false;
  {
    std::lock_guard<std::mutex> lock(mu_);
    RETURN_IF_ERROR(CheckUsable());
    NoteSilence();
    wal = wal_;
    static_cast<StandbyPosition&>(mark) = received_;
    static_cast<SourceHeard&>(mark) = heard_;
    // If a WAL is damaged, writes no mark. A mark of the intact part would hide
    // that records are missing.
    is_durable = is_damaged() ||
                 (received_ == durable_ && heard_ == marked_heard_);
    mark.count = marks_ + 1;
  }
  if (is_durable) {
    return Status::OK();
  }
  // Records may be appended to the file during the sync. If the next WAL was
  // begun meanwhile, BeginWal() has already synced this one.
  Status status;
  if (wal != nullptr && wal->number == mark.wal_number) {
    status = wal->file->Fsync(IOOptions(), nullptr);
    status = WithContext(status, EndStateOf(status), wal->path);
  }
  FaultPoint("Standby:Synced");
  if (status.ok()) {
    // Another call may have received the error of this sync.
    std::lock_guard<std::mutex> lock(mu_);
    status = failed_;
  }
  if (status.ok()) {
    status = WriteMark(file_system_.get(), dir_, mark);
  }
  FaultPoint("Standby:Marked");
  std::lock_guard<std::mutex> lock(mu_);
  if (status.ok()) {
    durable_ = mark;
    marked_heard_ = mark;
    marks_ = mark.count;
  }
  return Fail(status);
}

Status Standby::MarkHeard() {
  std::lock_guard<std::mutex> one(sync_mu_);
  FollowMark mark;
  {
    std::lock_guard<std::mutex> lock(mu_);
    RETURN_IF_ERROR(CheckUsable());
    NoteSilence();
    if (is_damaged() || heard_ == marked_heard_ ||
        durable_ == StandbyPosition()) {
      return Status::OK();
    }
    static_cast<StandbyPosition&>(mark) = durable_;
    if (received_.closed_micros == 0) mark.closed_micros = 0;
    static_cast<SourceHeard&>(mark) = heard_;
    mark.count = marks_ + 1;
  }
  const Status status = WriteMark(file_system_.get(), dir_, mark);
  std::lock_guard<std::mutex> lock(mu_);
  if (status.ok()) {
    marked_heard_ = mark;
    marks_ = mark.count;
  }
  return Fail(status);
}

Status Standby::BeginCut() {
  std::lock_guard<std::mutex> lock(mu_);
  RETURN_IF_ERROR(CheckOwned());
  cut_from_ = PositionNow();
  RETURN_IF_ERROR(exists_ ? CheckNotTaken(dir_) : Status::OK());
  return LockAdopted();
}

// Sets *proven to true if the source certainly had all data that DIR had when
// the cut began.
Status Standby::IsProven(const std::string& new_dir, const FollowFile& record,
                         CutReason reason, const FollowJudged& continued,
                         bool* proven) const {
  *proven = false;
  const bool is_due =
      reason == CutReason::kCutEvery || reason == CutReason::kMaxReplay;
  Standing standing = Standing::kAnother;
  RETURN_IF_ERROR(FindStanding(
      cut_from_, HistoryOfFiles(file_system_.get(), new_dir, record),
      &standing));
  if (standing == Standing::kSame) {
    *proven = true;
    return Status::OK();
  }
  // For most reasons of a cut, the source has compared its own bytes with the
  // position. Before a scheduled cut, it did so in the last round, and deleted
  // the WAL only later. There is one exception: if RocksDB continues the
  // MANIFEST after an open (reuse_manifest_on_open), the WAL may have been
  // deleted at that open. A new OPTIONS file shows such an open.
  const bool was_compared =
      reason != CutReason::kFirst && reason != CutReason::kNewLife &&
      reason != CutReason::kNotHeld;
  if (standing == Standing::kNotHeld && was_compared) {
    uint64_t options = 0;
    uint64_t next_options = 0;
    RETURN_IF_ERROR(FindNewestOptions(dir_, &options));
    RETURN_IF_ERROR(FindNewestOptions(new_dir, &next_options));
    *proven = options != 0 && options == next_options;
  }
  if (reason == CutReason::kNewLife && continued.manifest_bytes != 0) {
    RETURN_IF_ERROR(IsContinued(new_dir, record, continued, proven));
  }
  if (is_due && !*proven) {
    return MakeStatus(EndState::kSourceError,
                      "nothing shows that the source has everything that the "
                      "standby has, so a new cut is needed (new-life)");
  }
  return Status::OK();
}

// Checks whether the cut continues DIR, although the source has begun another
// MANIFEST. Three things must be true. The source said so, when its MANIFEST
// had the bytes `continued`. It was not opened again since DIR's cut. It has
// flushed and removed DIR's newest WAL. (If this WAL is in the cut, a crash may
// have truncated it; HasAllReceived() compares the bytes.)
Status Standby::IsContinued(const std::string& new_dir,
                            const FollowFile& record,
                            const FollowJudged& continued,
                            bool* is_continued) const {
  *is_continued = false;
  FileBegin begin = FileBegin::kNever;
  Digest128 digest;
  RETURN_IF_ERROR(
      HistoryOfFiles(file_system_.get(), new_dir, record)
          .ManifestBegin(continued.manifest_bytes, &begin, &digest));
  uint64_t options = 0;
  uint64_t next_options = 0;
  RETURN_IF_ERROR(FindNewestOptions(dir_, &options));
  RETURN_IF_ERROR(FindNewestOptions(new_dir, &next_options));
  if (begin != FileBegin::kKnown || !(digest == continued.manifest) ||
      options == 0 || options != next_options) {
    return Status::OK();
  }
  ManifestReader reader;
  RETURN_IF_ERROR(ReadManifest(file_system_.get(), new_dir, record, &reader));
  std::map<uint64_t, std::string> there;
  RETURN_IF_ERROR(ListWals(new_dir, &there));
  *is_continued = OldestToHold(reader.state()) > received_.wal_number &&
                  !there.contains(received_.wal_number);
  return Status::OK();
}

// Returns true if the cut has DIR's newest WAL, and all bytes of each WAL that
// both have. Then the source has every record that DIR received since its cut.
bool Standby::HasAllReceived(
    const std::string& new_dir,
    const std::map<uint64_t, std::string>& there) const {
  std::map<uint64_t, std::string> here;
  if (received_.wal_bytes == 0 || !there.contains(received_.wal_number) ||
      !ListWals(dir_, &here).ok() || !here.contains(received_.wal_number)) {
    return false;
  }
  for (const auto& [number, name] : here) {
    if (number > received_.wal_number || !there.contains(number)) {
      continue;
    }
    const std::string ours = dir_ + "/" + name;
    const std::string theirs = new_dir + "/" + name;
    uint64_t bytes = 0;
    uint64_t bytes_there = 0;
    bool same = false;
    // If a WAL of DIR cannot be read, returns false instead of an error, so
    // that the cut can continue.
    if (!BytesOf(file_system_.get(), ours, &bytes).ok() ||
        !BytesOf(file_system_.get(), theirs, &bytes_there).ok() ||
        bytes > bytes_there ||
        !CompareBytes(file_system_.get(), theirs, ours, 0, bytes, &same)
             .ok() ||
        !same) {
      return false;
    }
  }
  return true;
}

// Finds the sequence number up to which the cut and DIR may be equal. An
// example:
//
//   cut: MANIFEST 10 (recovery flushed up to 92), WAL 12 from 93 on
//   DIR: WAL 4 with 1 to 100                                         -> 92
//
// If the cut is of another database, sets *sequence to 0, because its numbers
// cannot be compared with DIR's.
Status Standby::FindCommonEnd(const std::string& new_dir,
                              const FollowFile& record,
                              uint64_t* sequence) const {
  *sequence = 0;
  if (record.source_database_id.empty() ||
      record.source_database_id != record_.source_database_id) {
    return Status::OK();
  }
  std::map<uint64_t, std::string> there;
  RETURN_IF_ERROR(ListWals(new_dir, &there));
  const bool has_all = HasAllReceived(new_dir, there);
  *sequence = has_all ? std::max(record.sequence, received_.last_sequence)
                      : record.sequence;
  for (auto wal = there.lower_bound(received_.wal_number);
       wal != there.end(); ++wal) {
    const std::string path = new_dir + "/" + wal->second;
    bool same = false;  // true: `path` is DIR's newest WAL, perhaps truncated
    if (wal->first == received_.wal_number) {
      uint64_t bytes = 0;
      RETURN_IF_ERROR(BytesOf(file_system_.get(), path, &bytes));
      RETURN_IF_ERROR(CompareBytes(file_system_.get(), path,
                                   dir_ + "/" + wal->second, 0,
                                   std::min(bytes, received_.wal_bytes),
                                   &same));
    }
    uint64_t first = 0;
    if (!same) {
      RETURN_IF_ERROR(FindFirstSequence(file_system_.get(), new_dir,
                                        wal->first, &first));
    }
    if (first != 0) {
      *sequence = std::min(*sequence, first - 1);
      break;
    }
  }
  // A recovery flushes WALs that are older than the MANIFEST. A running process
  // may also begin another MANIFEST during a flush. This looks the same, but
  // loses nothing.
  uint64_t recovered = 0;
  ManifestReader reader([&](const VersionEdit& edit, const ManifestState&) {
    if (edit.next_file && edit.log_number && !edit.new_files.empty() &&
        edit.deleted_files.empty() &&
        *edit.log_number < record.manifest_number) {
      recovered = std::max(recovered, edit.last_sequence.value_or(0));
    }
  });
  RETURN_IF_ERROR(
      ReadManifest(file_system_.get(), new_dir, record, &reader));
  if (recovered != 0 && !has_all) {
    *sequence = std::min(*sequence, recovered);
  }
  bool has_left = false;
  RETURN_IF_ERROR(
      HasLeftBeforeCut(new_dir, record, reader.state(), &has_left));
  if (has_left && record_.sequence > 0) {
    *sequence = std::min(*sequence, record_.sequence - 1);
  }
  return Status::OK();
}

// Sets *has_left to true if the source certainly left the history of DIR before
// DIR's cut. `state` is the state of the source's MANIFEST, which is in
// `new_dir`. If *has_left is false, this is unknown.
Status Standby::HasLeftBeforeCut(const std::string& new_dir,
                                 const FollowFile& record,
                                 const ManifestState& state,
                                 bool* has_left) const {
  *has_left = false;
  if (record.manifest_number == record_.manifest_number) {
    FileBegin begin = FileBegin::kNever;
    Digest128 digest;
    RETURN_IF_ERROR(
        HistoryOfFiles(file_system_.get(), new_dir, record)
            .ManifestBegin(record_.manifest_bytes, &begin, &digest));
    *has_left = begin != FileBegin::kKnown ||
                !(digest == record_.manifest_digest);
  }
  // If DIR's MANIFEST is damaged or lost, the cut continues without it. If it
  // only cannot be read now, returns the error, and the cut is retried later:
  // the MANIFEST may show that the source has left.
  FileId named;
  RETURN_IF_ERROR(
      FileIdOfName(dir_ + "/" + ManifestNameOf(record_), &named));
  if (!named.exists()) {
    return Status::OK();
  }
  ManifestReader cut;
  const Status read = ReadManifest(file_system_.get(), dir_, record_, &cut);
  if (!read.ok()) {
    const EndState why = EndStateOf(read);
    return why == EndState::kCorrupt || why == EndState::kRefused
               ? Status::OK()
               : read;
  }
  // RocksDB assigns numbers in ascending order. So if the cut's MANIFEST
  // continued DIR's, its number would be one that DIR's cut had not used.
  const bool is_early = record.manifest_number != record_.manifest_number &&
                        record.manifest_number < cut.state().next_file;
  *has_left = *has_left || is_early || HaveOtherTables(cut.state(), state);
  return Status::OK();
}

Status Standby::KeepUnproven(const std::string& new_dir, CutReason reason,
                             const FollowJudged& continued,
                             FollowFile* record) {
  std::lock_guard<std::mutex> lock(mu_);
  unneeded_.clear();  // from an earlier cut that failed
  bool proven = false;
  if (exists_) {
    RETURN_IF_ERROR(IsProven(new_dir, *record, reason, continued, &proven));
  }
  if (!exists_ || proven) {
    return Status::OK();
  }
  uint64_t common = 0;
  RETURN_IF_ERROR(FindCommonEnd(new_dir, *record, &common));
  const bool is_lost = common < received_.last_sequence;
  // All records after DIR's cut are in DIR's WALs. Earlier records may be only
  // in its tables.
  const bool needs_tables = common < record_.sequence;
  const std::string mark = is_lost ? kLostInfix : kUnprovenInfix;
  std::string kept;
  RETURN_IF_ERROR(KeepFiles(mark, needs_tables, &kept));
  if (is_lost) {
    record->lost_sequences = received_.last_sequence - common;
    record->lost_dir = kept;
    return Status::OK();
  }
  std::vector<std::string>* const dirs = &record->unproven_dirs;
  *dirs = OwnDirs(dir_, kUnprovenInfix, *dirs);
  dirs->push_back(kept);
  if (dirs->size() > kMaxUnprovenDirs) {
    unneeded_.push_back(dirs->front());
    dirs->erase(dirs->begin());
  }
  return Status::OK();
}

// Links DIR's WALs into a directory next to DIR. Uses a directory that an
// unfinished cut has begun, or else a new one. If `all` is true, links all
// files of the standby, and makes the directory a database.
Status Standby::KeepFiles(const std::string& mark, bool all,
                          std::string* kept) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::string base =
      dir_ + mark +
      DateInName(static_cast<uint64_t>(
          std::chrono::duration_cast<std::chrono::seconds>(now).count()));
  Status status;
  std::vector<std::string> recorded = record_.unproven_dirs;
  recorded.push_back(record_.lost_dir);
  *kept = FindBegun(dir_, mark, recorded);
  if (!kept->empty()) {
    status = FillKept(*kept, all);
    return WithContext(status, EndStateOf(status), "keep " + *kept);
  }
  *kept = base;
  for (int i = 1;; ++i) {
    status = file_system_->CreateDir(*kept, IOOptions(), nullptr);
    FileId named;  // If this fails, the error of CreateDir() ends the loop.
    if (!status.ok()) FileIdOfName(*kept, &named).PermitUncheckedError();
    if (status.ok() || !named.exists() || i == 100) {
      break;
    }
    *kept = base + "-" + std::to_string(i);
  }
  if (status.ok()) {
    status = FillKept(*kept, all);
    // Removes an incomplete directory. It would use space on the disk, and
    // nobody could use it.
    if (!status.ok()) {
      RemoveTree(file_system_.get(), *kept).PermitUncheckedError();
    }
  }
  return WithContext(status, EndStateOf(status), "keep " + *kept);
}

// Links the files that `kept` does not have. Creates CURRENT last, because with
// it RocksDB can open the directory.
Status Standby::FillKept(const std::string& kept, bool all) {
  struct stat info;
  if (stat(dir_.c_str(), &info) != 0) {
    return ErrnoStatus(EndState::kInternal, "cannot open", dir_, errno);
  }
  RETURN_IF_ERROR(
      SetAccess(kept, {info.st_uid, info.st_gid, info.st_mode & 0777u}));
  RETURN_IF_ERROR(SyncWal());
  std::vector<std::string> names;
  RETURN_IF_ERROR(ListDirectory(dir_, &names));
  for (const std::string& name : names) {
    CloneFile file;
    const bool is_file = ParseCloneFileName(name, &file);
    const bool is_kept =
        (is_file && (all || file.kind == CloneFileKind::kWal)) ||
        (all && name == kHealthFileName);
    FileId there;
    if (is_kept) RETURN_IF_ERROR(FileIdOfName(kept + "/" + name, &there));
    if (is_kept && !there.exists()) {
      const Status linked = file_system_->LinkFile(
          dir_ + "/" + name, kept + "/" + name, IOOptions(), nullptr);
      RETURN_IF_ERROR(WithContext(linked, EndStateOf(linked), "link " + name));
    }
  }
  FaultPoint("Standby:FilesLinked");
  const std::string parent =
      std::filesystem::path(dir_).parent_path().string();
  RETURN_IF_ERROR(
      SyncAll(file_system_.get(), {}, {kept, parent.empty() ? "." : parent}));
  if (!all) {
    return Status::OK();
  }
  const std::string current = kept + "/CURRENT";
  RETURN_IF_ERROR(WriteDurably(file_system_.get(), current,
                               ManifestNameOf(record_) + "\n"));
  RETURN_IF_ERROR(SetAccess(current, access_));
  FaultPoint("Standby:FilesKept");
  return Status::OK();
}

Status Standby::UseFiles(const FilesUse& use) {
  std::lock_guard<std::mutex> stay(files_mu_);
  FollowFile record;
  StandbyPosition end;
  {
    std::lock_guard<std::mutex> lock(mu_);
    RETURN_IF_ERROR(CheckUsable());
    if (is_damaged()) {
      return MakeStatus(EndState::kCorrupt, gap_.note);
    }
    record = record_;
    end = received_;
  }
  return use(record, end);
}

Status Standby::CarryInto(const std::string& new_dir, bool of_this_life) {
  exchanging_ = std::unique_lock<std::mutex>(files_mu_);
  sync_mu_.lock();
  cutting_ = std::unique_lock<std::mutex>(mu_);
  carried_all_ = false;
  RETURN_IF_ERROR(CheckOwned());
  RETURN_IF_ERROR(LockStandby(new_dir, &next_lock_));
  Access access;
  RETURN_IF_ERROR(AccessBeside(new_dir, &access));
  RETURN_IF_ERROR(MakeMarks(file_system_.get(), new_dir, access));
  RETURN_IF_ERROR(exists_ ? CheckNotTaken(dir_) : Status::OK());
  adopted_.reset();  // the exchange itself locks the database
  if (exists_ && of_this_life) {
    RETURN_IF_ERROR(CheckUsable());
    RETURN_IF_ERROR(Carry(new_dir));
  }
  FaultPoint("Standby:WalsCarried");
  return SyncDirectory(file_system_.get(), new_dir);
}

Status Standby::Carry(const std::string& new_dir) {
  RETURN_IF_ERROR(SyncWal());
  FollowFile record;
  bool found = false;
  RETURN_IF_ERROR(ReadStandbyRecord(new_dir, &found, &record));
  ManifestReader manifest;
  RETURN_IF_ERROR(ReadManifest(file_system_.get(), new_dir, record, &manifest));
  std::map<uint64_t, std::string> here;
  RETURN_IF_ERROR(ListWals(dir_, &here));
  std::map<uint64_t, std::string> there;
  RETURN_IF_ERROR(ListWals(new_dir, &there));
  bool has_later = false;
  RETURN_IF_ERROR(HasLaterRecord(file_system_.get(), new_dir, there,
                                 received_.wal_number, &has_later));
  for (auto wal = here.lower_bound(OldestToHold(manifest.state()));
       wal != here.end(); ++wal) {
    const std::string from = dir_ + "/" + wal->second;
    const std::string to = new_dir + "/" + wal->second;
    uint64_t bytes = 0;
    uint64_t bytes_there = 0;
    RETURN_IF_ERROR(BytesOf(file_system_.get(), from, &bytes));
    if (there.contains(wal->first)) {
      RETURN_IF_ERROR(BytesOf(file_system_.get(), to, &bytes_there));
      const uint64_t end = std::min(bytes, bytes_there);
      bool same = false;
      RETURN_IF_ERROR(CompareBytes(file_system_.get(), to, from,
                                   end - std::min(end, kComparedBytes), end,
                                   &same));
      if (!same) {
        const Status other = OtherBytes(to, from, end);
        gap_ = {CutReason::kDamage, MessageOf(other)};
        return other;
      }
      if (bytes <= bytes_there) {
        continue;
      }
    }
    // RocksDB writes into a WAL only after the last record of the previous WAL.
    // So if the cut belongs to this life and has a later record, it also has
    // all of this WAL.
    bool is_before_others = false;
    RETURN_IF_ERROR(HasLaterRecord(file_system_.get(), new_dir, there,
                                   wal->first, &is_before_others));
    if (is_before_others) {
      return MakeStatus(EndState::kSourceError,
                        to + ": expected the " + std::to_string(bytes) +
                            " bytes that the standby has of this WAL, because "
                            "the cut has a later one, found " +
                            std::to_string(bytes_there) +
                            "; the source was reopened meanwhile");
    }
    if (there.contains(wal->first)) {
      RETURN_IF_ERROR(RemoveTree(file_system_.get(), to));
    }
    const Status status =
        file_system_->LinkFile(from, to, IOOptions(), nullptr);
    RETURN_IF_ERROR(WithContext(status, EndStateOf(status), "link " + to));
  }
  // If the cut has exactly the received bytes, they need not be read again
  // after the exchange.
  uint64_t newest_bytes = 0;
  if (has_later || received_.wal_number == 0 ||
      !BytesOf(file_system_.get(),
               new_dir + "/" + WalName(received_.wal_number), &newest_bytes)
           .ok() ||
      newest_bytes != received_.wal_bytes) {
    return Status::OK();
  }
  FollowMark mark;
  static_cast<StandbyPosition&>(mark) = received_;
  static_cast<SourceHeard&>(mark) = heard_;
  mark.count = marks_ + 1;
  mark.judged = FollowJudged();
  carried_all_ = gap_.reason == CutReason::kNone;
  return WriteMark(file_system_.get(), new_dir, mark);
}

Status Standby::EndCut(bool exchanged) {
  Status status;
  if (!cutting_.owns_lock()) {
    exchanging_ = std::unique_lock<std::mutex>(files_mu_);
    sync_mu_.lock();
    cutting_ = std::unique_lock<std::mutex>(mu_);
  }
  if (exchanged) {
    const uint64_t read_micros = received_.read_micros;
    adopts_ = false;
    wal_.reset();
    lock_ = Descriptor();
    lock_ = std::move(next_lock_);
    status = lock_.is_open() ? Status::OK() : LockStandby(dir_, &lock_);
    if (status.ok()) status = Load();
    received_.read_micros = std::max(received_.read_micros, read_micros);
    heard_.heard_micros = MicrosNow();  // the source just confirmed the totals
    heard_.ForgetClosed();
    for (const std::string& dir : unneeded_) {
      if (status.ok()) status = RemoveTree(file_system_.get(), dir);
    }
  }
  unneeded_.clear();
  next_lock_ = Descriptor();
  status = Fail(status);
  cutting_.unlock();
  cutting_ = std::unique_lock<std::mutex>();
  sync_mu_.unlock();
  exchanging_ = std::unique_lock<std::mutex>();
  return status.ok() && exchanged ? Sync() : status;
}

}  // namespace sstferry
