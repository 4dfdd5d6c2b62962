// Plans a clone: divides the files of a snapshot into the units that are sent.
#pragma once

#include "format/messages.h"
#include "pipeline/serve/transfer_plan.h"
#include "pipeline/snapshot/snapshot.h"
#include "rocksdb/status.h"

namespace sstferry {

// Returns kRefused if the request cannot be served as a clone: if it limits the
// keys, or leaves out the column family `default`. Called before a snapshot is
// taken.
[[nodiscard]] rocksdb::Status CheckCloneRequest(const OpenRequest& request);

// Makes the plan of a clone. REQUIRES: snapshot.files() is not null.
//   kRefused       there are more files or column families than a plan can have
//   kIncompatible  the RocksDB release of the replica, which the request names,
//                  cannot read the files; the message says what to do
[[nodiscard]] rocksdb::Status PlanClone(const Snapshot& snapshot,
                                        const OpenRequest& request,
                                        TransferPlan* plan);

}  // namespace sstferry
