// What --method, --keep-identity, --reuse and --always-swap mean.
#pragma once

#include "tools/sstferry/options/command_arguments.h"
#include "tools/sstferry/options/arguments.h"

namespace sstferry {

// Refuses what a clone has no use for. REQUIRES: all other options are read.
[[nodiscard]] rocksdb::Status ReadMethod(const OptionTexts& texts,
                                         PullOptions* options);

}  // namespace sstferry
