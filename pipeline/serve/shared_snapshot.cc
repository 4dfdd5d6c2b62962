#include "pipeline/serve/shared_snapshot.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "format/coding.h"
#include "format/end_state.h"
#include "pipeline/base/database_open.h"
#include "pipeline/serve/served_databases.h"
#include "pipeline/snapshot/lease_file.h"
#include "pipeline/snapshot/posix_files.h"
#include "pipeline/snapshot/snapshot_origin.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Returns the size of the table and blob files in a snapshot's directory. If
// the application has deleted such a file, the link keeps its space in use.
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

// Returns the time of the last write to a MANIFEST in the directory, in seconds
// since 1970; 0: unknown. Each flush writes to the MANIFEST.
uint64_t ManifestSeconds(const std::string& directory) {
  uint64_t latest_ns = 0;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(directory, error)) {
    const std::string path = entry.path().string();
    if (entry.path().filename().string().starts_with("MANIFEST-")) {
      FileId found;  // remains 0 if the file cannot be read
      FileIdOfName(path, &found).PermitUncheckedError();
      latest_ns = std::max(latest_ns, found.modified_ns);
    }
  }
  return latest_ns / 1'000'000'000;
}

// Returns the interval of keys that a target with this request reads. Returns
// nullopt if the target may read all keys: a refresh may ask for further
// intervals, and a verify without an interval compares files.
std::optional<KeyInterval> IntervalOf(const OpenRequest& request) {
  return request.mode == TransferMode::kSeed &&
                 (request.purpose != Purpose::kVerify ||
                  !(request.interval == KeyInterval()))
             ? std::optional<KeyInterval>(request.interval)
             : std::nullopt;
}

}  // namespace

uint64_t SteadySeconds(const LeaseEnvironment& environment) {
  return environment.steady_seconds
             ? environment.steady_seconds()
             : static_cast<uint64_t>(
                   std::chrono::duration_cast<std::chrono::seconds>(
                       std::chrono::steady_clock::now().time_since_epoch())
                       .count());
}

SharedSnapshot::SharedSnapshot(const ServedDatabase& database,
                               const ServeOptions& serve,
                               const OpenRequest& request)
    : database_(database),
      serve_(serve),
      families_(request.families),
      as_files_(request.mode == TransferMode::kClone),
      interval_(IntervalOf(request)),
      kind_(KindOf(database.name, request)),
      begun_seconds_(SteadySeconds(serve.leases)) {}

SharedSnapshot::SharedSnapshot(const ServedDatabase& database,
                               const ServeOptions& serve, const Lease& lease,
                               std::unique_ptr<PrivateDir> dir)
    : database_(database),
      serve_(serve),
      families_(lease.request.families),
      as_files_(lease.request.mode == TransferMode::kClone),
      interval_(IntervalOf(lease.request)),
      kind_(KindOf(database.name, lease.request)),
      begun_seconds_(SteadySeconds(serve.leases)),
      adopted_(lease),
      adopted_path_(dir->path()),
      adopted_dir_(std::move(dir)),
      prepared_(true),
      lent_(true) {}

std::string SharedSnapshot::KindOf(const std::string& database,
                                   const OpenRequest& request) {
  std::string kind;
  PutBytes(&kind, database);
  kind.push_back(request.mode == TransferMode::kClone ? 'c' : 'k');
  for (const std::string& family : request.families) {
    PutBytes(&kind, family);
  }
  return kind;
}

bool SharedSnapshot::Serves(const std::string& database,
                            const OpenRequest& request) const {
  return KindOf(database, request) == kind_ && !failed_;
}

void SharedSnapshot::Use(std::unique_ptr<Snapshot> snapshot) {
  snapshot_ = std::move(snapshot);
  taken_ = true;
}

SnapshotOptions SharedSnapshot::Options() {
  SnapshotOptions options;
  options.database_dir = database_.directory;
  options.snapshot_dir = SnapshotDirOf(database_, serve_.snapshot_dir);
  options.wal_dir = database_.wal_dir;
  options.families = families_;
  options.as_files = as_files_;
  options.interval = interval_;
  options.registry = serve_.registry;
  options.cancelled = [this] { return readers_ == 0; };
  options.read_bytes = &read_bytes_;
  options.log = serve_.log;
  return options;
}

Status SharedSnapshot::Take() {
  std::lock_guard<std::mutex> lock(take_mu_);
  if (taken_seconds_ == 0) {
    taken_seconds_ = adopted_.has_value()  ? adopted_->created_seconds
                     : pinned_ != nullptr ? pinned_->taken_seconds()
                         : LeaseRules{serve_.leases.wall_seconds, {}}.Now();
  }
  if (taken_) {
    return Status::OK();
  }
  const Status status = adopted_.has_value() ? TakeAdopted() : TakeOwn();
  if (status.ok()) {
    if (database_.origin == nullptr) {
      pinned_bytes_ = PinnedBytes(snapshot_->own_path());
    }
    if (snapshot_->point_in_time_seconds() != 0) {
      taken_seconds_ = snapshot_->point_in_time_seconds();
    }
    taken_ = true;
  }
  failed_ = !status.ok();
  return status;
}

Status SharedSnapshot::TakeAdopted() {
  if (adopted_dir_ == nullptr) {
    return MakeStatus(EndState::kSnapshotGone,
                      "the retained snapshot cannot be opened again, because "
                      "an earlier attempt failed");
  }
  RetainedState state;
  state.sequence = adopted_->snapshot_sequence;
  state.database_id = adopted_->source_database_id;
  state.read_only = adopted_->read_only;
  state.wal_bytes = adopted_->wal_bytes;
  return Snapshot::Adopt(Options(), state, std::move(adopted_dir_),
                         &snapshot_);
}

Status SharedSnapshot::TakeOwn() {
  const SnapshotOptions options = Options();
  if (database_.origin != nullptr) {
    return database_.origin->Take(options, &snapshot_);
  }
  const Status status =
      pinned_ != nullptr ? Snapshot::OfPinned(options, *pinned_, &snapshot_)
      : database_.db != nullptr
          ? Snapshot::FromOpenDatabase(database_.db, database_.handles,
                                       options, &snapshot_)
          : Snapshot::Create(options, &snapshot_);
  if (status.ok() && database_.db == nullptr &&
      !snapshot_->wal_holds_entries() &&
      IsDatabaseOpen(database_.directory)) {
    unlogged_since_seconds_ =
        std::min<uint64_t>(ManifestSeconds(database_.directory),
                           taken_seconds_);
  }
  return WithContext(status, EndState::kSourceError, "snapshot");
}

Status SharedSnapshot::Plan(const std::string& key,
                            const std::function<Status(TransferPlan*)>& make,
                            uint64_t chunk_bytes,
                            const std::shared_ptr<SpoolBudget>& budget,
                            std::shared_ptr<const SharedPlan>* plan) {
  if (key.empty()) {
    return MakePlan(make, chunk_bytes, budget, plan);
  }
  std::lock_guard<std::mutex> lock(plan_mu_);
  std::erase_if(plans_, [](const auto& one) { return one.second.expired(); });
  const auto found = plans_.find(key);
  *plan = found == plans_.end() ? nullptr : found->second.lock();
  if (*plan == nullptr) {
    RETURN_IF_ERROR(MakePlan(make, chunk_bytes, budget, plan));
    plans_[key] = *plan;
  }
  return Status::OK();
}

Status SharedSnapshot::MakePlan(
    const std::function<Status(TransferPlan*)>& make, uint64_t chunk_bytes,
    const std::shared_ptr<SpoolBudget>& budget,
    std::shared_ptr<const SharedPlan>* plan) const {
  auto fresh = std::make_shared<SharedPlan>();
  RETURN_IF_ERROR(make(&fresh->plan));
  PartStoreOptions options;
  options.directory = snapshot_->own_path();
  options.budget = budget;
  options.chunk_bytes = chunk_bytes;
  options.free_bytes = [directory = options.directory,
                        percent = serve_.min_free_percent] {
    return FreeBytesAbove(directory, percent);
  };
  fresh->parts = std::make_unique<PartStore>(std::move(options));
  *plan = std::move(fresh);
  return Status::OK();
}

Status SharedSnapshot::Lend(std::unique_ptr<PrivateDir>* linked) {
  std::lock_guard<std::mutex> lock(lend_mu_);
  if (!prepared_) {
    RETURN_IF_ERROR(snapshot_->PrepareAdoption());
    prepared_ = true;
  }
  if (!lent_) {
    lent_ = true;
    return Status::OK();
  }
  return PrivateDir::CreateLinked(snapshot_->directory(),
                                  snapshot_->own_path(), linked);
}

void SharedSnapshot::TakeBack(bool keep) {
  std::lock_guard<std::mutex> lock(lend_mu_);
  if (!keep) {
    RemoveLease(snapshot_->own_path());
    lent_ = false;
  }
  snapshot_->Keep(keep);
}

}  // namespace sstferry
