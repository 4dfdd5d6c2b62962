// Reads options that a table row (option_rows.h) cannot read, because they
// depend on other options or have a special form.
#pragma once

#include "rocksdb/status.h"
#include "sstferry/options.h"
#include "tools/sstferry/arguments.h"
#include "tools/sstferry/command_arguments.h"

namespace sstferry {

// Reads --compact and --source-id of pull, refresh and swap. Returns
// InvalidArgument (see arguments.h) if options exclude each other, for example
// --begin and --method clone.
// REQUIRES: the mode is set, and the table rows have set their members.
[[nodiscard]] rocksdb::Status ReadJob(const OptionTexts& texts,
                                      PullArguments* out);

// Reads --owner and --permissions: the owner and the mode of a new database.
// Returns InvalidArgument (see arguments.h) for a wrong value, such as the name
// of an account that this machine does not know.
[[nodiscard]] rocksdb::Status ReadTargetAccess(const OptionTexts& texts,
                                               PullOptions* options);

// Reads --metrics and --metrics-file. Without the TLS files `tls`, allows only
// a loopback address for --metrics, unless out->insecure is set.
// REQUIRES: the table rows have set out->insecure.
[[nodiscard]] rocksdb::Status ReadMetrics(const OptionTexts& texts,
                                          const TlsFiles& tls,
                                          MetricsArguments* out);

}  // namespace sstferry
