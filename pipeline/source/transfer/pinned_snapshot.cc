#include "pipeline/source/transfer/pinned_snapshot.h"

#include <filesystem>
#include <system_error>

#include "format/end_state.h"
#include "pipeline/source/directory/lease_file.h"
#include "pipeline/source/transfer/transfer.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Returns the bytes of table and blob files, each of which may keep a file of
// the source alive.
uint64_t PinnedBytes(const std::string& directory) {
  uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(directory + "/db", error)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".sst" || extension == ".blob") {
      const uint64_t size = entry.file_size(error);
      bytes += error ? 0 : size;
    }
  }
  return bytes;
}

}  // namespace

PinnedSnapshot::PinnedSnapshot(const ServedDatabase& database,
                               const ServeOptions& serve,
                               const OpenRequest& request,
                               std::function<bool()> cancelled)
    : database_(database),
      serve_(serve),
      families_(request.families),
      as_files_(request.mode == TransferMode::kClone),
      cancelled_(std::move(cancelled)) {}

PinnedSnapshot::PinnedSnapshot(const ServedDatabase& database,
                               const ServeOptions& serve, const Lease& lease,
                               std::unique_ptr<PrivateDir> dir,
                               std::function<bool()> cancelled)
    : database_(database),
      serve_(serve),
      families_(lease.request.families),
      as_files_(lease.request.mode == TransferMode::kClone),
      cancelled_(std::move(cancelled)),
      adopted_(lease),
      adopted_dir_(std::move(dir)) {}

PinnedSnapshot::~PinnedSnapshot() = default;

void PinnedSnapshot::Use(std::unique_ptr<Snapshot> snapshot) {
  snapshot_ = std::move(snapshot);
}

void PinnedSnapshot::Share(std::shared_ptr<Transfer> holder,
                           const PinnedSnapshot& its) {
  holder_ = std::move(holder);
  snapshot_ = its.snapshot_;
  taken_seconds_ = its.taken_seconds();
}

SnapshotOptions PinnedSnapshot::Options() {
  SnapshotOptions options;
  options.database_dir = database_.directory;
  options.snapshot_dir = serve_.snapshot_dir;
  options.wal_dir = database_.wal_dir;
  options.families = families_;
  options.as_files = as_files_;
  options.registry = serve_.registry;
  options.cancelled = cancelled_;
  options.read_bytes = &read_bytes_;
  options.log = serve_.log;
  return options;
}

Status PinnedSnapshot::Take() {
  if (taken_seconds_ == 0) {
    taken_seconds_ = adopted_.has_value()
                         ? adopted_->created_seconds
                         : LeaseRules{serve_.leases.wall_seconds, {}}.Now();
  }
  return snapshot_ != nullptr   ? Status::OK()
         : adopted_.has_value() ? TakeAdopted()
                                : TakeOwn();
}

Status PinnedSnapshot::TakeAdopted() {
  HeldSnapshotState state;
  state.sequence = adopted_->snapshot_sequence;
  state.database_id = adopted_->source_database_id;
  state.read_only = adopted_->read_only;
  state.wal_bytes = adopted_->wal_bytes;
  std::unique_ptr<Snapshot> adopted;
  const Status status = Snapshot::Adopt(Options(), state,
                                        std::move(adopted_dir_), &adopted);
  if (status.ok()) {
    snapshot_ = std::move(adopted);
    has_lease_ = true;
  }
  return status;
}

Status PinnedSnapshot::TakeOwn() {
  const SnapshotOptions options = Options();
  std::unique_ptr<Snapshot> made;
  const Status status =
      database_.db != nullptr
          ? Snapshot::FromOpenDatabase(database_.db, database_.handles,
                                       options, &made)
          : Snapshot::Create(options, &made);
  if (status.ok()) {
    snapshot_ = std::move(made);
  }
  return WithContext(status, EndState::kSourceError, "snapshot");
}

void PinnedSnapshot::Measure() {
  pinned_bytes_ = PinnedBytes(snapshot_->directory());
}

void PinnedSnapshot::Keep(bool keep) {
  if (holder_ == nullptr) {
    snapshot_->Keep(keep);
  }
}

Status PinnedSnapshot::WriteLease(Lease lease, uint64_t wall_seconds) {
  std::lock_guard<std::mutex> lock(lease_mu_);
  lease.source_database_id = snapshot_->database_id();
  lease.snapshot_sequence = snapshot_->sequence();
  lease.read_only = snapshot_->wal_not_flushed();
  lease.wal_bytes = snapshot_->counters().wal_bytes_copied;
  lease.pinned_bytes = pinned_bytes_;
  lease.created_seconds = taken_seconds_;
  lease.renewed_seconds = wall_seconds;
  Status status;
  if (!has_lease_) {
    status = snapshot_->PrepareAdoption();
  }
  if (status.ok()) {
    status = sstferry::WriteLease(snapshot_->directory(), lease);
  }
  has_lease_ = has_lease_ || status.ok();
  return status;
}

}  // namespace sstferry
