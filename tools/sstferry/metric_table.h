// Every metric that sstferry publishes, with its name, type, labels and help.
// docs/metrics.md explains them; a test keeps both consistent.
#pragma once

#include <vector>

namespace sstferry {

enum class MetricKind { kCounter, kGauge };

struct MetricSpec {
  const char* name;
  MetricKind kind;
  const char* labels;  // names, separated by ", "
  const char* help;
  // Kept in the file of --metrics-file across runs.
  bool lasts = false;
};

namespace metric {

extern const MetricSpec kBuildInfo;
extern const MetricSpec kCertificateEnd;

extern const MetricSpec kSourceTransfers;
extern const MetricSpec kSourceInterruptions;
extern const MetricSpec kSourceActive;
extern const MetricSpec kSourceEntries;
extern const MetricSpec kSourceSstBytes;
extern const MetricSpec kSourceWireBytes;
extern const MetricSpec kSourceStages;
extern const MetricSpec kSourceSnapshots;
extern const MetricSpec kSourcePinnedBytes;
extern const MetricSpec kSourceOldestSnapshot;
extern const MetricSpec kSourceDiskFree;
extern const MetricSpec kSourceDiskSize;
extern const MetricSpec kSourceMinFree;
extern const MetricSpec kSourceLastSuccess;
extern const MetricSpec kSourceUnknownOptions;
extern const MetricSpec kSourceFollowers;
extern const MetricSpec kSourceFollowersBehind;
extern const MetricSpec kSourceFollowersLag;
extern const MetricSpec kSourceHeldWals;
extern const MetricSpec kSourceReadWals;
extern const MetricSpec kSourceChunksBuilt;
extern const MetricSpec kSourceChunksFromStore;
extern const MetricSpec kSourceWritten;

extern const MetricSpec kReplicaInfo;
extern const MetricSpec kReplicaRuns;
extern const MetricSpec kReplicaFailuresInRow;
extern const MetricSpec kReplicaRetries;
extern const MetricSpec kReplicaWireBytes;
extern const MetricSpec kReplicaLastSuccess;
extern const MetricSpec kReplicaLastEnd;
extern const MetricSpec kReplicaTaken;
extern const MetricSpec kReplicaFault;
extern const MetricSpec kReplicaDiskFree;
extern const MetricSpec kReplicaDiskSize;
extern const MetricSpec kReplicaMinFree;
extern const MetricSpec kLastRunDuration;
extern const MetricSpec kLastRunBytes;
extern const MetricSpec kLastRunEntries;
extern const MetricSpec kLastRunStages;
extern const MetricSpec kLastRunWriteBlocked;
extern const MetricSpec kLastRunOutage;
extern const MetricSpec kReplicaCompactionDebt;
extern const MetricSpec kLastRunPeakMemory;

extern const MetricSpec kStandbyLag;
extern const MetricSpec kStandbyViewAge;
extern const MetricSpec kStandbyBehind;
extern const MetricSpec kStandbyReplay;
extern const MetricSpec kStandbyReceived;
extern const MetricSpec kStandbyHeard;
extern const MetricSpec kStandbySourceOpen;
extern const MetricSpec kStandbyLastCut;
extern const MetricSpec kStandbyCuts;
extern const MetricSpec kStandbyLost;
extern const MetricSpec kStandbyUnknownOptions;
extern const MetricSpec kAuditOldest;
extern const MetricSpec kAuditSlices;
extern const MetricSpec kAuditEntries;
extern const MetricSpec kAuditDifferences;
extern const MetricSpec kAuditSkipped;
extern const MetricSpec kLogPut;
extern const MetricSpec kLogSegments;
extern const MetricSpec kLogBytes;
extern const MetricSpec kLogGaps;
extern const MetricSpec kLogUnputBytes;
extern const MetricSpec kLogUnput;
extern const MetricSpec kStandbyWritten;

extern const MetricSpec kArchiveNewestSet;
extern const MetricSpec kArchiveSets;
extern const MetricSpec kArchiveDamagedSets;
extern const MetricSpec kArchiveBytes;
extern const MetricSpec kArchiveOrphanBytes;
extern const MetricSpec kArchiveLastCheck;
extern const MetricSpec kArchivePartRead;
extern const MetricSpec kArchiveLastDrill;
extern const MetricSpec kArchiveDrillSeconds;
extern const MetricSpec kArchiveLastPush;
extern const MetricSpec kArchivePushSeconds;
extern const MetricSpec kArchivePushBytes;
extern const MetricSpec kArchivePushUploaded;
extern const MetricSpec kArchiveLastPrune;

extern const MetricSpec kJobLastSuccess;
extern const MetricSpec kJobLag;
extern const MetricSpec kJobProblem;

}  // namespace metric

// Returns all of the above, in the order of output.
const std::vector<const MetricSpec*>& AllMetrics();
// Returns the metric of that name, or null.
const MetricSpec* FindMetric(const char* name);

}  // namespace sstferry
