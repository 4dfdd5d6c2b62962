#include "pipeline/snapshot/snapshot_files.h"

#include <thread>
#include <utility>

#include "format/end_state.h"
#include "format/limits.h"
#include "format/options_line.h"
#include "format/release.h"
#include "format/rocksdb/manifest_state.h"
#include "pipeline/base/database_open.h"
#include "pipeline/base/duration.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/base/standby_record.h"
#include "pipeline/snapshot/posix_files.h"
#include "pipeline/snapshot/snapshot_wal_place.h"

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr auto kPause = std::chrono::milliseconds(5);
// A file counts as lost if this number of rounds have not found it while the
// MANIFEST did not change.
constexpr uint32_t kSameFaults = 3;
// If this number of reads find the same bytes after the last record of the
// MANIFEST, these bytes count as a record that the owner will not complete.
constexpr uint64_t kSettledLooks = 3;
// Number of long steps that may restart the time limit. A long step is the
// first read of the WALs, or a copy. It may take minutes.
constexpr int kMaxLongSteps = 8;
constexpr char kPointInTime[] = "kPointInTimeRecovery";
// Free space that must remain after the WALs were copied and flushed.
constexpr uint64_t kReservedBytes = 16u << 20;

std::vector<std::string> TableDirectories(const SnapshotOptions& options) {
  std::vector<std::string> directories = {options.database_dir};
  directories.insert(directories.end(), options.table_dirs.begin(),
                     options.table_dirs.end());
  return directories;
}

bool MayPass(const Status& status) {
  return status.IsTryAgain() || status.IsNotFound() || status.IsIncomplete();
}

}  // namespace

SnapshotFiles::SnapshotFiles(const SnapshotOptions& options, std::string pinned,
                             std::string db)
    : options_(options),
      pinned_(std::move(pinned)),
      db_(std::move(db)),
      manifest_(options.database_dir),
      tables_(TableDirectories(options), pinned_),
      seen_options_(options.database_dir) {}

Status SnapshotFiles::AwaitRound() {
  for (;;) {
    RETURN_IF_ERROR(CheckStopped());
    const Status round = Round();
    if (round.ok() || !MayPass(round)) {
      return round;
    }
    RETURN_IF_ERROR(Again(round));
  }
}

Status SnapshotFiles::Link() { return AwaitRound(); }

Status SnapshotFiles::Confirm() {
  start_ = Clock::now();
  const Status status = AwaitRound();
  confirmed_ = status.ok();
  return status;
}

Status SnapshotFiles::Take() {
  start_ = Clock::now();
  if (knows_wals_) {
    RETURN_IF_ERROR(seen_options_.Look());  // Link() read them some time ago
  }
  for (;;) {
    if (!std::exchange(confirmed_, false)) {
      RETURN_IF_ERROR(AwaitRound());
    }
    const Status copied = Copy();
    if (copied.ok()) {
      break;
    }
    EndLongStep();
    RETURN_IF_ERROR(MayPass(copied) ? Again(copied) : copied);
  }
  RETURN_IF_ERROR(CopyIdentity());
  return AwaitOptions();
}

Status SnapshotFiles::CheckStopped() const {
  return options_.cancelled && options_.cancelled()
             ? MakeStatus(EndState::kCancelled, "while taking the snapshot")
             : Status::OK();
}

Status SnapshotFiles::FollowManifest(bool* changed) {
  const Status status = manifest_.Follow(changed);
  if (status.ok() && manifest_.generation() != generation_) {
    generation_ = manifest_.generation();
    // Another application may have opened the database meanwhile, with another
    // wal_dir.
    knows_wals_ = false;
    return tables_.DropOthers();
  }
  return status;
}

Status SnapshotFiles::FindWals() {
  RETURN_IF_ERROR(CheckWriterIsHere(options_.database_dir));
  RETURN_IF_ERROR(seen_options_.Look());
  std::string directory;
  RETURN_IF_ERROR(FindWalDirectory(options_.database_dir, options_.wal_dir,
                                   seen_options_, &manifest_, &directory));
  if (pinned_wals_ == nullptr || directory != wal_directory_) {
    wal_directory_ = directory;
    pinned_wals_ = std::make_unique<PinnedWals>(directory, pinned_);
  }
  const OptionsText& text = seen_options_.newest();
  pinned_wals_->set_may_recycle(
      text.DatabaseOption("recycle_log_file_num", "1") != "0");
  pinned_wals_->set_may_buffer(
      text.DatabaseOption("manual_wal_flush", "true") != "false");
  pinned_wals_->set_passes_damage(
      text.DatabaseOption("wal_recovery_mode", "") ==
      "kSkipAnyCorruptedRecords");
  pinned_wals_->set_limit(options_.wal_limit);
  const bool is_standby = IsStandby(options_.database_dir);
  pinned_wals_->set_is_standby(is_standby);
  point_in_time_.reset();
  const std::string mode = seen_options_.database().DatabaseOption(
      "wal_recovery_mode", kPointInTime);
  if (mode == kPointInTime && !is_standby) {
    const RocksDbRelease writer = ReleaseOfOptions(seen_options_.TextFor({}));
    point_in_time_ = PointInTime{
        (writer.is_known() ? writer : kLinkedRelease) >= kStopsAtOldRecords,
        /*replays=*/!options_.as_files};
  }
  knows_wals_ = true;
  return Status::OK();
}

// Checks again that the WALs continue the MANIFEST, now that they are kept
// alive by links. If they belong to another database, its owner may have
// removed some of them before they were linked.
Status SnapshotFiles::CheckWals() {
  if (wal_directory_ == options_.database_dir || !options_.wal_dir.empty()) {
    return Status::OK();
  }
  const std::string pinned = wal_directory_;
  RETURN_IF_ERROR(FindWals());
  return wal_directory_ == pinned
             ? Status::OK()
             : Status::TryAgain("the WAL directory of the database changed "
                                "from " + pinned + " to " + wal_directory_ +
                                " while the WALs were pinned");
}

Status SnapshotFiles::Round() {
  rounds_++;
  bool changed = false;
  RETURN_IF_ERROR(FollowManifest(&changed));
  if (!knows_wals_) {
    RETURN_IF_ERROR(FindWals());
  }
  std::string missing;
  RETURN_IF_ERROR(tables_.Hold(state(), &missing));
  const Clock::time_point begin = Clock::now();
  const Status read = pinned_wals_->Follow(OldestToHold(state()));
  if (!has_read_wals_) {
    EndLongStep();
    has_read_wals_ = read.ok();  // later rounds read only what is new
  }
  RETURN_IF_ERROR(read);
  RETURN_IF_ERROR(FollowManifest(&changed));
  if (changed) {
    return Status::TryAgain("the MANIFEST grew");
  }
  if (!missing.empty()) {
    return Status::NotFound(missing + ", which " + manifest_.name() +
                            " names, is missing");
  }
  if (manifest_.has_tail() && manifest_.tail_age() < kSettledLooks) {
    return Status::TryAgain(manifest_.name() + " ends inside a record");
  }
  RETURN_IF_ERROR(pinned_wals_->CheckEnds());
  RETURN_IF_ERROR(CheckRecovery());
  moment_begin_ = begin;
  moment_end_ = Clock::now();
  return CheckWals();
}

// Checks that the application would find all WAL records if it recovered the
// database now. Returns an error only if the database is known to be closed.
// While a process has the database open, no record is missing, and its WALs may
// end in any way.
Status SnapshotFiles::CheckRecovery() const {
  if (!point_in_time_.has_value()) {
    return Status::OK();
  }
  const bool is_2pc =
      seen_options_.database().DatabaseOption("allow_2pc", "") == "true";
  const Status status = pinned_wals_->CheckRecovery(
      state(), OldestNeededWal(state(), is_2pc), *point_in_time_);
  return status.ok() || !IsDatabaseClosed(options_.database_dir)
             ? Status::OK()
             : status;
}

// Checks that there is enough free space for the copies of the WALs. If the
// WALs will be flushed, the tables need the same space again.
Status SnapshotFiles::CheckRoom() const {
  const uint64_t bytes =
      pinned_wals_->bytes() * (options_.as_files ? 1 : 2);
  const uint64_t free = bytes == 0 ? UINT64_MAX : FreeBytesAbove(db_);
  return free >= bytes && free - bytes >= kReservedBytes
             ? Status::OK()
             : MakeStatus(EndState::kNoSpace,
                          (options_.as_files
                               ? "to copy the WALs: expected "
                               : "to copy and flush the WALs: expected ") +
                              std::to_string(bytes + kReservedBytes) +
                              " free bytes for " + ShownPath(db_) +
                              ", found " +
                              std::to_string(free));
}

Status SnapshotFiles::Copy() {
  RETURN_IF_ERROR(CheckRoom());
  Status status = pinned_wals_->CopyInto(db_, &wals_);
  if (status.ok()) status = manifest_.CopyInto(db_);
  if (status.ok()) return tables_.MoveTo(db_, state(), manifest_.name());
  if (MayPass(status)) {
    std::vector<std::string> names;
    const Status listed = ListDirectory(db_, &names);
    for (const std::string& name : names) {
      RETURN_IF_ERROR(RemoveFile(db_ + "/" + name));
    }
    RETURN_IF_ERROR(listed);
  }
  return status;
}

// Restarts the time limit after a step that may take longer than the limit.
// Only the first kMaxLongSteps steps do so.
void SnapshotFiles::EndLongStep() {
  if (++long_steps_ <= kMaxLongSteps) {
    start_ = Clock::now();
  }
}

Status SnapshotFiles::Again(const Status& why) {
  const std::string reason = MessageOf(why);
  const std::string fault = reason + " " + manifest_.name() + " " +
                            std::to_string(manifest_.end());
  same_faults_ = fault == last_fault_ ? same_faults_ + 1 : 1;
  last_fault_ = fault;
  if (why.IsNotFound() && same_faults_ >= kSameFaults) {
    return Lost(reason);
  }
  const auto spent = Clock::now() - start_;
  if (spent >= options_.deadline && why.IsIncomplete()) {
    return MakeStatus(EndState::kRefused, reason);
  }
  if (spent >= options_.deadline) {
    return MakeStatus(
        EndState::kSourceError,
        options_.database_dir + " changed during each of " +
            std::to_string(rounds_) + " rounds in " +
            FormatDuration(
                std::chrono::duration_cast<std::chrono::milliseconds>(spent)) +
            "; last reason: " + reason);
  }
  if (options_.log) {
    options_.log(LogLevel::kDebug, "snapshot: another round: " + reason);
  }
  // Runs another round at once if the reason is new. If the reason is the same
  // as before, sleeps for a short time, so that the owner can proceed.
  if (same_faults_ > 1) {
    std::this_thread::sleep_for(kPause);
  }
  return Status::OK();
}

Status SnapshotFiles::Lost(const std::string& what) const {
  if (generation_ != 0 && manifest_.has_tail()) {
    return MakeStatus(EndState::kCorrupt,
                      options_.database_dir + "/" + manifest_.name() +
                          ": truncated record at offset " +
                          std::to_string(manifest_.end()) + "; " + what);
  }
  if (generation_ != 0 && !tables_.holds_any()) {
    return MakeStatus(EndState::kRefused,
                      what + "; all other files in the MANIFEST are also "
                      "missing: they are lost, or in other directories "
                      "(db_paths, cf_paths), which sstferry does not support");
  }
  return MakeStatus(EndState::kSourceError, what);
}

Status SnapshotFiles::CopyIdentity() {
  bool found = false;
  std::string text;
  Status status = ReadForeign(options_.database_dir + "/IDENTITY",
                                kMaxIdentityBytes, &found, &text);
  if (status.ok() && found) {
    status = WriteSmallFile(db_ + "/IDENTITY", text);
  }
  return status.ok() ? ReadDatabaseId(db_, state(), &database_id_) : status;
}

std::vector<std::string> SnapshotFiles::FamilyNames() const {
  std::vector<std::string> names;
  for (const auto& [id, family] : state().families) {
    names.push_back(family.name);
  }
  return names;
}

// Waits until OPTIONS describe all families. After an owner has added a family
// to the MANIFEST, it soon writes OPTIONS. If the owner crashed in between,
// OPTIONS never describe the family.
Status SnapshotFiles::AwaitOptions() {
  const std::vector<std::string> families = FamilyNames();
  const auto end = Clock::now() + options_.options_patience;
  Status status;
  while (status.ok() && !seen_options_.name().empty() &&
         !seen_options_.MissingOf(families).empty() && Clock::now() < end) {
    std::this_thread::sleep_for(kPause);
    status = CheckStopped();
    if (status.ok()) status = seen_options_.Look();
  }
  if (!status.ok() || seen_options_.name().empty()) {
    return status;
  }
  options_text_ = seen_options_.TextFor(families);
  return WriteSmallFile(db_ + "/" + seen_options_.name(), options_text_);
}

uint64_t SnapshotFiles::wal_bytes() const {
  uint64_t bytes = 0;
  for (const CopiedWal& wal : wals_) {
    bytes += wal.bytes;
  }
  return bytes;
}

uint64_t SnapshotFiles::live_files() const {
  uint64_t files = 0;
  for (const auto& [id, family] : state().families) {
    files += family.files.size() + family.blobs.size();
  }
  return files;
}

Status SnapshotFiles::ReleasePinned() {
  std::vector<std::string> names;
  RETURN_IF_ERROR(ListDirectory(pinned_, &names));
  for (const std::string& name : names) {
    RETURN_IF_ERROR(RemoveFile(pinned_ + "/" + name));
  }
  return Status::OK();
}

}  // namespace sstferry
