// Runs an operator's shell command before or after a swap, or at the end of a
// job.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "sstferry/options.h"

namespace sstferry {

// Runs /bin/sh -c COMMAND in its own process group, with SSTFERRY_TARGET_DIR,
// SSTFERRY_TRANSFER_ID and SSTFERRY_EXCHANGED (yes or no) in its environment,
// no standard input, and standard output redirected to standard error. Does not
// wait for background processes of the command.
//
// The command begins only after its process and this one are recorded in the
// file NoteOfCommand(), so that EndLeftCommand() finds the command if this
// process is killed.
//
// Writes to `log` before the command begins. When the event's stopped() returns
// true, or at `until`, the group gets SIGTERM, and SIGKILL ten seconds later.
// Threads: the hook blocks the calling thread.
//   kRefused   the command exited with a code other than 0, or by a signal; the
//              message has `option`, the command and the code or signal
//   kDeadline, kCancelled  the command was ended at `until`, or by stopped()
SwapHook MakeCommandHook(
    const std::string& option, const std::string& command,
    std::optional<std::chrono::steady_clock::time_point> until,
    const LogFunction& log = nullptr);

// Returns the path of the file that records two processes: that of a command of
// a pull or a promotion, and the process that waits for the command. The file
// is in the workspace, or in `target_dir` if it has no workspace. For root, it
// is in a directory below /run that only root may write.
std::string NoteOfCommand(const std::string& target_dir);

// Ends the process group of a command that still runs although its pull into
// `target_dir`, or its promotion, was killed. Otherwise the command might stop
// or start the application later, even after the next pull has succeeded. Does
// nothing if a process still waits for the command, or if the command's process
// does not have SSTFERRY_TARGET_DIR in its environment. Sends SIGTERM, and
// SIGKILL ten seconds later, as if that pull had been stopped; the next pull
// runs the command or its counterpart again. Call it before a pull or a
// promotion begins.
//   kBusy  it cannot be ended; the message has its process id and command
[[nodiscard]] rocksdb::Status EndLeftCommand(const std::string& target_dir,
                                             const LogFunction& log);

// The result of a job, for the command of --on-success or --on-failure.
struct JobEnd {
  std::string command;  // "pull", "archive push", ...
  int exit_code = 0;
  std::string summary;  // the JSON object of the job
};

// Runs the command of --on-success or --on-failure (`option`) with
// SSTFERRY_COMMAND, SSTFERRY_EXIT_CODE and SSTFERRY_SUMMARY in its environment,
// otherwise as MakeCommandHook() does. SSTFERRY_SUMMARY is the path of a file
// in memory that only this account can read; it disappears with this process.
// SIGINT and SIGTERM end the command; a signal that arrived earlier does not.
//   kInternal  the command failed; the message has `option` and the reason
// REQUIRES: HoldSignals() was called, and no StopWatcher exists.
[[nodiscard]] rocksdb::Status RunEndCommand(const std::string& option,
                                            const std::string& command,
                                            const JobEnd& end);

}  // namespace sstferry
