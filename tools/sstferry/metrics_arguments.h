// Reads --metrics, --metrics-insecure and --metrics-file.
#pragma once

#include "rocksdb/status.h"
#include "tools/sstferry/arguments.h"
#include "tools/sstferry/command_arguments.h"

namespace sstferry {

// `tls`: the command's TLS files, which serving other machines requires.
[[nodiscard]] rocksdb::Status ReadMetrics(const OptionTexts& texts,
                                          const TlsFiles& tls,
                                          MetricsArguments* out);

}  // namespace sstferry
