// Reads the options that make a pull a refresh.
#pragma once

#include "rocksdb/status.h"
#include "tools/sstferry/options/command_arguments.h"
#include "tools/sstferry/options/arguments.h"

namespace sstferry {

// InvalidArgument: as in arguments.h; the file of --ranges is read, too. REQUIRES: `replace` of the options has
// been read.
[[nodiscard]] rocksdb::Status ReadRefresh(const OptionTexts& texts,
                                          PullArguments* out);

}  // namespace sstferry
