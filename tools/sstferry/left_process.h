// A process that may outlive the one that waits for it: how another run, later,
// knows it again and ends it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// One line that names the process for good: its id, when it started, and the
// boot in which it did, since ids are used again. Empty: it does not exist.
std::string NameOfProcess(pid_t process);

// If the leader of a process group has that name, still runs, and was started
// with `mark` ("NAME=VALUE") in its environment, ends its group by SIGTERM, and
// by SIGKILL after `grace`. Says so in the log, with `what` it is. OK if there
// is no such process.
//   kBusy  it still runs then, or belongs to another user
[[nodiscard]] rocksdb::Status EndLeftProcess(const std::string& name,
                                             const std::string& mark,
                                             const std::string& what,
                                             std::chrono::seconds grace,
                                             const LogFunction& log);

}  // namespace sstferry
