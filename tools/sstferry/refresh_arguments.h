// What the texts mean that make a pull a refresh.
#pragma once

#include "rocksdb/status.h"
#include "tools/sstferry/arguments.h"
#include "tools/sstferry/commands.h"

namespace sstferry {

// InvalidArgument: as in arguments.h. REQUIRES: `replace` of the options has
// been read.
[[nodiscard]] rocksdb::Status ReadRefresh(const OptionTexts& texts,
                                          PullArguments* out);

}  // namespace sstferry
