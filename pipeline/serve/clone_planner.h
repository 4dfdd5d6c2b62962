// Plans a clone: the files of a snapshot that is read as files, cut into units.
#pragma once

#include "format/messages.h"
#include "pipeline/serve/transfer_plan.h"
#include "pipeline/snapshot/snapshot.h"
#include "rocksdb/status.h"

namespace sstferry {

// Refuses what a clone cannot be, before a snapshot is taken: of some keys, or
// without the column family `default`.
[[nodiscard]] rocksdb::Status CheckCloneRequest(const OpenRequest& request);

// Fills the plan. REQUIRES: snapshot.files() is not null.
//   kRefused       more files or families than a plan holds.
//   kIncompatible  the request names the application's release, which does not
//                  read the files; the message says what to do.
[[nodiscard]] rocksdb::Status PlanClone(const Snapshot& snapshot,
                                        const OpenRequest& request,
                                        TransferPlan* plan);

}  // namespace sstferry
