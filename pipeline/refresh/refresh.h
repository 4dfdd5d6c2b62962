// Refresh in place: a replica is made current where it is, by what has changed
// since its last refresh. Both halves lie in this room, and api/ plugs them in:
// the source's where a server is made, the target's where a pull is.
//
// The decisions of a refresh, in order. "Record" is what the last pull left in
// the replica: sstferry.intervals (what backed each interval at the source, and
// which tables held it here) and sstferry.source (the source's own notes).
//
//   # | who decides what                          | where
//  ---+-------------------------------------------+---------------------------
//     | TARGET, before it asks                    | RefreshTarget::Look()
//   1 | may it be refreshed at all? Not with      | CheckSupported(),
//     | plain tables, FIFO, a SingleDelete, or a  | CheckSingleDeletes(),
//     | fault that a refresh does not mend        | CheckFault()
//   2 | which recorded intervals still hold? The  | JudgeIntervals(),
//     | tables that meet one are the recorded, or | FindTableChanges(),
//     | made of them by compactions that the      | TraceTables()
//     | MANIFEST proves; others are doubted       |
//   3 | what is the source told? The records, the | DescribeTarget()
//     | doubted ones marked; nothing with --adopt |
//  ---+-------------------------------------------+---------------------------
//     | SOURCE, while it plans, for each family   | RefreshSource::Decide()
//   4 | does its application use SingleDelete?    | FindSingleDeleteUse()
//     | Then refused                              |
//   5 | is each key known that may have changed?  | FindChanges()
//     | Those of files that are new since the     |
//     | record, and of the WALs of then and now;  |
//     | not if entries are in memory only, or if  |
//     | these are more than half of all others    |
//   6 | what becomes of each interval?            | CompareIntervals()
//     |   no record:    sent, if the target has   |
//     |                 nothing; else compared    |
//     |   --compare digest:             compared  |
//     |   same evidence, not doubted:  unchanged  |
//     |   changed, keys known, not doubted, no    |
//     |     range deletion there:      looked up  |
//     |   anything else:                compared  |
//   7 | which parts? Rebuilt: 15/16 of a chunk.   | RefreshSource::Cut()
//     | Compared: a quarter of the keys that fit  |
//     | memory. Looked up: 2,048 to 65,536 keys   |
//   8 | what does the target keep? What backs     | RefreshSource::Record()
//     | each interval now, all files, and keys    | (also of a seed)
//     | that only WALs hold                       |
//  ---+-------------------------------------------+---------------------------
//     | TARGET, before it writes anything         |
//   9 | is it the recorded source? Are families,  | CheckSource(),
//     | orders and merge operators those of here? | BuildFamilies()
//  10 | has anybody written since 2? Judged again | OpenToWrite(), FindLost()
//     | as the only one who has it open: BUSY     |
//  ---+-------------------------------------------+---------------------------
//     | BOTH, on a lane, for each part            | LaneClient, LaneSession
//  11 | nothing here: its chunks come, as in a    | FindOutermost()
//     | seed. Looked up: its delta comes          |
//  12 | each key that is looked up: the newest    | KeyLookup
//     | entry of the new files, where these lie   |
//     | above all others; else RocksDB's answer   |
//  13 | compared: both read, in groups of as many | GroupDeltas::Index(),
//     | entries as cost 0.3 % in digests. Equal:  | GroupCompare::Compare(),
//     | whole, without a byte. Else the target    | GroupDeltas::Sift()
//     | tells what it has in groups that differ:  |
//     | first a mark of each entry, then those    |
//     | that the source lacks; all, if nearly all |
//     | groups differ; two keys, if the source    |
//     | has nothing                               |
//  14 | what is put, what is deleted? Only keys   | DeltaBuilder
//     | of the target are deleted, long runs of   |
//     | them by one range deletion                |
//  ---+-------------------------------------------+---------------------------
//     | TARGET, once a part has come              |
//     | is it the source's? Computed of the bytes | PartProof,
//     | that came, whatever 13 and 14 meant       | LaneClient::EndPart()
//  ---+-------------------------------------------+---------------------------
//     | TARGET, once both agree on the totals     |
//  15 | when is it ingested? All in one call;     | RefreshTarget::Finish(),
//     | later, while writers are slowed down      | IngestGate
//  16 | what does the next refresh believe? All,  | RecordIntervals()
//     | if nobody else could write; else where    |
//     | tables are those judged and the deltas    |
//  17 | are deltas merged now? A little, if       | CompactDeltas()
//     | nobody else has it open                   |
#pragma once

#include <memory>

#include "pipeline/pull/pull_target.h"
#include "pipeline/serve/refresh_at_source.h"
#include "sstferry/target.h"

namespace sstferry {

// Makes the source's half for one plan. Is a RefreshFactory.
std::unique_ptr<RefreshAtSource> MakeRefreshAtSource(const Snapshot& snapshot,
                                                     TransferPlan* plan);

// Makes the target's half. Without a replica (its db is null) it opens the
// TARGET_DIR of the options itself.
std::unique_ptr<PullTarget> MakeRefreshTarget(const TargetInputs& inputs,
                                              const OpenReplica& replica);

// Makes that of a swap which links the files of TARGET_DIR
// (linked_target.h).
std::unique_ptr<PullTarget> MakeLinkedTarget(const TargetInputs& inputs);

}  // namespace sstferry
