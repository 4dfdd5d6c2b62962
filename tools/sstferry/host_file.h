// The file that describes all jobs of a host (docs/operations.md, "One file for
// a host"): databases by path or pattern, and the jobs of each.
//
//   metrics-dir = "/var/lib/prometheus/node-exporter"
//
//   [[database]]
//   path = "/var/lib/app/*"
//   archive = "s3://backups/{name}"
//   push.when = "02:00"
//   prune = {when = "12:00", keep-daily = 14}
//
// A job's other keys are its command's options, under the same names.
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
// Returns true for jobs that run until they are stopped; the others run at
// calendar times.
bool RunsForever(JobKind kind);
// Returns the name of a job's packaged unit (unit_templates.h): `suffix` is
// "service" or "timer".
std::string PackagedUnit(JobKind kind, bool has_account,
                         const std::string& suffix);

// A path that a job uses.
struct JobPath {
  std::string path;  // absolute
  bool is_written = false;
};

struct HostJob {
  JobKind kind = JobKind::kServe;
  std::string database;  // name; empty: serve, for all databases
  // The name of its unit without a suffix: "sstferry-orders-push".
  std::string unit;
  // The command line after the program: "archive", "push", ... No word has a
  // control character.
  std::vector<std::string> words;
  Calendar calendar;             // unset for a job that runs forever
  std::string account;           // empty: the packaged unit's account
  std::string environment_file;  // empty: none
  // The databases' directories, and the paths in options.
  std::vector<JobPath> paths;
  bool has_hooks = false;    // runs the operator's commands
  std::string metrics_file;  // empty: none
  std::string where;         // "line 12, column 3", for messages
};

// The table [kubernetes].
struct KubernetesPlace {
  std::string image;            // empty: there is no table
  std::string space;            // empty: kubectl's namespace
  std::string node;             // node with the directories; empty: any
  std::string service_account;  // empty: the default one
};

struct HostFile {
  std::string path;
  std::vector<HostJob> jobs;  // in the order of the file; serve first
  // Directories that match a pattern and have no database, perhaps because its
  // volume is not mounted.
  std::vector<std::string> without_database;
  KubernetesPlace kubernetes;
};

// Reads the file and finds the databases that match its patterns.
//   InvalidArgument  a wrong line, as in arguments.h: "--config FILE: line 12,
//                    column 3: MESSAGE"
//   kRefused         a directory in a pattern cannot be read, or no database
//                    matches a pattern
[[nodiscard]] rocksdb::Status ReadHostFile(const std::string& path,
                                           HostFile* out);
// Parses `text`, the content of the file `path`, and finds the databases.
// Errors: as for ReadHostFile().
[[nodiscard]] rocksdb::Status ParseHostFile(const std::string& path,
                                            const std::string& text,
                                            HostFile* out);

}  // namespace sstferry
