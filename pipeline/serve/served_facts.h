// Collects what a source tells of a database that it serves.
#pragma once

#include <string>

#include "format/messages.h"
#include "sstferry/source.h"

namespace sstferry {

// Looks at it now; `snapshot_dir` as in ServeOptions.
FactsReply FactsOf(ServedDatabase database, const FactsRequest& request,
                   const std::string& snapshot_dir);

}  // namespace sstferry
