// Collects facts about a database that the source serves, for its targets.
#pragma once

#include <string>

#include "format/messages.h"
#include "sstferry/source.h"

namespace sstferry {

// Reads the facts now; `snapshot_dir` as in ServeOptions.
FactsReply FactsOf(ServedDatabase database, const FactsRequest& request,
                   const std::string& snapshot_dir);

}  // namespace sstferry
