// What would keep a pull from filling or refreshing TARGET_DIR, as far as that
// shows before it: for the command `plan`.
#pragma once

#include <vector>

#include "format/message/messages.h"
#include "pipeline/target/session/plan_receiver.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// Looks at options.target_dir and changes nothing. `summary` has the versions,
// the source's id and the estimates of both methods; `chunks` is the plan of
// chunks, null where the source refused one. One finding for each of
// "directory", "source", "owner", "space", "versions", "families",
// "compaction" and "connection", in this order; "source" of a refresh only,
// "families" and "compaction" of `chunks` only.
std::vector<CheckSummary> CheckTarget(const PullOptions& options,
                                      const Summary& summary,
                                      const SourcePlan* chunks);

}  // namespace sstferry
