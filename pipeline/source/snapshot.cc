#include "pipeline/source/snapshot.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>

#include "format/end_state.h"
#include "pipeline/source/posix_files.h"
#include "pipeline/source/private_dir.h"
#include "pipeline/source/snapshot_copy.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/utilities/checkpoint.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;
using rocksdb::ColumnFamilyHandle;
using rocksdb::DB;
using rocksdb::Status;

constexpr auto kFirstPause = std::chrono::milliseconds(1);
constexpr auto kLongestPause = std::chrono::milliseconds(100);
// Attempts that see the very same source and the very same fault.
constexpr uint32_t kSameFaultAttempts = 3;

class OpenedSnapshot : public Snapshot {
 public:
  explicit OpenedSnapshot(std::unique_ptr<PrivateDir> dir)
      : dir_(std::move(dir)) {}

  Status Fill(const SnapshotOptions& options);
  Status Reopen(const SnapshotOptions& options, const HeldSnapshotState& state);

  Status PrepareAdoption() override {
    std::error_code error;
    fs::remove(dir_->options(), error);  // of an attempt that failed
    return copy_.options_text().empty()
               ? Status::OK()
               : WriteSmallFile(dir_->options(), copy_.options_text());
  }
  void Keep(bool keep) override { dir_->Keep(keep); }

  DB* db() const override { return copy_.db(); }
  const std::vector<SnapshotFamily>& families() const override {
    return copy_.families();
  }
  uint64_t sequence() const override { return copy_.sequence(); }
  const std::string& database_id() const override {
    return copy_.database_id();
  }
  const std::string& directory() const override { return dir_->path(); }
  const std::string& options_text() const override {
    return copy_.options_text();
  }
  const std::vector<std::string>& notes() const override {
    return copy_.notes();
  }
  bool wal_not_flushed() const override { return copy_.read_only(); }
  const Digest128& wal_digest() const override { return wal_digest_; }
  bool wal_holds_entries() const override {
    return copy_.counters().wal_bytes_copied > 0;
  }
  const Counters& counters() const override { return copy_.counters(); }

 private:
  // Destroyed in reverse: the database closes before its directory goes.
  const std::unique_ptr<PrivateDir> dir_;
  SnapshotCopy copy_;
  Digest128 wal_digest_;
};

void Log(const SnapshotOptions& options, LogLevel level,
         const std::string& line) {
  if (options.log) {
    options.log(level, line);
  }
}

Status OpenedSnapshot::Fill(const SnapshotOptions& options) {
  std::string last_fault;
  uint32_t same_fault = 0;
  std::chrono::milliseconds pause = kFirstPause;
  for (uint32_t number = 1;; number++) {
    if (options.cancelled && options.cancelled()) {
      return MakeStatus(EndState::kCancelled, "while taking the snapshot");
    }
    Status status = dir_->Clear();
    Attempt attempt;
    if (status.ok()) {
      status = copy_.Take(options, *dir_, &attempt);
    }
    if (!status.ok() || !attempt.again) {
      return status;
    }
    const std::string fault = attempt.fingerprint + "\n" + attempt.reason;
    same_fault = fault == last_fault ? same_fault + 1 : 1;
    last_fault = fault;
    if (same_fault >= kSameFaultAttempts) {
      return copy_.PermanentFault(options, attempt);
    }
    if (number >= options.max_attempts) {
      return MakeStatus(EndState::kSourceError,
                        options.database_dir + " changed under each of " +
                            std::to_string(number) +
                            " attempts, the last time because " +
                            attempt.reason);
    }
    Log(options, LogLevel::kDebug,
        "snapshot: starting over: " + attempt.reason);
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kLongestPause);
  }
}

Status OpenedSnapshot::Reopen(const SnapshotOptions& options,
                              const HeldSnapshotState& state) {
  Status status = copy_.Reopen(options, state, *dir_);
  if (status.ok() && copy_.sequence() != state.sequence) {
    status = MakeStatus(EndState::kCorrupt,
                        "expected sequence " + std::to_string(state.sequence) +
                            ", found " + std::to_string(copy_.sequence()));
  }
  return status.ok() || status.IsAborted()
             ? status
             : MakeStatus(EndState::kSnapshotGone,
                          "the snapshot cannot be opened again: " +
                              MessageOf(status));
}

// The real place of the database: a symbolic link must not move the private
// directory to another file system.
Status ResolveDirectory(const std::string& given, std::string* real) {
  std::error_code error;
  *real = fs::canonical(given, error).string();
  return error ? ErrnoStatus(EndState::kSourceError, "cannot open database",
                             given, error.value())
               : Status::OK();
}

Status MakePrivateDir(const SnapshotOptions& options,
                      std::unique_ptr<PrivateDir>* dir) {
  const fs::path source(options.database_dir);
  const std::string parent = options.snapshot_dir.empty()
                                 ? source.parent_path().string()
                                 : options.snapshot_dir;
  const Status leftovers =
      RemoveLeftoverSnapshots(parent, [&options](const std::string& line) {
        Log(options, LogLevel::kInfo, line);
      });
  // Somebody else's leftover is no reason not to go on.
  if (!leftovers.ok()) {
    Log(options, LogLevel::kWarning, MessageOf(leftovers));
  }
  std::string name = source.filename().string();
  return PrivateDir::Create(parent, name.empty() ? "root" : name, dir);
}

}  // namespace

Status Snapshot::Create(const SnapshotOptions& options,
                        std::unique_ptr<Snapshot>* result) {
  SnapshotOptions resolved = options;
  Status status =
      ResolveDirectory(options.database_dir, &resolved.database_dir);
  std::error_code error;
  if (status.ok() &&
      !fs::exists(fs::path(resolved.database_dir) / "CURRENT", error)) {
    status = MakeStatus(EndState::kSourceError,
                        "no CURRENT file in " + resolved.database_dir +
                            ": this is not a RocksDB database");
  }
  std::unique_ptr<PrivateDir> dir;
  if (status.ok()) {
    status = MakePrivateDir(resolved, &dir);
  }
  if (!status.ok()) {
    return status;
  }
  auto snapshot = std::make_unique<OpenedSnapshot>(std::move(dir));
  status = snapshot->Fill(resolved);
  if (status.ok()) {
    *result = std::move(snapshot);
  }
  return status;
}

Status Snapshot::Adopt(const SnapshotOptions& options,
                       const HeldSnapshotState& state,
                       std::unique_ptr<PrivateDir> dir,
                       std::unique_ptr<Snapshot>* result) {
  auto snapshot = std::make_unique<OpenedSnapshot>(std::move(dir));
  const Status status = snapshot->Reopen(options, state);
  if (status.ok()) {
    *result = std::move(snapshot);
  } else if (!status.IsAborted()) {
    snapshot->Keep(false);  // nobody else could open it either
  }
  return status;
}

Status Snapshot::FromOpenDatabase(
    DB* db, const std::vector<ColumnFamilyHandle*>& families,
    const SnapshotOptions& options, std::unique_ptr<Snapshot>* result) {
  SnapshotOptions resolved = options;
  Status status = ResolveDirectory(db->GetName(), &resolved.database_dir);
  std::unique_ptr<PrivateDir> dir;
  if (status.ok()) {
    status = MakePrivateDir(resolved, &dir);
  }
  if (!status.ok()) {
    return status;
  }
  const std::string original = resolved.database_dir;
  resolved.was_flushed = true;
  resolved.database_dir = dir->path() + "/checkpoint";
  rocksdb::Checkpoint* made = nullptr;
  status = rocksdb::Checkpoint::Create(db, &made);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  if (status.ok()) {
    status = checkpoint->CreateCheckpoint(resolved.database_dir);
  }
  if (!status.ok()) {
    return WithContext(status, EndState::kSourceError,
                       "checkpoint of " + original);
  }
  // A checkpoint has no IDENTITY; without one each opening makes a new id.
  std::string id;
  status = db->GetDbIdentity(id);
  std::error_code error;
  if (status.ok() && !fs::exists(resolved.database_dir + "/IDENTITY", error)) {
    status = WriteSmallFile(resolved.database_dir + "/IDENTITY", id + "\n");
  }
  if (!status.ok()) {
    return WithContext(status, EndState::kSourceError, original);
  }
  for (ColumnFamilyHandle* family : families) {
    resolved.registry.comparators.push_back(family->GetComparator());
    const auto merge = db->GetOptions(family).merge_operator;
    if (merge != nullptr) {
      resolved.registry.merge_operators.push_back(merge);
    }
  }
  const std::string checkpoint_dir = resolved.database_dir;
  auto snapshot = std::make_unique<OpenedSnapshot>(std::move(dir));
  status = snapshot->Fill(resolved);
  if (status.ok()) {
    fs::remove_all(checkpoint_dir, error);
    *result = std::move(snapshot);
  }
  return status;
}

}  // namespace sstferry
