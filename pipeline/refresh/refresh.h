// Refresh in place: makes a replica equal to its source where it is. Both sides
// read everything, and what differs is sent. This directory has both halves;
// api/ connects the source's half to a server, and the target's to a pull.
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
//     | sizes the parts by that                   |
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
//   6 | Are its files as found? Listed again      | OpenToWrite()
//     | while it is open for writing              |
//  ---+-------------------------------------------+---------------------------
//     | BOTH, on a lane, for each part            | LaneClient, LaneSession
//   7 | Nothing here: its chunks are sent, as for | FindOutermost()
//     | a seed                                    |
//   8 | Compared: both sides read it, in groups   | GroupDeltas::Index(),
//     | of as many entries as cost 0.3 % in       | GroupCompare::Compare(),
//     | digests. Equal: done. Otherwise the       | GroupDeltas::Sift()
//     | target sends what it has in differing     |
//     | groups: first a mark of each entry, then  |
//     | the entries that the source does not      |
//     | have; all entries, if nearly all groups   |
//     | differ; two keys, if the source has       |
//     | nothing                                   |
//   9 | What is put, what is deleted? Only keys   | DeltaBuilder
//     | of the target are deleted, long runs of   |
//     | them by one range deletion                |
//  ---+-------------------------------------------+---------------------------
//     | TARGET, after it has received a part      |
//  10 | Does it equal the source's? Computed from | PartProof,
//     | the received bytes, independently of 8    | LaneClient::EndPart()
//     | and 9                                     |
//  ---+-------------------------------------------+---------------------------
//     | TARGET, after both agree on the totals    |
//  11 | When is it ingested? All in one call;     | RefreshTarget::Finish(),
//     | later, while writers are slowed down      | IngestGate
//  12 | Are deltas compacted now? A little, if    | CompactDeltas()
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
