// Recognizes and ends a process that has outlived the process that waited for
// it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// Returns one line that names the process uniquely: its id, its start time, and
// its boot, since ids are reused. Empty: it does not exist.
std::string NameOfProcess(pid_t process);

// Ends the process group whose leader has that name, still runs, and was
// started with `mark` ("NAME=VALUE") in its environment: SIGTERM, and SIGKILL
// after `grace`. Logs this, with `what` as the description. Returns OK if there
// is no such process.
//   kBusy  it still runs then, or belongs to another user
[[nodiscard]] rocksdb::Status EndLeftProcess(const std::string& name,
                                             const std::string& mark,
                                             const std::string& what,
                                             std::chrono::seconds grace,
                                             const LogFunction& log);

}  // namespace sstferry
