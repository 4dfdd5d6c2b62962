#include "tools/sstferry/job_status.h"

#include <algorithm>
#include <memory>

#include <nlohmann/json.hpp>

#include "format/end_state.h"
#include "format/printable.h"
#include "format/quantity.h"
#include "sstferry/status.h"
#include "tools/sstferry/metric_set.h"
#include "tools/sstferry/metrics_file.h"
#include "tools/sstferry/progress.h"
#include "tools/sstferry/table.h"

namespace sstferry {
namespace {

using nlohmann::ordered_json;
using rocksdb::Status;

// A server or a follower writes its metrics file every 15 seconds.
constexpr double kMetricsLateSeconds = 60;

double AgeOf(std::time_t now, double seconds) {
  return std::max(0.0, static_cast<double>(now) - seconds);
}

// The series of one label value in the metrics file of a job.
class Record {
 public:
  Record(const HostJob& job, const std::string& label,
         const std::string& value)
      : labels_{{label, value}} {
    if (!job.metrics_file.empty()) {
      set_.Restore(ReadMetricsFile(job.metrics_file), label, value,
                   /*all=*/true);
    }
  }

  // Returns nullopt if the file has no such series.
  std::optional<double> Get(const MetricSpec& spec) const {
    return set_.Has(spec, labels_)
               ? std::optional<double>(set_.Get(spec, labels_))
               : std::nullopt;
  }

 private:
  const MetricLabels labels_;
  MetricSet set_;
};

// Sets the times of a job whose file has the time of its last success.
void SetFromRecord(const HostJob& job, const std::string& label,
                   const std::string& value, const MetricSpec& spec,
                   std::time_t now, JobState* state) {
  const std::optional<double> last = Record(job, label, value).Get(spec);
  if (!last.has_value()) {
    return;
  }
  state->last_good_seconds = static_cast<uint64_t>(*last);
  if (*last == 0) {
    state->problem = "has never succeeded";
  } else {
    state->lag_seconds = AgeOf(now, *last);
  }
}

// Sets the state of a server or a follower from the file that it writes while
// it runs. Returns false if there is no record.
bool SetRunning(const Record& record, const MetricSpec& written,
                std::time_t now, JobState* state) {
  const std::optional<double> at = record.Get(written);
  if (!at.has_value()) {
    return false;
  }
  state->last_good_seconds = static_cast<uint64_t>(*at);
  if (AgeOf(now, *at) > kMetricsLateSeconds) {
    state->problem = "does not run, or writes no metrics";
  }
  return true;
}

void SetServer(const HostJob& job, std::time_t now, JobState* state) {
  ServeArguments serve;
  if (!ParseServe({job.words.begin() + 1, job.words.end()}, &serve).ok()) {
    return;
  }
  SetRunning(Record(job, "listen", ToString(serve.listen)),
             metric::kSourceWritten, now, state);
}

// Sets the state of a follower into an archive.
void SetLog(const HostJob& job, std::time_t now, JobState* state) {
  FollowArguments follow;
  if (!ParseFollow({job.words.begin() + 1, job.words.end()}, &follow).ok()) {
    return;
  }
  const Record record(job, "target", follow.options.store.where.ToString());
  if (!SetRunning(record, metric::kStandbyWritten, now, state)) {
    return;
  }
  const std::optional<double> put = record.Get(metric::kLogPut);
  const std::optional<double> unput = record.Get(metric::kLogUnput);
  state->last_good_seconds = static_cast<uint64_t>(put.value_or(0));
  if (!state->problem.empty() && put.has_value()) {
    state->lag_seconds = AgeOf(now, *put);
  } else if (put.has_value()) {
    state->lag_seconds = unput.has_value() ? AgeOf(now, *unput) : 0;
  }
}

void SetStandby(const StandbyState& standby, std::time_t now,
                JobState* state) {
  const double moment = static_cast<double>(standby.moment_micros) / 1e6;
  state->last_good_seconds = static_cast<uint64_t>(moment);
  if (standby.moment_micros != 0) {
    // Nothing is missing after the moment at which the source was closed.
    state->lag_seconds =
        standby.source_closed && standby.is_followed ? 0 : AgeOf(now, moment);
  }
  state->problem = !standby.fault.empty()  ? standby.fault
                   : standby.is_promoted   ? "was promoted"
                   : !standby.is_followed ? "no follower runs"
                                           : "";
}

// Returns "2026-11-28T02:04:12Z" for "2026-11-28T02:04:12.452Z".
std::string WithoutFraction(const std::string& time) {
  const size_t point = time.find('.');
  return point == std::string::npos ? time : time.substr(0, point) + "Z";
}

void SetReplica(const TargetState& target, JobState* state) {
  const std::optional<CompletedPull>& pull =
      target.complete.has_value() ? target.complete : target.previous;
  uint64_t finished = 0;
  if (pull.has_value() &&
      ParseRfc3339(WithoutFraction(pull->finished_at), &finished)) {
    state->last_good_seconds = finished;
    if (pull->age_seconds.has_value()) {
      state->lag_seconds = static_cast<double>(*pull->age_seconds);
    }
  }
  if (target.health != ReplicaHealth::kComplete) {
    state->problem = std::string(ReplicaHealthName(target.health)) +
                     (target.fault.empty() ? "" : ": " + target.fault);
  }
}

// Sets the state of a directory to the state of its oldest replica.
void SetMirror(const StatusReport& report, JobState* state) {
  for (const ReplicaStatus& replica : report.replicas) {
    JobState one;
    if (replica.status.ok()) {
      SetReplica(replica.state, &one);
    } else {
      one.problem = MessageOf(replica.status);
    }
    if (state->problem.empty() && !one.problem.empty()) {
      state->problem = replica.name + ": " + one.problem;
    }
    if (one.last_good_seconds.has_value()) {
      state->last_good_seconds = std::min(
          state->last_good_seconds.value_or(UINT64_MAX),
          *one.last_good_seconds);
    }
    if (one.lag_seconds.has_value()) {
      state->lag_seconds =
          std::max(state->lag_seconds.value_or(0), *one.lag_seconds);
    }
  }
}

void SetFromDirectory(const std::string& directory, std::time_t now,
                      JobState* state) {
  StatusOptions options;
  options.where.directory = directory;
  StatusReport report;
  const Status status = MakeStatusQuery(options)->Run(&report);
  if (!status.ok()) {
    state->problem = MessageOf(status);
  } else if (report.standby.has_value()) {
    SetStandby(*report.standby, now, state);
  } else if (report.is_mirror) {
    SetMirror(report, state);
  } else if (report.is_target) {
    SetReplica(report.target, state);
  } else {
    state->problem = "expected a replica or a standby, found a database that "
                     "sstferry did not make";
  }
}

// Returns the archive's address as metrics name it.
std::string ArchiveOf(const HostJob& job) {
  ArchiveArguments archive;
  return ParseArchive({job.words.begin() + 1, job.words.end()}, &archive).ok()
             ? archive.options.store.where.ToString()
             : "";
}

JobState StateOf(const HostJob& job, std::time_t now) {
  JobState state;
  state.database = job.database;
  state.kind = job.kind;
  if (!RunsForever(job.kind)) {
    state.next = job.calendar.NextAfter(now);
  }
  switch (job.kind) {
    case JobKind::kServe:
      SetServer(job, now, &state);
      break;
    case JobKind::kFollow:
      if (job.words[2].starts_with("/")) {
        SetFromDirectory(job.words[2], now, &state);
      } else {
        SetLog(job, now, &state);
      }
      break;
    case JobKind::kPush:
      SetFromRecord(job, "archive", ArchiveOf(job), metric::kArchiveLastPush,
                    now, &state);
      break;
    case JobKind::kCheck:
      SetFromRecord(job, "archive", ArchiveOf(job), metric::kArchiveLastCheck,
                    now, &state);
      break;
    case JobKind::kDrill:
      SetFromRecord(job, "archive", ArchiveOf(job), metric::kArchiveLastDrill,
                    now, &state);
      break;
    case JobKind::kPrune:
      SetFromRecord(job, "archive", ArchiveOf(job), metric::kArchiveLastPrune,
                    now, &state);
      break;
    case JobKind::kRefresh:
    case JobKind::kSwap:
      SetFromDirectory(job.words[2], now, &state);
      break;
  }
  return state;
}

std::string NameOf(const JobState& job) {
  return job.database.empty() ? "-" : job.database;
}

std::string TimeText(const std::optional<uint64_t>& seconds) {
  return !seconds.has_value() ? "-"
         : *seconds == 0      ? "never"
                              : Rfc3339(*seconds);
}

std::optional<uint64_t> NextOf(const JobState& job) {
  return job.next.has_value()
             ? std::optional(static_cast<uint64_t>(*job.next))
             : std::nullopt;
}

ordered_json TimeJson(const std::optional<uint64_t>& seconds) {
  return seconds.value_or(0) == 0 ? ordered_json(nullptr)
                                  : ordered_json(Rfc3339(*seconds));
}

}  // namespace

std::vector<JobState> ReadJobStates(const HostFile& host, std::time_t now) {
  std::vector<JobState> states;
  for (const HostJob& job : host.jobs) {
    states.push_back(StateOf(job, now));
  }
  return states;
}

std::string JobStatesText(const HostFile& host,
                          const std::vector<JobState>& jobs) {
  std::vector<std::vector<std::string>> rows = {
      {"DATABASE", "JOB", "LAST GOOD", "LAG", "NEXT"}};
  std::string problems;
  for (const JobState& job : jobs) {
    rows.push_back(
        {Printable(NameOf(job)), JobKindName(job.kind),
         TimeText(job.last_good_seconds),
         job.lag_seconds.has_value() ? FormatClock(*job.lag_seconds) : "-",
         TimeText(NextOf(job))});
    if (!job.problem.empty()) {
      problems += "problem: " + Printable(NameOf(job)) + ": " +
                  JobKindName(job.kind) + ": " + Printable(job.problem) + "\n";
    }
  }
  return "jobs of " + Printable(host.path) + "\n" + Table(rows) + problems;
}

std::string JobStatesJson(const HostFile& host,
                          const std::vector<JobState>& jobs) {
  ordered_json json = {{"schema", 1},         {"command", "status"},
                       {"status", "OK"},      {"exit_code", 0},
                       {"error", nullptr},    {"host_file", host.path},
                       {"jobs", ordered_json::array()}};
  for (const JobState& job : jobs) {
    ordered_json one = {{"database", nullptr},
                        {"job", JobKindName(job.kind)},
                        {"last_good", TimeJson(job.last_good_seconds)},
                        {"lag_seconds", nullptr},
                        {"next", TimeJson(NextOf(job))},
                        {"problem", nullptr}};
    if (!job.database.empty()) {
      one["database"] = job.database;
    }
    if (job.lag_seconds.has_value()) {
      one["lag_seconds"] = *job.lag_seconds;
    }
    if (!job.problem.empty()) {
      one["problem"] = job.problem;
    }
    json["jobs"].push_back(std::move(one));
  }
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) +
         "\n";
}

std::string JobStatesMetrics(const HostFile& host,
                             const std::vector<JobState>& jobs) {
  MetricSet set({{"host_file", host.path}});
  for (const JobState& job : jobs) {
    const MetricLabels labels = {{"database", job.database},
                                 {"kind", JobKindName(job.kind)}};
    if (job.last_good_seconds.has_value()) {
      set.Set(metric::kJobLastSuccess, labels,
              static_cast<double>(*job.last_good_seconds));
    }
    if (job.lag_seconds.has_value()) {
      set.Set(metric::kJobLag, labels, *job.lag_seconds);
    }
    if (job.next.has_value()) {
      set.Set(metric::kJobNext, labels, static_cast<double>(*job.next));
    }
    set.Set(metric::kJobProblem, labels, job.problem.empty() ? 0 : 1);
  }
  return set.Text();
}

}  // namespace sstferry
