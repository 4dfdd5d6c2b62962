#include "pipeline/status.h"

#include <atomic>
#include <filesystem>
#include <mutex>

#include "pipeline/endpoint.h"
#include "pipeline/source/held_snapshots.h"
#include "pipeline/target/source_session.h"
#include "pipeline/target/target_state.h"

namespace sstferry {
namespace {

using rocksdb::Status;

namespace fs = std::filesystem;

// A server looks once a second, and may be removing another one.
constexpr std::chrono::milliseconds kReleasePatience{15'000};

class Query : public StatusQuery {
 public:
  explicit Query(const StatusOptions& options) : options_(options) {}

  Status Run(StatusReport* report) override {
    report->status =
        options_.where.is_directory() ? Look(report) : Ask(report);
    return report->status;
  }

  void Cancel() override {
    std::lock_guard<std::mutex> lock(mu_);
    cancelled_ = true;
    handshakes_.CloseAll();
    if (endpoint_ != nullptr) {
      endpoint_->dialer()->Close();
    }
    if (session_ != nullptr) {
      session_->Cancel();
    }
  }

 private:
  Status Look(StatusReport* report) {
    const std::string& directory = options_.where.directory;
    const LeasedDirs found =
        ListSnapshotsOf(directory, options_.snapshot_dir);
    for (const LeasedDir& dir : found.dirs) {
      report->snapshots.push_back(DescribeLeased(dir, LeaseRules()));
    }
    report->foreign_snapshots = found.foreign;
    std::error_code error;
    report->is_source =
        !found.dirs.empty() || fs::exists(directory + "/CURRENT", error);
    const Status status =
        ReadTargetState(directory, &report->target, &report->is_target);
    if (status.ok() && !report->is_source && !report->is_target) {
      return MakeStatus(EndState::kRefused,
                        directory + ": expected a database or the TARGET_DIR "
                                    "of a pull, found neither, nor " +
                            directory + ".sstferry");
    }
    return status;
  }

  Status Ask(StatusReport* report) {
    report->is_source = true;
    EndpointOptions endpoint;
    endpoint.address = options_.where;
    endpoint.tls = options_.tls;
    std::unique_ptr<Endpoint> opened;
    Status status = Endpoint::Open(endpoint, &opened);
    if (status.ok()) {
      {
        std::lock_guard<std::mutex> lock(mu_);
        endpoint_ = opened.get();
      }
      status = AskThere(opened.get(), report);
      std::lock_guard<std::mutex> lock(mu_);
      endpoint_ = nullptr;
    }
    return status;
  }

  Status AskThere(Endpoint* endpoint, StatusReport* report) {
    SourceSessionOptions options;
    options.connect_timeout = options_.connect_timeout;
    options.peer_timeout = options_.peer_timeout;
    options.ping_interval = options_.peer_timeout / 2;
    options.handshakes = &handshakes_;
    std::unique_ptr<SourceSession> session;
    Status status =
        cancelled_ ? Cancelled()
                   : SourceSession::Connect(endpoint->dialer(), options,
                                            &session);
    {
      std::lock_guard<std::mutex> lock(mu_);
      session_ = session.get();
      if (status.ok() && cancelled_) {
        status = Cancelled();
      }
    }
    if (status.ok()) {
      status = session->AskHeld(endpoint->name(), &report->snapshots);
    }
    if (session != nullptr) {
      session->End(status, "status");
    }
    std::lock_guard<std::mutex> lock(mu_);
    session_ = nullptr;
    return cancelled_ && !status.ok() ? Cancelled() : status;
  }

  static Status Cancelled() {
    return MakeStatus(EndState::kCancelled, "stopped on request");
  }

  const StatusOptions options_;
  std::atomic<bool> cancelled_{false};
  ChannelSet handshakes_;
  std::mutex mu_;
  Endpoint* endpoint_ = nullptr;      // under mu_
  SourceSession* session_ = nullptr;  // under mu_
};

}  // namespace

std::unique_ptr<StatusQuery> MakeStatusQuery(const StatusOptions& options) {
  return std::make_unique<Query>(options);
}

Status ReleaseSnapshot(const std::string& directory,
                       const std::string& snapshot_dir, const std::string& id,
                       HeldSnapshot* released) {
  return ReleaseSnapshotOf(directory, snapshot_dir, id, kReleasePatience,
                           released);
}

}  // namespace sstferry
