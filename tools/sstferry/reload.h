// SIGHUP: what a running command takes of its command line and its config
// file, read again.
#pragma once

#include <cstdint>
#include <functional>

#include "rocksdb/status.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/console.h"

namespace sstferry {

// `parsed` is what reading both again gave: unless it is OK all stays as it
// was, with a warning. Else the console gets the log level of `again`, and
// set_max_rate max_rate_bytes_per_sec; 0: no limit.
void ApplyReload(const rocksdb::Status& parsed, const CommonArguments& again,
                 uint64_t max_rate_bytes_per_sec,
                 const std::function<void(uint64_t)>& set_max_rate,
                 Console* console);

}  // namespace sstferry
