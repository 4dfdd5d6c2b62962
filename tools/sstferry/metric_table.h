// Every metric that sstferry shows, with its name, type, labels and help.
// docs/metrics.md explains them; a test holds the two in step.
#pragma once

#include <vector>

namespace sstferry {

enum class MetricKind { kCounter, kGauge };

struct MetricSpec {
  const char* name;
  MetricKind kind;
  const char* labels;  // names, separated by ", "
  const char* help;
  // Kept in the file of --metrics-file from run to run.
  bool lasts = false;
};

namespace metric {

extern const MetricSpec kBuildInfo;

extern const MetricSpec kServeTransfers;
extern const MetricSpec kServeInterruptions;
extern const MetricSpec kServeActive;
extern const MetricSpec kServeEntries;
extern const MetricSpec kServeSstBytes;
extern const MetricSpec kServeWireBytes;
extern const MetricSpec kServeStages;
extern const MetricSpec kServeSnapshots;
extern const MetricSpec kServePinnedBytes;
extern const MetricSpec kServeOldestSnapshot;
extern const MetricSpec kServeDiskFree;
extern const MetricSpec kServeDiskSize;
extern const MetricSpec kServeMinFree;
extern const MetricSpec kServeLastSuccess;

extern const MetricSpec kPullInfo;
extern const MetricSpec kPullRuns;
extern const MetricSpec kPullFailuresInRow;
extern const MetricSpec kPullRetries;
extern const MetricSpec kPullWireBytes;
extern const MetricSpec kPullLastSuccess;
extern const MetricSpec kPullLastEnd;
extern const MetricSpec kPullReplicaTaken;
extern const MetricSpec kPullReplicaFault;
extern const MetricSpec kPullRunning;
extern const MetricSpec kPullPlannedBytes;
extern const MetricSpec kPullDoneBytes;
extern const MetricSpec kPullDuration;
extern const MetricSpec kPullBytes;
extern const MetricSpec kPullEntries;
extern const MetricSpec kPullStages;
extern const MetricSpec kPullWriteBlocked;
extern const MetricSpec kPullOutage;
extern const MetricSpec kPullCompactionDebt;
extern const MetricSpec kPullPeakMemory;

}  // namespace metric

// All of the above, in the order in which they are shown.
const std::vector<const MetricSpec*>& AllMetrics();
// Null: there is none of that name.
const MetricSpec* FindMetric(const char* name);

}  // namespace sstferry
