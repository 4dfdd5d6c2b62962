#include "pipeline/source/snapshot_copy.h"

#include <unistd.h>

#include <chrono>

#include "format/end_state.h"
#include "pipeline/rocksdb_compat.h"
#include "pipeline/source/posix_files.h"
#include "pipeline/source/stoppable_file_system.h"
#include "rocksdb/metadata.h"

namespace sstferry {
namespace {

using rocksdb::ColumnFamilyDescriptor;
using rocksdb::ColumnFamilyHandle;
using rocksdb::DB;
using rocksdb::Status;

// A MANIFEST names a file by its path's index. Each index gets a directory
// name of its own, so that files outside the database directory show.
constexpr char kElsewhere[] = "/elsewhere-";
constexpr int kMaxPaths = 4;

uint64_t MicrosSince(std::chrono::steady_clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(
          std::chrono::steady_clock::now() - start)
          .count());
}

// RocksDB knows only the copy; the operator knows only the source.
std::string NameSource(std::string text, const std::string& copy,
                       const std::string& source) {
  for (size_t at = text.find(copy); at != std::string::npos;
       at = text.find(copy, at + source.size())) {
    text.replace(at, copy.size(), source);
  }
  return text;
}

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

Status CheckPlaced(const std::string& name, const std::string& path) {
  return path.find(kElsewhere) == std::string::npos
             ? Status::OK()
             : MakeStatus(EndState::kRefused,
                          name + " lies outside the database directory "
                          "(db_paths or cf_paths): a source with files "
                          "elsewhere is refused");
}

// RocksDB names SST files "/000012.sst" and blob files "000013.blob".
std::string BareName(const std::string& name) {
  return name.substr(name.rfind('/') + 1);
}

Status AddFiles(DB* db, ColumnFamilyHandle* handle,
                std::vector<LiveFile>* files) {
  rocksdb::ColumnFamilyMetaData family;
  db->GetColumnFamilyMetaData(handle, &family);
  for (const auto& level : family.levels) {
    for (const auto& file : level.files) {
      const std::string name = BareName(file.name);
      const Status status = CheckPlaced(name, file.db_path);
      if (!status.ok()) {
        return status;
      }
      files->push_back({name, file.size});
    }
  }
  for (const auto& blob : family.blob_files) {
    const std::string name = BareName(blob.blob_file_name);
    const Status status = CheckPlaced(name, blob.blob_file_path);
    if (!status.ok()) {
      return status;
    }
    files->push_back({name, blob.blob_file_size});
  }
  return Status::OK();
}

// Replaying a WAL with merge operands needs their operator.
std::string MissingOperator(const Status& status, const OpenPlan& plan) {
  if (status.ToString().find("merge_operator") == std::string::npos) {
    return std::string();
  }
  for (const FamilyOpening& family : plan.families) {
    if (family.wanted && !family.unknown_merge_operator.empty()) {
      return "column family '" + family.name +
             "': its merge operator is " + family.unknown_merge_operator +
             ", which this process does not have, and merge operands are in "
             "the WAL";
    }
  }
  return std::string();
}

bool IsComparatorMismatch(const Status& status) {
  return status.ToString().find("does not match existing comparator") !=
         std::string::npos;
}

Status OpenError(const Status& status, const OpenPlan& plan,
                 const std::string& source, const std::string& copy,
                 const std::string& dropped) {
  const std::string operands = MissingOperator(status, plan);
  if (!operands.empty()) {
    return MakeStatus(EndState::kRefused, source + ": " + operands);
  }
  const EndState state = status.IsCorruption()     ? EndState::kCorrupt
                         : status.IsNoSpace()      ? EndState::kNoSpace
                         : status.IsNotSupported() ? EndState::kRefused
                                                   : EndState::kSourceError;
  std::string message = MessageOf(status);
  if (!dropped.empty()) {
    message += " (" + dropped + ")";
  }
  return MakeStatus(state, "cannot open the copy of " + source + ": " +
                               NameSource(message, copy, source));
}

}  // namespace

SnapshotCopy::~SnapshotCopy() { Close(); }

void SnapshotCopy::Close() {
  families_.clear();
  for (ColumnFamilyHandle* handle : handles_) {
    // Handles of the own database; there is nobody to tell.
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

}  // namespace

Status SnapshotCopy::Take(const SnapshotOptions& options,
                          const PrivateDir& dir, Attempt* attempt) {
  Close();
  counters_.attempts++;
  const auto start = std::chrono::steady_clock::now();
  SnapshotFiles files(options.database_dir, dir.held(), dir.db());
  files.set_cancelled(options.cancelled);
  OpenPlan plan;
  const auto logger = std::make_shared<DropLogger>();
  Status status = TakeFiles(options, dir, &files, &plan, attempt);
  nothing_found_ = files.nothing_found();
  counters_.copy_micros = MicrosSince(start);
  if (!status.ok() || attempt->again) {
    counters_.retries += attempt->again ? 1 : 0;
    return WithContext(status, EndState::kSourceError, options.database_dir);
  }
  Status stopped = CheckStopped(options);
  if (!stopped.ok()) {
    return stopped;
  }
  counters_.wal_files = files.wal_files();
  counters_.wal_bytes_copied = files.wal_bytes();
  counters_.files_linked = files.linked_files();
  options_text_ = files.options_text();
  if (plan.read_only && files.wal_bytes() > options.max_read_only_wal_bytes) {
    return MakeStatus(
        EndState::kRefused,
        options.database_dir + ": " + plan.read_only_reason +
            "; the other families can then only be read with their WALs in "
            "memory: expected at most " +
            std::to_string(options.max_read_only_wal_bytes) +
            " bytes of WAL, found " + std::to_string(files.wal_bytes()));
  }
  const auto open_start = std::chrono::steady_clock::now();
  plan.db.info_log = logger;
  UseStoppableEnv(options, &plan);
  const OpenLimits limits{options.write_buffer_bytes, options.max_open_files};
  BoundWriteBuffers(files.wal_bytes(), limits, &plan);
  read_only_ = plan.read_only;
  status = read_only_ ? OpenReadOnly(dir.db(), plan)
                      : OpenAndFlush(dir.db(), plan);
  counters_.flush_micros = MicrosSince(open_start);
  // Whatever RocksDB says of files that could not be read any more.
  stopped = CheckStopped(options);
  if (!stopped.ok()) {
    Close();
    return stopped;
  }
  if (!status.ok()) {
    Close();
    return OpenError(status, plan, options.database_dir, dir.db(),
                     logger->TakeDropped());
  }
  status = files.ReleaseHeld();
  return status.ok() ? Describe(options, plan) : status;
}

// The longest step follows; its reads and writes fail once it is not wanted any
// more.
void SnapshotCopy::UseStoppableEnv(const SnapshotOptions& options,
                                   OpenPlan* plan) {
  if (options.cancelled) {
    env_ = rocksdb::NewCompositeEnv(MakeStoppableFileSystem(
        rocksdb::FileSystem::Default(), options.cancelled,
        options.read_bytes));
    plan->db.env = env_.get();
  }
}

Status SnapshotCopy::Reopen(const SnapshotOptions& options,
                            const HeldSnapshotState& state,
                            const PrivateDir& dir) {
  bool has_options = false;
  Status status = ReadSmallFile(dir.options(), kMaxOptionsFileBytes,
                                &has_options, &options_text_);
  OpenPlan plan;
  bool incomplete = false;
  const OpenLimits limits{options.write_buffer_bytes, options.max_open_files};
  if (status.ok()) {
    status = PlanOpening(dir.db(), has_options ? dir.options() : "",
                         options_text_, options.families, options.registry,
                         limits, &plan, &incomplete);
  }
  if (status.ok() && incomplete) {
    status = MakeStatus(EndState::kSourceError,
                        "OPTIONS does not describe every column family");
  }
  if (!status.ok()) {
    return status;
  }
  if (state.read_only && !plan.read_only) {
    plan.read_only = true;
    plan.read_only_reason = "as it was taken";
  }
  plan.db.info_log = std::make_shared<DropLogger>();
  UseStoppableEnv(options, &plan);
  BoundWriteBuffers(state.read_only ? state.wal_bytes : 0, limits, &plan);
  read_only_ = plan.read_only;
  status = read_only_ ? OpenReadOnly(dir.db(), plan)
                      : OpenAndFlush(dir.db(), plan);
  if (status.ok()) status = CheckStopped(options);
  if (!status.ok()) {
    Close();
    return status;
  }
  database_id_ = state.database_id;
  counters_.wal_bytes_copied = state.wal_bytes;
  return Describe(options, plan);
}

Status SnapshotCopy::TakeFiles(const SnapshotOptions& options,
                               const PrivateDir& dir, SnapshotFiles* files,
                               OpenPlan* plan, Attempt* attempt) {
  Status status = files->Pin(attempt);
  if (!status.ok() || attempt->again) {
    return status;
  }
  const OpenLimits limits{options.write_buffer_bytes, options.max_open_files};
  bool incomplete = false;
  status = PlanOpening(dir.db(), files->options_path(), files->options_text(),
                       options.families, options.registry, limits, plan,
                       &incomplete);
  if (incomplete) {
    attempt->again = true;
    attempt->reason =
        "OPTIONS does not describe every column family of the MANIFEST";
    return Status::OK();
  }
  if (!status.ok()) {
    return status;
  }
  std::vector<LiveFile> live;
  status = ListLiveFiles(dir.db(), files->has_identity(), plan, &live);
  if (status.ok()) status = files->Place(live, attempt);
  counters_.live_files = live.size();
  if (status.ok() && !attempt->again) status = files->CopyWals(attempt);
  return status;
}

// Opens the copied MANIFEST, and nothing else: no WAL and no table is there
// yet. RocksDB's public way to learn which files it names.
Status SnapshotCopy::ListLiveFiles(const std::string& directory,
                                   bool has_identity, OpenPlan* plan,
                                   std::vector<LiveFile>* files) {
  OpenPlan listing = *plan;
  listing.db.paranoid_checks = false;  // the tables are missing, on purpose
  listing.db.info_log = std::make_shared<DropLogger>();
  for (int i = 0; i < kMaxPaths; i++) {
    listing.db.db_paths.emplace_back(
        i == 0 ? directory : directory + kElsewhere + std::to_string(i),
        UINT64_MAX);
  }
  Status status = OpenReadOnly(directory, listing);
  if (IsComparatorMismatch(status) && !plan->read_only) {
    // Without OPTIONS the families that are not wanted may be the reason.
    plan->read_only = listing.read_only = true;
    plan->read_only_reason = status.ToString();
    status = OpenReadOnly(directory, listing);
  }
  if (IsComparatorMismatch(status)) {
    return MakeStatus(EndState::kRefused,
                      "a comparator this process does not have: " +
                          status.ToString());
  }
  if (!status.ok()) {
    return WithContext(status, EndState::kSourceError,
                       "cannot read the MANIFEST");
  }
  for (ColumnFamilyHandle* handle : handles_) {
    if (status.ok()) status = AddFiles(db_.get(), handle, files);
  }
  if (status.ok()) {
    status = db_->GetDbIdentity(database_id_);
  }
  Close();
  if (status.ok() && !has_identity) {
    // An id that is not the MANIFEST's is another one at each opening.
    const std::string first = database_id_;
    unlink((directory + "/IDENTITY").c_str());
    status = OpenReadOnly(directory, listing);
    if (status.ok()) status = db_->GetDbIdentity(database_id_);
    Close();
    if (database_id_ != first) database_id_.clear();
  }
  return status;
}

Status SnapshotCopy::OpenReadOnly(const std::string& directory,
                                  const OpenPlan& plan) {
  return DB::OpenForReadOnly(plan.db, directory, Descriptors(plan), &handles_,
                             IntoDb(&db_));
}

Status SnapshotCopy::OpenAndFlush(const std::string& directory,
                                  const OpenPlan& plan) {
  Status status = DB::Open(plan.db, directory, Descriptors(plan), &handles_,
                           IntoDb(&db_));
  rocksdb::FlushOptions flush;
  flush.wait = true;
  flush.allow_write_stall = true;
  for (ColumnFamilyHandle* handle : handles_) {
    if (status.ok()) status = db_->Flush(flush, handle);
  }
  return status;
}

Status SnapshotCopy::Describe(const SnapshotOptions& options,
                              const OpenPlan& plan) {
  for (ColumnFamilyHandle* handle : handles_) {
    for (const FamilyOpening& family : plan.families) {
      if (family.wanted && family.name == handle->GetName()) {
        families_.push_back({family.name, handle, family.source,
                             family.unknown_merge_operator});
      }
    }
  }
  sequence_ = db_->GetLatestSequenceNumber();
  notes_.clear();
  if (!options.was_flushed) {
    notes_.push_back(
        "writes made without WAL and not yet flushed are not in the snapshot");
  }
  if (plan.families.size() > 1 && !plan.atomic_flush) {
    notes_.push_back(
        "where writes bypass the WAL, one cut across column families is not "
        "guaranteed (atomic_flush is off)");
  }
  if (read_only_) {
    notes_.push_back("opened read-only, WAL entries stay in memory: " +
                     plan.read_only_reason);
  }
  return Status::OK();
}

Status SnapshotCopy::PermanentFault(const SnapshotOptions& options,
                                    const Attempt& attempt) const {
  if (nothing_found_) {
    return MakeStatus(EndState::kRefused,
                      attempt.reason + ", as is every other file it names: "
                      "they lie elsewhere (db_paths, cf_paths), which is "
                      "refused, or they are lost");
  }
  return MakeStatus(EndState::kSourceError, attempt.reason);
}

}  // namespace sstferry
