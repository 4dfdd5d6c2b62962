// Refresh in place: makes a replica current where it is, with the changes since
// its last refresh. This directory has both halves; api/ connects the source's
// half to a server, and the target's to a pull.
//
// The decisions of a refresh, in order. "Record" is what the last pull stored
// in the replica: sstferry.intervals (what backed each interval at the source,
// and which tables held it here) and sstferry.source (the source's own notes).
//
//   # | decision                                  | code
//  ---+-------------------------------------------+---------------------------
//     | TARGET, before it connects                | RefreshTarget::Look()
//   1 | Can it be refreshed at all? Not with      | CheckSupported(),
//     | plain tables, FIFO, a SingleDelete, or a  | CheckSingleDeletes(),
//     | fault that a refresh does not repair      | CheckFault()
//   2 | Which recorded intervals still hold?      | JudgeIntervals(),
//     | Those whose tables are the recorded ones, | FindTableChanges(),
//     | or were made from them by compactions     | TraceTables()
//     | that the MANIFEST proves; others are      |
//     | doubted                                   |
//   3 | What is sent to the source? The records,  | DescribeTarget()
//     | with the doubted ones marked; none with   |
//     | --adopt                                   |
//  ---+-------------------------------------------+---------------------------
//     | SOURCE, while it plans, for each family   | RefreshSource::Decide()
//   4 | Does its application use SingleDelete?    | FindSingleDeleteUse()
//     | Then the refresh is refused               |
//   5 | Is every key known that may have changed? | FindChanges()
//     | Those are the keys of files added since   |
//     | the record, and of the WALs at that time  |
//     | and now. Not if entries are in memory     |
//     | only, or if the keys are more than half   |
//     | as many as all other entries              |
//   6 | How is each interval transferred?         | CompareIntervals()
//     |   no record:    sent, if the target has   |
//     |                 nothing; else compared    |
//     |   --compare digest:             compared  |
//     |   same evidence, not doubted:  unchanged  |
//     |   changed, keys known, not doubted, no    |
//     |     range deletion there:      looked up  |
//     |   anything else:                compared  |
//   7 | How large are parts? Rebuilt: 15/16 of a  | RefreshSource::Cut()
//     | chunk. Compared: a quarter of the keys    |
//     | that fit in memory. Looked up: 2,048 to   |
//     | 65,536 keys                               |
//   8 | What does the target store? What backs    | RefreshSource::Record()
//     | each interval now, all files, and keys    | (also for a seed)
//     | that only WALs hold                       |
//  ---+-------------------------------------------+---------------------------
//     | TARGET, before it writes anything         |
//   9 | Is it the recorded source? Are families,  | CheckSource(),
//     | comparators and merge operators equal?    | BuildFamilies()
//  10 | Has anybody written since 2? Judged again | OpenToWrite(), FindLost()
//     | while it is open for writing; if so, BUSY |
//  ---+-------------------------------------------+---------------------------
//     | BOTH, on a lane, for each part            | LaneClient, LaneSession
//  11 | Nothing here: its chunks are sent, as for | FindOutermost()
//     | a seed. Looked up: its delta is sent      |
//  12 | For each key that is looked up: the       | KeyLookup
//     | newest entry of the new files, if these   |
//     | are read before all others; else          |
//     | RocksDB's answer                          |
//  13 | Compared: both sides read it, in groups   | GroupDeltas::Index(),
//     | of as many entries as cost 0.3 % in       | GroupCompare::Compare(),
//     | digests. Equal: done. Otherwise the       | GroupDeltas::Sift()
//     | target sends what it has in differing     |
//     | groups: first a mark of each entry, then  |
//     | the entries that the source does not      |
//     | have; all entries, if nearly all groups   |
//     | differ; two keys, if the source has       |
//     | nothing                                   |
//  14 | What is put, what is deleted? Only keys   | DeltaBuilder
//     | of the target are deleted, long runs of   |
//     | them by one range deletion                |
//  ---+-------------------------------------------+---------------------------
//     | TARGET, after it has received a part      |
//     | Does it equal the source's? Computed from | PartProof,
//     | the received bytes, independently of 13   | LaneClient::EndPart()
//     | and 14                                    |
//  ---+-------------------------------------------+---------------------------
//     | TARGET, after both agree on the totals    |
//  15 | When is it ingested? All in one call;     | RefreshTarget::Finish(),
//     | later, while writers are slowed down      | IngestGate
//  16 | What can the next refresh rely on? All,   | RecordIntervals()
//     | if nobody else could write; else only     |
//     | where tables are those judged and the     |
//     | deltas                                    |
//  17 | Are deltas compacted now? A little, if    | CompactDeltas()
//     | nobody else has the database open         |
#pragma once

#include <memory>

#include "pipeline/pull/pull_target.h"
#include "pipeline/serve/refresh_at_source.h"
#include "sstferry/target.h"

namespace sstferry {

// Makes the source's half for one plan (a RefreshFactory).
std::unique_ptr<RefreshAtSource> MakeRefreshAtSource(const Snapshot& snapshot,
                                                     TransferPlan* plan);

// Makes the target's half. Without a replica (its db is null) it opens the
// TARGET_DIR of the options itself.
std::unique_ptr<PullTarget> MakeRefreshTarget(const TargetInputs& inputs,
                                              const OpenReplica& replica);

// Makes the target of a swap which links the files of TARGET_DIR
// (linked_target.h).
std::unique_ptr<PullTarget> MakeLinkedTarget(const TargetInputs& inputs);

}  // namespace sstferry
