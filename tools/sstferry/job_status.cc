#include "tools/sstferry/job_status.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include <nlohmann/json.hpp>

#include "format/end_state.h"
#include "format/printable.h"
#include "format/quantity.h"
#include "sstferry/status.h"
#include "tools/sstferry/all_databases.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/measured_pull.h"
#include "tools/sstferry/metric_set.h"
#include "tools/sstferry/metrics_file.h"
#include "tools/sstferry/progress.h"
#include "tools/sstferry/result_json.h"
#include "tools/sstferry/table.h"

namespace sstferry {
namespace {

using nlohmann::ordered_json;
using rocksdb::Status;

// Maximum age of the metrics file of a server or a follower that runs. It
// writes the file every 15 seconds.
constexpr double kMetricsLateSeconds = 60;
// Limits of the lag of a follower into an archive: this many segments, but at
// least this time.
constexpr double kMaxLagSegments = 10;
constexpr double kMinLagLimitSeconds = 120;

// Returns the end of a sentence about a time far in the future. A clock was
// wrong, so the age of the time is unknown.
std::string IsAhead(double at) {
  return "is dated " + Rfc3339(static_cast<uint64_t>(at)) +
         ", ahead of this machine's clock, so its age is unknown";
}

std::string FailedAt(double at) {
  return "its last run failed at " + Rfc3339(static_cast<uint64_t>(at));
}

// Sets the state of a job from its metrics file or from its directory.
class Record {
 public:
  Record(const HostJob& job, std::time_t now, JobState* state)
      : job_(job), now_(static_cast<double>(now)), state_(state) {}

  // Reads the metrics with this label from the job's metrics file.
  void Open(const std::string& label, const std::string& value) {
    labels_ = {{label, value}};
    if (!job_.metrics_file.empty()) {
      set_.Restore(ReadMetricsFile(job_.metrics_file), label, value,
                   /*all=*/true);
    }
  }

  // Sets the last success of archive push --all, which pushes into several
  // archives: those whose addresses begin with `begin`. Each archive has its
  // own last success; takes the oldest of them.
  void SetSuccessOfAll(const std::string& begin, const MetricSpec& last) {
    std::optional<double> oldest;
    std::string problem;
    for (const auto& [archive, series] :
         SeriesBy("archive", ReadMetricsFile(job_.metrics_file))) {
      labels_ = {{"archive", archive}};
      set_.Restore(series, "archive", archive, /*all=*/true);
      const std::optional<double> at = Get(last);
      if (!archive.starts_with(Printable(begin)) || !at.has_value()) {
        continue;
      }
      oldest = std::min(oldest.value_or(*at), *at);
      const std::string one = ProblemOfRuns(*at);
      if (!one.empty() && problem.empty()) {
        problem = archive + ": " + one;
      }
    }
    if (oldest.has_value()) {
      SetGood(*oldest);
    }
    state_->problem = oldest.has_value() ? problem : WithoutRecord();
  }

  // Sets the time of the last success.
  void SetSuccess(const MetricSpec& last) {
    const std::optional<double> at = Get(last);
    if (at.has_value()) {
      SetGood(*at);
      state_->problem = ProblemOfRuns(*at);
    } else {
      state_->problem = WithoutRecord();
    }
  }

  // Sets the state of a job that is a server or a follower. While such a job
  // runs, the job sets its metric `written` to the present time. Returns true
  // if the job runs.
  bool SetRunning(const MetricSpec& written) {
    const std::optional<double> at = Get(written);
    if (!at.has_value()) {
      state_->problem = WithoutRecord();
      return false;
    }
    // A time far in the future also means that the job does not run: the time
    // was written before the machine's clock was set back.
    const bool runs = std::abs(now_ - *at) <= kMetricsLateSeconds;
    state_->problem = runs ? "" : "does not run, or writes no metrics";
    state_->last_good_seconds = static_cast<uint64_t>(*at);
    return runs;
  }

  // Sets the state of a follower into an archive. Its lag is the larger of two
  // times, as far as they are known: the time for which data has been waiting
  // to be put into the archive, and the age of the newest data that the
  // follower has received. A lag above the limit is a problem. `segment` is the
  // time after which the follower stores a segment, in seconds.
  void SetLog(double segment) {
    const bool runs = SetRunning(metric::kStandbyWritten);
    const std::optional<double> put = Get(metric::kLogPut);
    if (!state_->last_good_seconds.has_value()) {
      return;  // the file has no metrics of this follower
    }
    state_->last_good_seconds = static_cast<uint64_t>(put.value_or(0));
    if (!put.has_value()) {
      if (runs) {
        state_->problem = "has put nothing into the archive since it started";
      }
      return;
    }
    const double oldest = runs ? Get(metric::kLogUnput).value_or(now_) : *put;
    state_->lag_seconds = Since(oldest);
    if (runs && !state_->lag_seconds.has_value()) {
      state_->problem =
          "its oldest data that is not in the archive " + IsAhead(oldest);
    }
    const std::optional<double> lag = Get(metric::kStandbyLag);
    if (runs && lag.has_value()) {
      const double written = *Get(metric::kStandbyWritten);
      state_->lag_seconds =
          std::max(state_->lag_seconds.value_or(0), *lag + now_ - written);
    }
    const double limit = std::max(kMinLagLimitSeconds,
                                  kMaxLagSegments * segment);
    if (state_->problem.empty() && state_->lag_seconds.value_or(0) > limit) {
      state_->problem = "lags by " + FormatClock(*state_->lag_seconds) +
                        ", expected at most " + FormatClock(limit) +
                        ": it cannot read its source, or cannot put data into "
                        "the archive; see its log";
    }
  }

  void SetGood(double at) {
    state_->last_good_seconds = static_cast<uint64_t>(at);
    if (at > 0) {
      state_->lag_seconds = Since(at);
    }
  }

  void SetDirectory(const std::string& directory);

 private:
  // Returns the age of a time in seconds, with fractions. Returns nullopt if
  // KnownAge() does, because the time is too far in the future.
  std::optional<double> Since(double at) const {
    return KnownAge(static_cast<uint64_t>(now_), static_cast<uint64_t>(at))
                   .has_value()
               ? std::optional<double>(std::max(0.0, now_ - at))
               : std::nullopt;
  }
  // Returns the problem of a job whose last success was at the time `at`, or ""
  // if it has none. If `at` is 0, the job has never succeeded.
  std::string ProblemOf(double at) const {
    return at <= 0                 ? "has never succeeded"
           : Since(at).has_value() ? ""
                                   : "its last success " + IsAhead(at);
  }
  // Returns the problem of a job of an archive whose last success was at the
  // time `at`, or "" if it has none.
  std::string ProblemOfRuns(double at) const {
    MetricLabels labels = labels_;
    labels["action"] = JobKindName(job_.kind);
    const double failed = set_.Get(metric::kArchiveRunFailed, labels);
    const std::string problem = ProblemOf(at);
    return problem.empty() && failed > 0 ? FailedAt(failed) : problem;
  }
  // Returns the problem of a replica whose last pull by this job has failed,
  // according to the job's metrics, or "". A pull without these metrics may
  // have succeeded since then, at the time `good`.
  std::string ProblemOfPulls(const std::string& replica,
                             std::optional<uint64_t> good) {
    Open("target", TargetLabel(replica));
    const double end = Get(metric::kReplicaLastEnd).value_or(0);
    return Get(metric::kReplicaFailuresInRow).value_or(0) > 0 &&
                   end >= static_cast<double>(good.value_or(0))
               ? FailedAt(end)
               : "";
  }
  // Returns the problem of a job that has no metrics.
  std::string WithoutRecord() const {
    return !job_.metrics_file.empty()
               ? "has never run: found none of its metrics in " +
                     job_.metrics_file
           : job_.kind == JobKind::kServe
               ? ""  // the key metrics-dir is not for servers
               : "its state is unknown: the host file has no metrics-dir";
  }

  // Returns the value of a metric, or nullopt if the file does not have it.
  std::optional<double> Get(const MetricSpec& spec) const {
    return set_.Has(spec, labels_)
               ? std::optional<double>(set_.Get(spec, labels_))
               : std::nullopt;
  }
  void SetStandby(const StandbyState& standby);

  const HostJob& job_;
  const double now_;
  JobState* const state_;
  MetricLabels labels_;
  MetricSet set_;
};

void Record::SetStandby(const StandbyState& standby) {
  const double moment = static_cast<double>(standby.moment_micros) / 1e6;
  SetGood(moment);
  if (standby.source_closed && standby.is_followed) {
    state_->lag_seconds = 0;  // the standby has all data of the closed source
  }
  state_->problem = !standby.fault.empty() ? standby.fault
                    : standby.is_promoted  ? "was promoted"
                    : !standby.is_followed ? "no follower runs"
                    : moment > 0 && !state_->lag_seconds.has_value()
                        ? "its newest moment " + IsAhead(moment)
                        : "";
}

JobState ReplicaState(const TargetState& target) {
  JobState state;
  const std::optional<CompletedPull>& pull =
      target.complete.has_value() ? target.complete : target.previous;
  uint64_t finished = 0;
  if (pull.has_value() &&
      ParseRfc3339(pull->finished_at.substr(0, 19) + "Z", &finished)) {
    state.last_good_seconds = finished;
    if (pull->age_seconds.has_value()) {
      state.lag_seconds = static_cast<double>(*pull->age_seconds);
    } else if (pull->as_of_seconds.has_value()) {
      state.problem = "its last success " +
                      IsAhead(static_cast<double>(*pull->as_of_seconds));
    }
  }
  if (pull.has_value() && !pull->promoted_at.empty()) {
    state.problem = "was promoted at " + pull->promoted_at;
  }
  if (target.awaits_after_swap) {
    state.problem = "--after-swap failed or has not run";
  }
  if (target.health != ReplicaHealth::kComplete) {
    state.problem = std::string(ReplicaHealthName(target.health)) +
                    (target.fault.empty() ? "" : ": " + target.fault);
  }
  return state;
}

// Sets the state from the directory of a replica or a standby. If the directory
// contains several replicas (a mirror), takes the oldest time and the first
// problem of its replicas.
void Record::SetDirectory(const std::string& directory) {
  StatusOptions options;
  options.where.directory = directory;
  StatusReport report;
  const Status status = MakeStatusQuery(options)->Run(&report);
  if (!status.ok()) {
    state_->problem = MessageOf(status);
    if (!report.is_mirror) {
      return;
    }
  }
  if (report.standby.has_value()) {
    SetStandby(*report.standby);
    return;
  }
  if (!report.is_mirror && !report.is_target) {
    state_->problem = "expected a replica or a standby, found a database that "
                      "sstferry did not make";
    return;
  }
  if (report.is_mirror && report.replicas.empty() && status.ok()) {
    state_->problem = "has never succeeded: found no replica in " + directory;
    return;
  }
  if (!report.is_mirror) {
    const std::optional<CompletedPull>& pull = report.target.complete;
    if (job_.kind == JobKind::kFollow && pull.has_value() &&
        pull->promoted_at.empty()) {
      state_->problem = "expected a standby, found a replica";
    }
    report.replicas = {{"", Status::OK(), report.target}};
  }
  for (const ReplicaStatus& replica : report.replicas) {
    const JobState one = ReplicaState(replica.state);
    std::string problem =
        replica.status.ok() ? one.problem : MessageOf(replica.status);
    if (problem.empty()) {
      problem = ProblemOfPulls(
          directory + (replica.name.empty() ? "" : "/" + replica.name),
          one.last_good_seconds);
    }
    if (state_->problem.empty() && !problem.empty()) {
      state_->problem =
          (replica.name.empty() ? "" : replica.name + ": ") + problem;
    }
    if (one.last_good_seconds.has_value()) {
      state_->last_good_seconds =
          std::min(state_->last_good_seconds.value_or(UINT64_MAX),
                   *one.last_good_seconds);
    }
    if (one.lag_seconds.has_value()) {
      state_->lag_seconds =
          std::max(state_->lag_seconds.value_or(0), *one.lag_seconds);
    }
  }
}

JobState StateOf(const HostJob& job, std::time_t now) {
  JobState state;
  state.database = job.database;
  state.kind = job.kind;
  state.when = job.calendar.text;
  Record record(job, now, &state);
  // Parsing cannot fail, because ReadHostFile() has checked the command lines.
  const std::vector<std::string> words(job.words.begin() + 1, job.words.end());
  ArchiveArguments archive;
  FollowArguments follow;
  ServeArguments serve;
  if (job.kind == JobKind::kServe && ParseServe(words, &serve).ok()) {
    record.Open("listen", ToString(serve.listen));
    record.SetRunning(metric::kSourceWritten);
  } else if (job.words[0] == "archive" && ParseArchive(words, &archive).ok()) {
    const StoreAddress& where = archive.options.store.where;
    if (archive.all) {
      record.SetSuccessOfAll(ArchivesBegin(where), metric::kArchiveLastPush);
      return state;
    }
    record.Open("archive", where.ToString());
    record.SetSuccess(job.kind == JobKind::kPush    ? metric::kArchiveLastPush
                      : job.kind == JobKind::kCheck ? metric::kArchiveLastCheck
                      : job.kind == JobKind::kDrill ? metric::kArchiveLastDrill
                                                    : metric::kArchiveLastPrune);
  } else if (job.kind == JobKind::kFollow && !job.words[2].starts_with("/") &&
             ParseFollow(words, &follow).ok()) {
    record.Open("target", follow.options.store.where.ToString());
    record.SetLog(
        std::chrono::duration<double>(follow.options.segment).count());
  } else if (job.words.size() > 2) {
    record.SetDirectory(job.words[2]);
  }
  return state;
}

std::string Known(const std::string& text) { return text.empty() ? "-" : text; }

}  // namespace

std::vector<JobState> ReadJobStates(const HostFile& host, std::time_t now) {
  std::vector<JobState> states;
  for (const HostJob& job : host.jobs) {
    states.push_back(StateOf(job, now));
  }
  return states;
}

Status StatusOfJobs(const HostFile& host, const std::vector<JobState>& jobs) {
  const auto wrong = std::count_if(
      jobs.begin(), jobs.end(),
      [](const JobState& job) { return !job.problem.empty(); });
  return wrong == 0
             ? Status::OK()
             : MakeStatus(EndState::kRefused,
                          host.path + ": expected jobs without a problem, "
                                      "found " +
                              std::to_string(wrong) + " of " +
                              FormatCount(jobs.size(), "job") + " with one");
}

std::string JobStatesText(const HostFile& host,
                          const std::vector<JobState>& jobs) {
  std::vector<std::vector<std::string>> rows = {
      {"DATABASE", "JOB", "LAST GOOD", "LAG", "WHEN"}};
  std::string problems;
  for (const JobState& job : jobs) {
    const std::string name = Known(Printable(job.database));
    rows.push_back(
        {name, JobKindName(job.kind),
         !job.last_good_seconds.has_value() ? "-"
         : *job.last_good_seconds == 0      ? "never"
                                            : Rfc3339(*job.last_good_seconds),
         job.lag_seconds.has_value() ? FormatClock(*job.lag_seconds) : "-",
         Known(Printable(job.when))});
    if (!job.problem.empty()) {
      problems += "problem: " + name + ": " + JobKindName(job.kind) + ": " +
                  Printable(job.problem) + "\n";
    }
  }
  return "jobs of " + Printable(host.path) + "\n" + Table(rows) + problems;
}

std::string JobStatesJson(const HostFile& host,
                          const std::vector<JobState>& jobs) {
  ordered_json json = ResultJson("status", StatusOfJobs(host, jobs), "");
  json["host_file"] = host.path;
  json["jobs"] = ordered_json::array();
  for (const JobState& job : jobs) {
    json["jobs"].push_back(
        {{"database", OrNull(job.database)},
         {"job", JobKindName(job.kind)},
         {"last_good", OrNull(Rfc3339(job.last_good_seconds.value_or(0)))},
         {"lag_seconds", OrNull(job.lag_seconds)},
         {"when", OrNull(job.when)},
         {"problem", OrNull(job.problem)}});
  }
  return DumpJson(json);
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
    set.Set(metric::kJobProblem, labels, job.problem.empty() ? 0 : 1);
  }
  return set.Text();
}

}  // namespace sstferry
