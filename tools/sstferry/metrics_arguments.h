// --metrics and --metrics-file.
#pragma once

#include "rocksdb/status.h"
#include "tools/sstferry/arguments.h"
#include "tools/sstferry/command_arguments.h"

namespace sstferry {

[[nodiscard]] rocksdb::Status ReadMetrics(const OptionTexts& texts,
                                          MetricsArguments* out);

}  // namespace sstferry
