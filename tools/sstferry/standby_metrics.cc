#include "tools/sstferry/standby_metrics.h"

#include <algorithm>
#include <ctime>

namespace sstferry {
namespace {

using std::chrono::steady_clock;

// A follower that works reports its state at least this often.
constexpr std::chrono::seconds kToldEvery{3};

double SecondsNow() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

double SecondsOf(uint64_t micros) { return static_cast<double>(micros) / 1e6; }

}  // namespace

StandbyMetrics::StandbyMetrics(const std::string& dir, const TlsFiles& tls)
    : dir_(dir), tls_(tls), told_(steady_clock::now()) {}

void StandbyMetrics::Take(const StandbyState& state) {
  const std::lock_guard<std::mutex> lock(mu_);
  state_ = state;
  lag_seconds_ = std::max(0.0, SecondsNow() - SecondsOf(state.moment_micros));
  view_age_seconds_ =
      std::max(0.0, SecondsNow() - SecondsOf(state.view_moment_micros));
  told_ = steady_clock::now();
}

MetricSet StandbyMetrics::Collect() const {
  const MetricLabels labels = {{"target", dir_}};
  MetricSet set(labels);
  set.SetCertificates(tls_, labels);
  if (!dir_.starts_with(kS3Scheme)) {
    set.SetDisk(metric::kReplicaDiskFree, metric::kReplicaDiskSize, labels,
                dir_);
  }
  const std::lock_guard<std::mutex> lock(mu_);
  set.Set(metric::kStandbyReceived, labels, state_.received_bytes);
  if (state_.cut_micros == 0) {
    return set;  // there is no standby yet
  }
  const std::chrono::duration<double> since = steady_clock::now() - told_;
  const double untold_seconds = since > kToldEvery ? since.count() : 0;
  if (state_.moment_micros != 0) {
    set.Set(metric::kStandbyLag, labels, lag_seconds_ + untold_seconds);
  }
  if (state_.view_moment_micros != 0) {
    set.Set(metric::kStandbyViewAge, labels,
            view_age_seconds_ + untold_seconds);
  }
  set.Set(metric::kStandbyBehind, labels, state_.behind_bytes);
  set.Set(metric::kStandbyReplay, labels, state_.replay_bytes);
  if (state_.heard_micros != 0) {
    set.Set(metric::kStandbyHeard, labels, SecondsOf(state_.heard_micros));
  }
  if (state_.heard_micros != 0 &&
      state_.source_process != SourceProcess::kUnknown) {
    set.Set(metric::kStandbySourceOpen, labels,
            state_.source_process == SourceProcess::kOpen ? 1 : 0);
  }
  set.Set(metric::kStandbyLastCut, labels, SecondsOf(state_.cut_micros));
  set.Set(metric::kStandbyLost, labels, state_.lost_sequences);
  if (state_.unknown_options) {
    set.Set(metric::kStandbyUnknownOptions, labels, *state_.unknown_options);
  }
  if (state_.is_archive) {
    if (state_.put_micros != 0) {
      set.Set(metric::kLogPut, labels, SecondsOf(state_.put_micros));
    }
    set.Set(metric::kLogSegments, labels, state_.segments);
    set.Set(metric::kLogBytes, labels, state_.segment_bytes);
    set.Set(metric::kLogGaps, labels, state_.gaps);
    set.Set(metric::kLogUnputBytes, labels, state_.unput_bytes);
    if (state_.unput_micros != 0) {
      set.Set(metric::kLogUnput, labels, SecondsOf(state_.unput_micros));
    }
  }
  if (!state_.is_archive) {
    const AuditState& audit = state_.audit;
    set.Set(metric::kStandbyFault, labels, state_.fault.empty() ? 0 : 1);
    set.Set(metric::kAuditOldest, labels, SecondsOf(audit.oldest_micros));
    set.Set(metric::kAuditSlices, labels, audit.slices);
    set.Set(metric::kAuditEntries, labels, audit.entries);
    set.Set(metric::kAuditDifferences, labels, audit.differences);
    set.Set(metric::kAuditSkipped, labels, audit.unaudited_cuts);
  }
  for (const auto& [reason, cuts] : state_.cuts) {
    set.Set(metric::kStandbyCuts, {{"target", dir_}, {"reason", reason}},
            static_cast<double>(cuts));
  }
  return set;
}

std::string StandbyMetrics::FileText() const {
  MetricSet set = Collect();
  set.Set(metric::kStandbyWritten, {{"target", dir_}},
          static_cast<double>(std::time(nullptr)));
  return set.Text();
}

}  // namespace sstferry
