// Checks which options of pull, refresh and swap can be combined.
#pragma once

#include "rocksdb/status.h"
#include "tools/sstferry/arguments.h"
#include "tools/sstferry/command_arguments.h"

namespace sstferry {

// Reads --compact and --source-id, and refuses options that cannot be used with
// the method or the selection of keys. REQUIRES: the mode is set, and the table
// rows have set their members. InvalidArgument: as in arguments.h.
[[nodiscard]] rocksdb::Status ReadJob(const OptionTexts& texts,
                                      PullArguments* out);

}  // namespace sstferry
