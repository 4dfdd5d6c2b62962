// Reads --owner and --permissions: the owner and the mode of a new database.
#pragma once

#include "rocksdb/status.h"
#include "sstferry/options.h"
#include "tools/sstferry/arguments.h"

namespace sstferry {

// InvalidArgument: as in arguments.h, and for an account or group name that
// this machine does not know.
[[nodiscard]] rocksdb::Status ReadTargetAccess(const OptionTexts& texts,
                                               PullOptions* options);

}  // namespace sstferry
