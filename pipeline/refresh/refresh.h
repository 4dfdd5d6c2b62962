// Refresh in place: makes a replica equal to its source without a new
// directory. Both sides read all entries, and the source sends those that
// differ. This directory has the code of both sides; api/ connects the source's
// code to a server, and the target's code to a pull.
//
// The decisions of a refresh, in order:
//
//   # | decision                                  | code
//  ---+-------------------------------------------+---------------------------
//     | TARGET, before it connects                | RefreshTarget::Look()
//   1 | Can it be refreshed at all? Not with      | CheckSupported(),
//     | plain tables, FIFO, a SingleDelete, or a  | CheckSingleDeletes(),
//     | fault that a refresh does not repair      | CheckFault()
//   2 | Which families have entries? The source   | FilledFamilies()
//     | chooses part sizes accordingly            |
//  ---+-------------------------------------------+---------------------------
//     | SOURCE, while it plans, for each family   | RefreshSource::Decide()
//   3 | Does its application use SingleDelete?    | CheckSingleDeletes()
//     | Then the refresh is refused               |
//   4 | How large are parts? Rebuilt: 15/16 of a  | RefreshSource::Cut()
//     | chunk. Compared: a quarter of the keys    |
//     | that fit in memory                        |
//  ---+-------------------------------------------+---------------------------
//     | TARGET, before it writes anything         |
//   5 | Is it the recorded source? Are families,  | CheckSource(),
//     | comparators and merge operators equal?    | BuildFamilies()
//   6 | Is it still the same database? Are its    | CheckSame(),
//     | files as found, or as the unfinished      | OpenToWrite(),
//     | refresh left them? Examined and listed    | IsAsLeft()
//     | again while it is open for writing        |
//  ---+-------------------------------------------+---------------------------
//     | BOTH, on a lane, for each part            | LaneClient, LaneSession
//   7 | The target has no entries: the source     | FindOutermost()
//     | sends its chunks, as for a new replica    |
//   8 | Otherwise both sides read the part, and   | GroupDeltas::Index(),
//     | compare digests of groups (0.3 % of the   | GroupCompare::Compare(),
//     | bytes). Equal: done. Otherwise, for the   | GroupDeltas::Sift()
//     | groups that differ, the target sends a    |
//     | mark of each entry, then the entries that |
//     | the source does not have. It sends all    |
//     | entries if nearly all groups differ, and  |
//     | two keys if the source has no entries     |
//   9 | What is put, what is deleted? Only target | DeltaBuilder
//     | keys are deleted, a long run of them by   |
//     | one range deletion                        |
//  ---+-------------------------------------------+---------------------------
//     | TARGET, after it has received a part      |
//  10 | Will it equal the source's? Computed from | PartProof,
//     | the received bytes, independently of 8    | LaneClient::EndPart()
//     | and 9                                     |
//  ---+-------------------------------------------+---------------------------
//     | TARGET, after both agree on the totals    |
//  11 | When is it ingested? All parts in one     | RefreshTarget::Finish(),
//     | call, delayed while RocksDB slows down    | IngestGate
//     | writers                                   |
//  12 | Are deltas compacted now? A little, if    | CompactDeltas()
//     | no other process has the database open    |
#pragma once

#include <memory>

#include "pipeline/pull/pull_target.h"
#include "pipeline/serve/refresh_at_source.h"
#include "sstferry/target.h"

namespace sstferry {

// Makes the source's side for one plan (a RefreshFactory).
std::unique_ptr<RefreshAtSource> MakeRefreshAtSource(const Snapshot& snapshot,
                                                     TransferPlan* plan);

// Makes the target's side. Without a replica (its db is null), the target opens
// the TARGET_DIR of the options itself.
std::unique_ptr<PullTarget> MakeRefreshTarget(const TargetInputs& inputs,
                                              const OpenReplica& replica);

// Makes the target of a swap that links the files of TARGET_DIR
// (linked_target.h).
std::unique_ptr<PullTarget> MakeLinkedTarget(const TargetInputs& inputs);

}  // namespace sstferry
