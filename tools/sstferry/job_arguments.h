// Reads options that depend on each other, or have a special form.
#pragma once

#include "rocksdb/status.h"
#include "sstferry/options.h"
#include "tools/sstferry/arguments.h"
#include "tools/sstferry/command_arguments.h"

namespace sstferry {

// Reads --compact and --source-id of pull, refresh and swap, and refuses
// options that cannot be used with the method or the selection of keys.
// REQUIRES: the mode is set, and the table rows have set their members.
// InvalidArgument: as in arguments.h.
[[nodiscard]] rocksdb::Status ReadJob(const OptionTexts& texts,
                                      PullArguments* out);

// Reads --owner and --permissions: the owner and the mode of a new database.
// InvalidArgument: as in arguments.h, and for an account or group name that
// this machine does not know.
[[nodiscard]] rocksdb::Status ReadTargetAccess(const OptionTexts& texts,
                                               PullOptions* options);

// Reads --metrics, --metrics-insecure and --metrics-file. `tls`: the command's
// TLS files, which serving other machines requires.
[[nodiscard]] rocksdb::Status ReadMetrics(const OptionTexts& texts,
                                          const TlsFiles& tls,
                                          MetricsArguments* out);

}  // namespace sstferry
