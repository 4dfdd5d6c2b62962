// Checks what --mode, --visibility and --method allow together.
#pragma once

#include "rocksdb/status.h"
#include "tools/sstferry/arguments.h"
#include "tools/sstferry/command_arguments.h"

namespace sstferry {

// Reads --compact and --source-id, and refuses options that the mode, the
// visibility or the method has no use for. REQUIRES: the rows of the table have
// set their members. InvalidArgument: as in arguments.h.
[[nodiscard]] rocksdb::Status ReadRefresh(const OptionTexts& texts,
                                          PullArguments* out);

}  // namespace sstferry
