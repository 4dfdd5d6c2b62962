#include "sstferry/status.h"

#include <filesystem>

#include "pipeline/operation/endpoint.h"
#include "pipeline/operation/one_session.h"
#include "pipeline/source/directory/held_snapshots.h"
#include "pipeline/target/memory/target_state.h"

namespace sstferry {
namespace {

using rocksdb::Status;

namespace fs = std::filesystem;

// A server checks once a second, and may be busy removing another snapshot.
constexpr std::chrono::milliseconds kReleasePatience{15'000};

class Query : public StatusQuery {
 public:
  explicit Query(const StatusOptions& options) : options_(options) {}

  Status Run(StatusReport* report) override {
    report->status =
        options_.where.is_directory() ? Look(report) : Ask(report);
    return report->status;
  }

  void Cancel() override { session_.Cancel(); }

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
    const Status status = Endpoint::Open(endpoint, &opened);
    return !status.ok()
               ? status
               : session_.Run(opened->dialer(),
                              {options_.connect_timeout,
                               options_.peer_timeout, options_.stall_timeout,
                               std::chrono::milliseconds(0)},
                              "status",
                              [&](SourceSession* session) {
                                return session->AskHeld(opened->name(),
                                                        &report->snapshots);
                              });
  }

  const StatusOptions options_;
  OneSession session_;
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
