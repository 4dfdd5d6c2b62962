// Code that operations share: the endpoint for a pull's options, the final
// fields of a summary, and a worker that another thread may cancel.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>

#include "format/end_state.h"
#include "pipeline/api/endpoint.h"
#include "pipeline/pull/failure_place.h"
#include "sstferry/options.h"
#include "sstferry/target.h"

namespace sstferry {

// Makes the operation that lists the names that options.source serves.
std::unique_ptr<Operation> MakeNames(const PullOptions& options);

// Makes a pull of the database options.source.name. The pull connects through
// `dialer`, which must outlive the pull.
std::unique_ptr<Operation> MakePullThrough(const PullOptions& options,
                                           Dialer* dialer);

// Makes a drill, which tests that a source can be restored. The drill clones
// options.source into a directory next to options.target_dir, calls `drill`
// with this directory, and then removes the directory, even after a failure.
// Before the call, the clone is complete, durable and, with options.verify,
// compared. options.target_dir must be missing or empty, and is not changed.
// `dialer` is null, or as for MakePullThrough().
//   kRefused  an unfinished pull into options.target_dir can still be resumed
std::unique_ptr<Operation> MakeDrill(
    const PullOptions& options,
    std::function<rocksdb::Status(const std::string& directory)> drill,
    Dialer* dialer = nullptr);

// Returns the options that open the source of a pull.
inline EndpointOptions EndpointFor(const PullOptions& options) {
  EndpointOptions endpoint =
      EndpointFor(options.source, options.lanes, options);
  endpoint.command = options.command_line;
  if (options.source.is_archive() && endpoint.snapshot_dir.empty() &&
      !options.target_dir.empty()) {
    // A restore of a part of a database first makes a temporary database, which
    // is put next to the target.
    std::error_code error;
    std::filesystem::path target =
        std::filesystem::absolute(options.target_dir, error)
            .lexically_normal();
    target = target.has_filename() ? target : target.parent_path();
    endpoint.snapshot_dir = target.parent_path().string();
  }
  return endpoint;
}

inline void FinishSummary(const rocksdb::Status& status,
                          const FailurePlace& place, Summary* summary) {
  summary->status = status;
  summary->error_where = status.ok() ? "" : place.ToString();
  summary->failed_at_source = !status.ok() && place.side.empty() &&
                              place.part == FailedPart::kSource;
  if (summary->started_at.empty()) {
    summary->started_at = NowRfc3339();
  }
  summary->finished_at = NowRfc3339();
}

inline rocksdb::Status CancelledBeforeStart() {
  return MakeStatus(EndState::kCancelled, "stopped on request");
}

// Gives progress() and Cancel() safe access to the running worker. progress()
// adds up all workers so far, so that it never decreases.
template <typename Worker>
class WorkerSlot {
 public:
  // Returns false if Cancel() was called earlier.
  bool Set(Worker* worker) {
    std::lock_guard<std::mutex> lock(mu_);
    worker_ = worker;
    return !cancelled_;
  }
  void Clear(const Progress& last) {
    std::lock_guard<std::mutex> lock(mu_);
    worker_ = nullptr;
    last_ = Behind(last);
  }
  void Cancel() {
    std::lock_guard<std::mutex> lock(mu_);
    cancelled_ = true;
    if (worker_ != nullptr) {
      worker_->Cancel();
    }
  }
  // Allows later workers to run, although Cancel() was called.
  void Renew() {
    std::lock_guard<std::mutex> lock(mu_);
    cancelled_ = false;
  }
  Progress progress() const {
    std::lock_guard<std::mutex> lock(mu_);
    return worker_ != nullptr ? Behind(worker_->progress()) : last_;
  }
  // Loads `bytes_per_sec` only after locking, so that the worker gets the
  // latest rate.
  void ApplyMaxRate(const std::atomic<uint64_t>& bytes_per_sec) {
    std::lock_guard<std::mutex> lock(mu_);
    if (worker_ != nullptr) {
      worker_->SetMaxRate(bytes_per_sec);
    }
  }

 private:
  Progress Behind(Progress progress) const {
    progress.planned_bytes = std::max(
        last_.planned_bytes, last_.done_bytes + progress.planned_bytes);
    progress.done_bytes += last_.done_bytes;
    progress.entries += last_.entries;
    progress.seconds += last_.seconds;
    progress.stages.source_work += last_.stages.source_work;
    progress.stages.source_blocked += last_.stages.source_blocked;
    progress.stages.target_blocked += last_.stages.target_blocked;
    progress.stages.target_paced += last_.stages.target_paced;
    progress.stages.target_cpu += last_.stages.target_cpu;
    progress.stages.target_disk += last_.stages.target_disk;
    return progress;
  }

  mutable std::mutex mu_;
  Worker* worker_ = nullptr;  // guarded by mu_, like all members below
  Progress last_;
  bool cancelled_ = false;
};

}  // namespace sstferry
