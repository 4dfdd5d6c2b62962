// Reads --owner and --permissions: whose a new database shall be.
#pragma once

#include "rocksdb/status.h"
#include "sstferry/options.h"
#include "tools/sstferry/arguments.h"

namespace sstferry {

// InvalidArgument: as in arguments.h, and for a name that this machine does not
// know.
[[nodiscard]] rocksdb::Status ReadTargetAccess(const OptionTexts& texts,
                                               PullOptions* options);

}  // namespace sstferry
