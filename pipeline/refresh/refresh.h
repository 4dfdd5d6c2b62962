// Refresh in place: makes a replica equal to its source without a new
// directory. Both sides read all their entries, and the source sends the
// entries that differ. This directory has the code of both sides. Code in api/
// connects the source's side to a server, and the target's side to a pull.
//
// These are the decisions of a refresh, in order:
//
//   # | decision                                  | code
// ---+-------------------------------------------+---------------------------
//     | TARGET, before it connects                | RefreshTarget::Look()
//   1 | Can the replica be refreshed in place?    | CheckSupported(),
//     | Not with plain tables, FIFO compaction,   | CheckSingleDeletes(),
//     | a SingleDelete, or a fault that a refresh | CheckFault()
//     | does not repair                           |
//   2 | Which families have entries? The source   | FilledFamilies()
//     | needs to know this to choose part sizes   |
// ---+-------------------------------------------+---------------------------
//     | SOURCE, while it plans, for each family   | RefreshSource::Decide()
//   3 | Does the application use SingleDelete?    | CheckSingleDeletes()
//     | If so, the source refuses the refresh     |
//   4 | How large are parts? Sent completely:     | RefreshSource::Cut()
//     | 15/16 of a chunk. Compared: a quarter of  |
//     | the keys that fit in memory               |
// ---+-------------------------------------------+---------------------------
//     | TARGET, before it writes anything         |
//   5 | Is this the recorded source? Are          | CheckSource(),
//     | comparators equal on both sides?          | BuildFamilies()
//   6 | Is this still the database that the       | CheckSame(),
//     | target examined? Are its files as the     | OpenToWrite(),
//     | target found them, or as an unfinished    | IsAsLeft()
//     | refresh left them?                        |
// ---+-------------------------------------------+---------------------------
//     | BOTH, on a lane, for each part            | LaneClient, LaneSession
//   7 | Does the target have entries? If not, the | FindOutermost()
//     | source sends all, as for a new replica    |
//   8 | Which entries differ? Both sides read the | GroupDeltas::Index(),
//     | part, and compare digests of groups       | GroupCompare::Compare(),
//     | (0.3 % of the bytes). For groups that     | GroupDeltas::Sift()
//     | differ, the target sends a mark of each   |
//     | entry, and then the entries that the      |
//     | source does not have. It sends all its    |
//     | entries if nearly all groups differ, and  |
//     | two keys if the source has no entries     |
//   9 | What does the delta put and delete? It    | DeltaBuilder
//     | deletes only keys of the target, and many |
//     | neighboring keys by one range deletion    |
// ---+-------------------------------------------+---------------------------
//     | TARGET, after it has received a part      |
// 10 | Will the part equal the source's? The     | PartProof,
//     | target computes this from the received    | LaneClient::EndPart()
//     | bytes, independently of steps 8 and 9     |
// ---+-------------------------------------------+---------------------------
//     | TARGET, after both agree on the totals    |
// 11 | When does it ingest? It ingests all parts | RefreshTarget::Finish(),
//     | in one call, and waits while RocksDB      | IngestGate
//     | slows down writers                        |
// 12 | Does it compact deltas now? A little, if  | CompactDeltas()
//     | no other process has the database open    |
#pragma once

#include <memory>

#include "pipeline/pull/pull_target.h"
#include "pipeline/serve/refresh_at_source.h"
#include "sstferry/target.h"

namespace sstferry {

// Makes the source's side of one planned refresh (a RefreshFactory).
std::unique_ptr<RefreshAtSource> MakeRefreshAtSource(const Snapshot& snapshot,
                                                     TransferPlan* plan);

// Makes the target's side. If `replica` has no database (db is null), the
// target opens the database in TARGET_DIR.
std::unique_ptr<PullTarget> MakeRefreshTarget(const TargetInputs& inputs,
                                              const OpenReplica& replica);

// Makes the target of a swap that links the files of TARGET_DIR (see
// linked_target.h).
std::unique_ptr<PullTarget> MakeLinkedTarget(const TargetInputs& inputs);

}  // namespace sstferry
