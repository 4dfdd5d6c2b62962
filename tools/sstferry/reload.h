// Applies a command line and a config file that were read again on SIGHUP.
#pragma once

#include <cstdint>
#include <functional>

#include "rocksdb/status.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/console.h"

namespace sstferry {

// `parsed` is the status of reading both again: if it is not OK, nothing
// changes, and a warning is logged. Otherwise the console gets the log level of
// `again`, and set_max_rate gets max_rate_bytes_per_sec; 0: no limit.
void ApplyReload(const rocksdb::Status& parsed, const CommonArguments& again,
                 uint64_t max_rate_bytes_per_sec,
                 const std::function<void(uint64_t)>& set_max_rate,
                 Console* console);

}  // namespace sstferry
