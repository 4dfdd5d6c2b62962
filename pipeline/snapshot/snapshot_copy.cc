#include "pipeline/snapshot/snapshot_copy.h"

#include <chrono>
#include <filesystem>
#include <set>
#include <system_error>

#include "format/end_state.h"
#include "format/limits.h"
#include "format/options_line.h"
#include "format/printable.h"
#include "pipeline/base/full_disk.h"
#include "pipeline/base/readable_tables.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/base/this_machine.h"
#include "pipeline/options/options_text.h"
#include "pipeline/options/unknown_options.h"
#include "pipeline/snapshot/posix_files.h"
#include "pipeline/snapshot/snapshot_manifest.h"
#include "pipeline/snapshot/stoppable_file_system.h"

namespace sstferry {
namespace {

using rocksdb::ColumnFamilyDescriptor;
using rocksdb::ColumnFamilyHandle;
using rocksdb::DB;
using rocksdb::Status;

std::vector<ColumnFamilyDescriptor> Descriptors(const OpenPlan& plan) {
  std::vector<ColumnFamilyDescriptor> descriptors;
  for (const FamilyOpening& family : plan.families) {
    if (!plan.read_only || family.wanted ||
        family.name == rocksdb::kDefaultColumnFamilyName) {
      descriptors.emplace_back(family.name, family.open);
    }
  }
  return descriptors;
}

// Checks if a wanted family has merge operands in a WAL, and this process does
// not have its merge operator. Returns a message about this family, or "" if
// there is no such family.
std::string MissingOperator(const Replay& replay, const OpenPlan& plan) {
  for (const FamilyOpening& family : plan.families) {
    if (family.wanted && !family.unknown_merge_operator.empty() &&
        replay.merging.count(family.name) > 0) {
      return "column family '" + family.name +
             "': its merge operator is " + family.unknown_merge_operator +
             ", which this process does not have, and merge operands are in "
             "the WAL";
    }
  }
  return std::string();
}

// Fails if the application replays its WALs with its own code, so that this
// process would get other entries. A WAL filter may drop or change records.
// With inplace_update_support, a callback may compute a value. OPTIONS do not
// show if there is such a callback.
Status CheckReplaysAlike(const Replay& replay, const OpenPlan& plan,
                         const std::string& options_text) {
  if (replay.entries == 0) {
    return Status::OK();
  }
  const OptionsText text(options_text);
  const std::string filter = text.DatabaseOption("wal_filter", "");
  const char* const way_out =
      ", and its WALs hold entries; let the application flush them";
  if (!filter.empty() && filter != "nullptr") {
    return OnlyAsFiles(EndState::kRefused,
                          "it is opened with a wal_filter, '" +
                              Printable(filter) +
                              "', which this process does not have" + way_out);
  }
  for (const FamilyOpening& family : plan.families) {
    if (family.wanted &&
        text.FamilyText(family.name, "inplace_update_support") == "true") {
      return OnlyAsFiles(
          EndState::kRefused,
          "column family '" + Printable(family.name) +
              "' has inplace_update_support: its application may have an "
              "inplace_callback, which no file records" + way_out);
    }
  }
  return Status::OK();
}

// If a newer RocksDB than the linked one wrote the database, returns a message
// about this. Otherwise returns "".
std::string NewerWriter(const std::string& options_text) {
  const RocksDbRelease writer = ReleaseOfOptions(options_text);
  return writer > kLinkedRelease
             ? "RocksDB " + ReleaseName(writer) + " wrote the database, and "
               "this sstferry has RocksDB " + RocksDbVersion()
             : std::string();
}

Status OpenError(const Status& status, const std::string& operands,
                 const std::string& source, const std::string& copy,
                 const std::string& warning, const std::string& options_text) {
  if (status.IsInvalidArgument() && !operands.empty()) {
    return OnlyAsFiles(EndState::kRefused, source + ": " + operands);
  }
  const std::string newer = NewerWriter(options_text);
  const bool is_unknown = !newer.empty() && status.IsNotSupported();
  const EndState state = is_unknown                ? EndState::kIncompatible
                         : status.IsCorruption()   ? EndState::kCorrupt
                         : status.IsNoSpace()      ? EndState::kNoSpace
                         : status.IsNotSupported() ? EndState::kRefused
                                                   : EndState::kSourceError;
  std::string message = MessageOf(status);
  if (!warning.empty()) {
    message += " (" + warning + ")";
  }
  if (!newer.empty()) {
    message += "; " + newer +
               (is_unknown ? ": use an sstferry with that or a newer RocksDB"
                           : "");
  }
  message = "cannot open the copy of " + source + ": " +
            RenamePath(message, copy, source);
  return is_unknown || status.IsNotSupported()
             ? OnlyAsFiles(state, message)
             : MakeStatus(state, message);
}

}  // namespace

SnapshotCopy::~SnapshotCopy() { Close(); }

void SnapshotCopy::Close() {
  mutable_facts()->families.clear();
  for (ColumnFamilyHandle* handle : handles_) {
    // ~SnapshotCopy() cannot report a failure.
    db_->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  }
  handles_.clear();
  db_.reset();
}

namespace {

Status CheckStopped(const SnapshotOptions& options) {
  return options.cancelled && options.cancelled()
             ? MakeStatus(EndState::kCancelled, "while taking the snapshot")
             : Status::OK();
}

// Fails if recovery has lost entries of complete records, because it did not
// replay a record or did not apply its entries. RocksDB returns OK in some of
// these cases.
Status CheckNothingLost(const ReplayWatch& watch, const Replay& replay,
                        uint64_t sequence, const std::string& operands,
                        const std::string& warning) {
  if (watch.IsComplete() && sequence >= replay.newest_sequence) {
    return Status::OK();
  }
  if (!operands.empty()) {
    return OnlyAsFiles(EndState::kRefused, operands);
  }
  return MakeStatus(
      EndState::kCorrupt,
      "replaying its WALs: expected " + std::to_string(replay.records.count) +
          " records up to sequence " + std::to_string(replay.newest_sequence) +
          ", RocksDB replayed " + std::to_string(watch.replayed()) +
          " up to sequence " + std::to_string(sequence) +
          (warning.empty() ? std::string() : " (" + warning + ")"));
}

}  // namespace

Status SnapshotCopy::Fill(const SnapshotOptions& options,
                          const SnapshotFiles* pinned) {
  const auto start = std::chrono::steady_clock::now();
  SnapshotFiles own(options, dir_->pinned(), dir_->db());
  const SnapshotFiles& files = pinned != nullptr ? *pinned : own;
  SnapshotFacts* const facts = mutable_facts();
  SnapshotCounters* const counters = &facts->counters;
  OpenPlan plan;
  Status status = pinned != nullptr ? Status::OK() : own.Take();
  if (status.ok()) status = Plan(options, files, &plan);
  counters->copy_micros = MicrosSince(start);
  if (status.ok()) status = CheckStopped(options);
  if (!status.ok()) {
    return WithContext(status, EndState::kSourceError, options.database_dir);
  }
  counters->rounds = files.rounds();
  counters->wal_files = files.wals().size();
  counters->wal_bytes_copied = files.wal_bytes();
  counters->files_linked = files.linked_files();
  counters->live_files = files.live_files();
  facts->options_text = files.options_text();
  facts->database_id = files.database_id();
  RETURN_IF_ERROR(Open(options, replay_.records, &plan));
  RETURN_IF_ERROR(own.ReleasePinned());
  return Describe(plan);
}

// Chooses the options to open the files. The choice depends on the contents of
// the WALs.
Status SnapshotCopy::Plan(const SnapshotOptions& options,
                          const SnapshotFiles& files, OpenPlan* plan) {
  const OpenLimits limits{options.write_buffer_bytes, options.max_open_files};
  RETURN_IF_ERROR(
      PlanOpening(files.state(), files.options_text(), files.options_name(),
                  options.families, options.registry, limits, plan));
  const Status readable = CheckTablesReadable(
      rocksdb::FileSystem::Default().get(), dir_->db(),
      ReleaseOfOptions(files.options_text()));
  if (!readable.ok()) {
    return OnlyAsFiles(EndStateOf(readable), MessageOf(readable));
  }
  rocksdb::DBOptions recovery = plan->db;
  recovery.paranoid_checks = plan->paranoid_checks;
  std::set<std::string> opened;
  for (const ColumnFamilyDescriptor& family : Descriptors(*plan)) {
    opened.insert(family.name);
  }
  Status status = ReadReplay(dir_->db(), files.wals(), files.state(), recovery,
                             opened, &replay_);
  plan->db.allow_2pc |= replay_.has_prepare_sections;
  if (status.ok()) {
    status = CheckReplaysAlike(replay_, *plan, files.options_text());
  }
  if (status.ok() && plan->read_only &&
      files.wal_bytes() > options.max_read_only_wal_bytes) {
    return OnlyAsFiles(
        EndState::kRefused,
        plan->read_only_reason +
            "; the other families can then only be read with their WALs in "
            "memory: expected at most " +
            std::to_string(options.max_read_only_wal_bytes) +
            " bytes of WAL, found " + std::to_string(files.wal_bytes()));
  }
  BoundWriteBuffers(files.wal_bytes(), limits, plan);
  return status;
}

Status SnapshotCopy::Open(const SnapshotOptions& options,
                          const ReplayedRecords& expected, OpenPlan* plan) {
  const auto start = std::chrono::steady_clock::now();
  read_only_reason_ = plan->read_only_reason;
  const bool may_follow =
      !replay_.torn.empty() || expected != replay_.records;
  watch_ =
      std::make_unique<ReplayWatch>(expected, may_follow, options.cancelled);
  watch_->Watch(&plan->db);
  UseStoppableEnv(options, plan);
  Status status = plan->read_only ? OpenReadOnly(*plan) : OpenAndFlush(*plan);
  mutable_facts()->counters.flush_micros = MicrosSince(start);
  // If the call was cancelled, returns kCancelled. RocksDB's error would only
  // say that it could not read its files.
  const Status stopped = CheckStopped(options);
  const std::string operands = MissingOperator(replay_, *plan);
  if (!stopped.ok()) {
    status = stopped;
  } else if (!status.ok()) {
    status = OpenError(status, operands, options.database_dir, dir_->db(),
                       watch_->warning(), options_text());
  } else {
    status = WithContext(
        CheckNothingLost(*watch_, replay_, db_->GetLatestSequenceNumber(),
                         operands,
                         RenamePath(watch_->warning(), dir_->db(),
                                    options.database_dir)),
        EndState::kCorrupt, options.database_dir);
  }
  if (!status.ok()) {
    Close();
  }
  return status;
}

// Makes reads and writes fail after a cancellation. The next step is the
// longest, and RocksDB cannot be stopped in another way.
void SnapshotCopy::UseStoppableEnv(const SnapshotOptions& options,
                                   OpenPlan* plan) {
  if (options.cancelled) {
    env_ = rocksdb::NewCompositeEnv(MakeStoppableFileSystem(
        MakeFullDiskFileSystem(rocksdb::FileSystem::Default()),
        options.cancelled, options.read_bytes));
    plan->db.env = env_.get();
  }
}

Status SnapshotCopy::PrepareAdoption() {
  std::error_code error;
  // Removes files of an earlier attempt that failed.
  std::filesystem::remove(dir_->options(), error);
  std::filesystem::remove(dir_->replay(), error);
  const Status status = WriteReplay(dir_->replay(), replay_);
  return status.ok() && !options_text().empty()
             ? WriteSmallFile(dir_->options(), options_text())
             : status;
}

Status SnapshotCopy::Reopen(const SnapshotOptions& options,
                            const RetainedState& state) {
  SnapshotFacts* const facts = mutable_facts();
  bool has_options = false;
  RETURN_IF_ERROR(ReadForeign(dir_->options(), kMaxOptionsFileBytes,
                              &has_options, &facts->options_text));
  ManifestTail manifest(dir_->db());
  bool unused = false;
  RETURN_IF_ERROR(manifest.Follow(&unused));
  OpenPlan plan;
  const OpenLimits limits{options.write_buffer_bytes, options.max_open_files};
  RETURN_IF_ERROR(PlanOpening(manifest.state(), facts->options_text,
                              dir_->options(), options.families,
                              options.registry, limits, &plan));
  LoadReplay(dir_->replay(), &replay_);
  plan.db.allow_2pc |= replay_.has_prepare_sections;
  if (state.read_only && !plan.read_only) {
    plan.read_only = true;
    plan.read_only_reason = "as when the snapshot was taken";
  }
  BoundWriteBuffers(state.read_only ? state.wal_bytes : 0, limits, &plan);
  facts->database_id = state.database_id;
  facts->counters.wal_bytes_copied = state.wal_bytes;
  // If the copy is not read-only, it was flushed: the entries of its WALs are
  // in tables, and no records must be replayed.
  RETURN_IF_ERROR(Open(options,
                       plan.read_only ? replay_.records : ReplayedRecords(),
                       &plan));
  return Describe(plan);
}

Status SnapshotCopy::OpenReadOnly(const OpenPlan& plan) {
  return DB::OpenForReadOnly(plan.db, dir_->db(), Descriptors(plan), &handles_,
                             IntoDb(&db_));
}

Status SnapshotCopy::OpenAndFlush(const OpenPlan& plan) {
  Status status = DB::Open(plan.db, dir_->db(), Descriptors(plan), &handles_,
                           IntoDb(&db_));
  rocksdb::FlushOptions flush;
  flush.wait = true;
  flush.allow_write_stall = true;
  for (ColumnFamilyHandle* handle : handles_) {
    if (status.ok()) status = db_->Flush(flush, handle);
  }
  return status;
}

Status SnapshotCopy::Describe(const OpenPlan& plan) {
  SnapshotFacts* const facts = mutable_facts();
  std::vector<std::string>* const notes = &facts->notes;
  for (ColumnFamilyHandle* handle : handles_) {
    for (const FamilyOpening& family : plan.families) {
      if (family.wanted && family.name == handle->GetName()) {
        facts->families.push_back({family.name, handle, family.source,
                                   family.unknown_merge_operator});
      }
    }
  }
  facts->sequence = db_->GetLatestSequenceNumber();
  facts->wal_not_flushed = plan.read_only;
  facts->wal_holds_single_deletes = replay_.has_single_deletes;
  facts->wal_holds_entries = replay_.entries > 0;
  *notes = plan.notes;
  if (replay_.prepared > 0) {
    notes->push_back(
        std::to_string(replay_.prepared) +
            " prepared transactions, neither committed nor rolled back, are "
            "not in the snapshot: their coordinator can commit them only at "
            "the source");
  }
  if (replay_.is_torn_inside) {
    notes->push_back(
        replay_.torn +
        " ends inside a record and is not the newest WAL: of the entries after "
        "it, the snapshot has only those that RocksDB's recovery would replay "
        "at the source");
  }
  if (plan.read_only) {
    notes->push_back("the snapshot was opened read-only, so the entries of its "
                     "WALs stay in memory: " + plan.read_only_reason);
  }
  const OptionsText text(facts->options_text);
  if (replay_.entries > 0 && text.DatabaseOption("wal_filter", "").empty()) {
    notes->push_back(
        "OPTIONS do not say if the source's application has a wal_filter "
        "(RocksDB writes it there since 6.26): the entries of its WALs are "
        "sent as if it had none");
  }
  NoteUnknownOptions(facts->options_text, notes);
  return Status::OK();
}

}  // namespace sstferry
