#include "sstferry/status.h"

#include <filesystem>

#include "format/end_state.h"
#include "pipeline/api/endpoint.h"
#include "pipeline/api/one_session.h"
#include "pipeline/disk/replica_tree.h"
#include "pipeline/pull/target_state.h"
#include "pipeline/snapshot/retained_snapshots.h"

namespace sstferry {
namespace {

using rocksdb::Status;

namespace fs = std::filesystem;

// Time for a server to release a snapshot. It checks once a second, and may be
// busy removing another snapshot.
constexpr std::chrono::milliseconds kReleaseWait{15'000};

class Query : public StatusQuery {
 public:
  Query(const StatusOptions& options, bool served)
      : options_(options), served_(served) {}

  Status Run(StatusReport* report) override {
    report->status = served_ ? AskServer(report, FailedPart::kList)
                     : options_.where.is_directory()
                         ? Look(report)
                         : AskServer(report, FailedPart::kStatus);
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
    report->foreign_owner = found.foreign_owner;
    std::error_code error;
    report->is_source =
        !found.dirs.empty() || fs::exists(directory + "/CURRENT", error);
    bool is_standby = false;
    StandbyState standby;
    RETURN_IF_ERROR(ReadStandbyState(directory, &is_standby, &standby));
    if (is_standby) report->standby = standby;
    Status status =
        ReadTargetState(directory, &report->target, &report->is_target);
    if (EndStateOf(status) == EndState::kDenied && !found.dirs.empty()) {
      // The account of a server may ask for its own snapshots of a replica.
      status = Status::OK();
      report->target = TargetState();
      report->is_target = false;
    }
    report->is_mirror =
        status.ok() && !report->is_target &&
        fs::exists(directory + "/" + kFleetRecordName, error);
    if (report->is_mirror) {
      for (const std::string& name : ListReplicas(directory)) {
        ReplicaStatus& replica = report->replicas.emplace_back();
        bool is_target = false;
        replica.name = name;
        replica.status = ReadTargetState(directory + "/" + name,
                                         &replica.state, &is_target);
      }
    }
    if (status.ok() && !report->is_source && !report->is_target &&
        !report->is_mirror) {
      return MakeStatus(EndState::kRefused,
                        directory + ": expected a database or the TARGET_DIR "
                                    "of a pull, found neither, nor " +
                            directory + ".sstferry");
    }
    return status;
  }

  Status AskServer(StatusReport* report, FailedPart asks) {
    report->is_source = true;
    std::unique_ptr<Endpoint> opened;
    const Status status = Endpoint::Open(
        EndpointFor(options_.where, EndpointOptions().lanes, options_),
        &opened);
    // Over ssh, the path may be one database or a directory of databases.
    const std::string name =
        !status.ok() || options_.where.is_ssh() ? "" : opened->name();
    return !status.ok()
               ? status
               : session_.Run(
                     opened->dialer(),
                     AskOnce(options_.timeouts, std::chrono::milliseconds(0)),
                     {asks},
                     [&](SourceSession* session) {
                       return served_ ? AskServed(session, name, report)
                                      : AskRetained(session, name,
                                                    report);
                     });
  }

  static Status AskRetained(SourceSession* session, const std::string& name,
                        StatusReport* report) {
    StatusReply retained;
    const Status status = session->AskRetained({name}, &retained);
    report->snapshots = std::move(retained.snapshots);
    report->followers = std::move(retained.followers);
    return status;
  }

  static Status AskServed(SourceSession* session, const std::string& name,
                          StatusReport* report) {
    ListReply list;
    list.names = {name};
    list.is_complete = true;
    Status status =
        name.empty() ? session->List(ListRequest(), &list) : Status::OK();
    report->served_all = status.ok() && list.is_complete;
    const std::vector<std::string>& names = list.names;
    for (size_t i = 0; status.ok() && i < names.size(); ++i) {
      FactsReply facts;
      status = session->AskFacts({names[i], {}, false, ""}, &facts);
      report->served.push_back({names[i], facts.families, facts.files,
                                facts.bytes, facts.sequence, facts.age_seconds,
                                facts.problem});
    }
    return status;
  }

  const StatusOptions options_;
  const bool served_;  // asks which databases a server serves
  OneSession session_;
};

}  // namespace

std::unique_ptr<StatusQuery> MakeStatusQuery(const StatusOptions& options) {
  return std::make_unique<Query>(options, false);
}

std::unique_ptr<StatusQuery> MakeServedQuery(const StatusOptions& options) {
  return std::make_unique<Query>(options, true);
}

Status ReleaseSnapshot(const std::string& directory,
                       const std::string& snapshot_dir, const std::string& id,
                       RetainedSnapshot* released) {
  return ReleaseSnapshotOf(directory, snapshot_dir, id, kReleaseWait,
                           released);
}

}  // namespace sstferry
