// Plans a clone: divides the files of a snapshot into units.
#pragma once

#include "format/messages.h"
#include "pipeline/serve/transfer_plan.h"
#include "pipeline/snapshot/snapshot.h"
#include "rocksdb/status.h"

namespace sstferry {

// Checks the request before a snapshot is taken. Refuses a clone of an interval
// of keys, or without the column family `default`.
[[nodiscard]] rocksdb::Status CheckCloneRequest(const OpenRequest& request);

// Fills the plan. REQUIRES: snapshot.files() is not null.
//   kRefused       there are more files or families than a plan can have.
//   kIncompatible  the request names a release of RocksDB for the replica that
//                  cannot read the files; the message says what to do.
[[nodiscard]] rocksdb::Status PlanClone(const Snapshot& snapshot,
                                        const OpenRequest& request,
                                        TransferPlan* plan);

}  // namespace sstferry
