// Reads the host file: a TOML file with the databases of a machine and the jobs
// that run on each database (docs/operations.md, "One file for a host").
// sstferry units makes systemd units, a cron file or manifests from this file.
// An example:
//
//   metrics-dir = "/var/lib/prometheus/node-exporter"
//
//   [[database]]
//   path = "/var/lib/app/*"
//   archive = "s3://backups/{name}"
//   push.when = "02:00"
//   prune = {when = "12:00", keep-daily = 14}
//
// Other keys of a job are options of its command: keep-daily is --keep-daily.
#pragma once

#include <string>
#include <vector>

#include "rocksdb/status.h"
#include "tools/sstferry/calendar.h"

namespace sstferry {

enum class JobKind {
  kServe, kFollow, kPush, kCheck, kDrill, kPrune, kRefresh, kSwap
};
const char* JobKindName(JobKind kind);  // "serve", "follow", ...
// Returns true for jobs that run until they are stopped, such as a server.
// Other jobs run at calendar times.
bool RunsForever(JobKind kind);
// Returns the file name of the packaged systemd unit (unit_templates.h) for
// jobs of this kind. `suffix` is "service" or "timer".
std::string PackagedUnit(JobKind kind, bool has_account,
                         const std::string& suffix);

// A path that a job reads or writes.
struct JobPath {
  std::string path;  // absolute
  bool is_written = false;
};

struct HostJob {
  JobKind kind = JobKind::kServe;
  std::string database;  // name; empty for kServe, which serves all databases
  // The name of the job's unit without a suffix, "sstferry-orders-push".
  std::string unit;
  // The command line without the program: "archive", "push", ... The words have
  // no control characters.
  std::vector<std::string> words;
  Calendar calendar;             // unset for a job that runs forever
  std::string account;           // the packaged unit's account if empty
  std::string environment_file;  // empty if there is none
  // The directories of the databases, and the paths in options.
  std::vector<JobPath> paths;
  bool has_hooks = false;    // runs the operator's commands
  std::string metrics_file;  // empty if there is none
  std::string where;         // "line 12, column 3", for messages
};

// The values of the table [kubernetes]: where the job's pods run.
struct KubernetesPlace {
  std::string image;            // empty if the host file has no such table
  std::string space;            // the namespace; kubectl's if empty
  std::string node;             // node with the directories; any node if empty
  std::string service_account;  // the default account if empty
};

struct HostFile {
  std::string path;
  std::vector<HostJob> jobs;  // in the order of the file, but kServe is first
  // Directories that match a pattern but have no database. Perhaps the
  // database's volume is not mounted.
  std::vector<std::string> without_database;
  KubernetesPlace kubernetes;
};

// Reads the host file `path` and finds the databases that match its patterns.
//   InvalidArgument  the file cannot be read or has a wrong line. The message
//                    is "--config FILE: line 12, column 3: MESSAGE".
//   kRefused         a directory in a pattern cannot be read, or no database
//                    matches a pattern
[[nodiscard]] rocksdb::Status ReadHostFile(const std::string& path,
                                           HostFile* out);
// Parses `text`, the content of the host file `path`, and finds the databases.
// Returns the same errors as ReadHostFile().
[[nodiscard]] rocksdb::Status ParseHostFile(const std::string& path,
                                            const std::string& text,
                                            HostFile* out);

}  // namespace sstferry
