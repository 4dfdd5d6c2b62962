// Changes the log level and the rate limit of a running command after SIGHUP.
#pragma once

#include <cstdint>
#include <functional>

#include "rocksdb/status.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/console.h"

namespace sstferry {

// Applies the command line and the config file that were read again after
// SIGHUP. `parsed` is the status of reading them. If it is OK, sets the log
// level of `again` and calls set_max_rate(max_rate_bytes_per_sec), where 0
// means no limit. Otherwise changes nothing and logs a warning.
void ApplyReload(const rocksdb::Status& parsed, const CommonArguments& again,
                 uint64_t max_rate_bytes_per_sec,
                 const std::function<void(uint64_t)>& set_max_rate,
                 Console* console);

}  // namespace sstferry
