#include "sstferry/status.h"

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <system_error>

#include "format/end_state.h"
#include "pipeline/api/endpoint.h"
#include "pipeline/api/one_session.h"
#include "pipeline/base/standby_record.h"
#include "pipeline/disk/replica_tree.h"
#include "pipeline/pull/target_state.h"
#include "pipeline/snapshot/database_tree.h"
#include "pipeline/snapshot/retained_snapshots.h"

namespace sstferry {
namespace {

using rocksdb::Status;

namespace fs = std::filesystem;

// Maximum time in which a server releases a snapshot. The server looks once a
// second, and may be busy with the removal of another snapshot.
constexpr std::chrono::milliseconds kReleaseWait{15'000};

class Query : public StatusQuery {
 public:
  Query(const StatusOptions& options, bool served)
      : options_(options), served_(served) {}

  Status Run(StatusReport* report) override {
    report->status = served_ ? ListServed(report)
                     : options_.where.is_directory() ? Look(report)
                                                     : AskRetained(report);
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
    report->is_source = !found.dirs.empty() || HasCurrent(directory);
    bool is_standby = false;
    StandbyState standby;
    RETURN_IF_ERROR(ReadStandbyState(directory, &is_standby, &standby));
    if (is_standby) report->standby = standby;
    Status status =
        ReadTargetState(directory, &report->target, &report->is_target);
    if (is_standby && !report->target.fault.empty()) {
      report->standby->fault = report->target.fault;  // also if not recorded
    }
    if (EndStateOf(status) == EndState::kDenied && !found.dirs.empty()) {
      // The account of a server may be unable to read a replica's workspace. It
      // can still list the server's own snapshots of the replica.
      status = Status::OK();
      report->target = TargetState();
      report->is_target = false;
    }
    report->is_mirror =
        status.ok() && !report->is_target &&
        fs::exists(directory + "/" + kFleetRecordName, error);
    if (report->is_mirror) {
      return LookAtReplicas(directory, report);
    }
    if (status.ok() && !report->is_source && !report->is_target) {
      return MakeStatus(EndState::kRefused,
                        directory + ": expected a database or the TARGET_DIR "
                                    "of a pull, found neither, nor " +
                            directory + ".sstferry");
    }
    return status;
  }

  // Reads the state of each replica that a mirror has or should have.
  static Status LookAtReplicas(const std::string& directory,
                               StatusReport* report) {
    std::unique_ptr<ReplicaTree> tree;
    FleetRecord record;
    bool has_record = false;
    Status status = ReplicaTree::Look(directory, &tree);
    if (tree != nullptr) {
      status = tree->ReadRecord(&has_record, &record);
    }
    std::set<std::string> names;
    const Status searched = FindReplicas(directory, &names);
    std::erase_if(record.missed,
                  [](const auto& one) { return one.second != 0; });
    for (const auto& [name, unused] : record.missed) {
      names.insert(name);
    }
    for (const std::string& name : names) {
      const std::string path = directory + "/" + name;
      ReplicaStatus& replica = report->replicas.emplace_back();
      bool is_target = false;
      replica.name = name;
      replica.status = ReadTargetState(path, &replica.state, &is_target);
      std::error_code error;
      if (replica.status.ok() && !is_target && record.missed.contains(name) &&
          !fs::exists(path + "/CURRENT", error)) {
        replica.status = MakeStatus(
            EndState::kRefused,
            path + ": expected a replica, because the last run's source has "
                   "its database, found none (is a volume not mounted?)");
      }
    }
    return status.ok() ? searched : status;
  }

  // Lists the databases of a server. If the address is a directory that is no
  // database itself, lists the databases below it.
  Status ListServed(StatusReport* report) {
    const std::string& directory = options_.where.directory;
    EndpointOptions endpoint = EndpointFor(
        options_.where, EndpointOptions().lanes, options_);
    DatabaseTree tree;
    tree.is_complete = true;
    if (options_.where.is_directory()) {
      RETURN_IF_ERROR(FindLocal(directory, &endpoint.is_tree, &tree));
    }
    RETURN_IF_ERROR(Ask(
        endpoint, FailedPart::kList, report,
        [&](SourceSession* session, const std::string& name) {
          return AskServed(session,
                           name.empty() || endpoint.is_tree
                               ? tree.names
                               : std::vector<std::string>{name},
                           report);
        }));
    report->served_all &= tree.is_complete;
    if (report->served.size() != 1 || endpoint.is_tree) {
      return Status::OK();
    }
    ServedState& only = report->served[0];
    if (options_.where.is_directory() ||
        (options_.where.is_ssh() && only.name == kStdioDatabase)) {
      // No server has named the database, so uses the name of its directory.
      std::error_code error;
      only.name = fs::absolute(directory + "/", error)
                      .lexically_normal()
                      .parent_path()
                      .filename();
    }
    return options_.where.is_directory() && !only.problem.empty()
               ? MakeStatus(EndState::kRefused, only.problem)
               : Status::OK();
  }

  // If `directory` is a database, sets *is_tree to false. Otherwise finds the
  // databases below it.
  Status FindLocal(const std::string& directory, bool* is_tree,
                   DatabaseTree* tree) const {
    std::error_code error;
    *is_tree = !fs::exists(directory + "/CURRENT", error) && !error &&
               !IsStandby(directory) && fs::is_directory(directory, error);
    if (!*is_tree) {
      return Status::OK();
    }
    RETURN_IF_ERROR(FindDatabases(directory, tree));
    return !tree->names.empty()
               ? Status::OK()
               : MakeStatus(EndState::kRefused,
                            directory + ": expected a database, or a directory "
                                        "with databases below it, found "
                                        "neither");
  }

  Status AskRetained(StatusReport* report) {
    report->is_server = !options_.where.is_ssh();
    return Ask(EndpointFor(options_.where, EndpointOptions().lanes, options_),
               FailedPart::kStatus, report,
               [report](SourceSession* session, const std::string& name) {
                 StatusReply retained;
                 const Status status = session->AskRetained({name}, &retained);
                 report->snapshots = std::move(retained.snapshots);
                 report->followers = std::move(retained.followers);
                 return status;
               });
  }

  // Calls `ask` with a session and a database's name. An empty name means all
  // databases.
  template <typename Question>
  Status Ask(const EndpointOptions& endpoint, FailedPart asks,
             StatusReport* report, const Question& ask) {
    report->is_source = true;
    std::unique_ptr<Endpoint> opened;
    RETURN_IF_ERROR(Endpoint::Open(endpoint, &opened));
    // Over ssh, it is unknown whether the path is one database or a directory
    // of databases. So asks for all.
    const std::string name = options_.where.is_ssh() ? "" : opened->name();
    return session_.Run(
        opened->dialer(),
        AskOnce(options_.timeouts, std::chrono::milliseconds(0)), {asks},
        [&](SourceSession* session) { return ask(session, name); });
  }

  // `names` are the databases; empty: all databases that this side may read.
  static Status AskServed(SourceSession* session,
                          const std::vector<std::string>& names,
                          StatusReport* report) {
    ListReply list;
    list.names = names;
    list.is_complete = true;
    Status status =
        names.empty() ? session->List(ListRequest(), &list) : Status::OK();
    report->served_all = status.ok() && list.is_complete;
    for (size_t i = 0; status.ok() && i < list.names.size(); ++i) {
      const std::string& name = list.names[i];
      FactsReply facts;
      status = session->AskFacts({name, {}, false, ""}, &facts);
      report->served.push_back({name, facts.families, facts.files, facts.bytes,
                                facts.sequence, facts.age_seconds,
                                facts.problem});
    }
    return status;
  }

  const StatusOptions options_;
  const bool served_;  // true: lists the databases that a server serves
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
