// An operator's command around an exchange, run by the shell.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "sstferry/options.h"

namespace sstferry {

// Runs /bin/sh -c COMMAND in a process group of its own, with
// SSTFERRY_TARGET_DIR, SSTFERRY_TRANSFER_ID and SSTFERRY_EXCHANGED (yes or no)
// in its environment, no standard input, and standard output going to standard
// error. What the command leaves running in the background is not waited for.
//
// The command begins only once a file (NoteOfCommand()) names its process, so
// that EndLeftCommand() finds it if this process is killed.
//
// `log` is told before it begins. When the event says so, or at `until`, the group gets SIGTERM, and SIGKILL
// ten seconds later. Threads: the hook blocks its caller's.
//   kRefused   the command ended with another code than 0, or by a signal; the
//              message has `option`, the command and which
//   kDeadline, kCancelled  it was ended for that
SwapHook MakeCommandHook(
    const std::string& option, const std::string& command,
    std::optional<std::chrono::steady_clock::time_point> until,
    const LogFunction& log = nullptr);

// Returns the path of the file that names the process of a pull's command: in
// the workspace, or, for root, in a directory of /run that only root may write.
std::string NoteOfCommand(const std::string& target_dir);

// Ends the process group of a command that an earlier pull of `target_dir` ran,
// and that still runs although its pull was killed: it would stop or start the
// application whenever it gets there, also after the next pull has said that
// all is well. A process without SSTFERRY_TARGET_DIR in its environment is left
// alone. SIGTERM, and SIGKILL ten seconds later, as if that pull had been
// stopped: the next one runs the command or its counterpart again, and nobody
// has to be there at night. Call it before a pull begins. OK while another pull
// of `target_dir` runs.
//   kBusy  it cannot be ended; the message has its process id and command
[[nodiscard]] rocksdb::Status EndLeftCommand(const std::string& target_dir,
                                             const LogFunction& log);

}  // namespace sstferry
