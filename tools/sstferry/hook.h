// Runs an operator's shell command before or after a swap, or at the end of a
// job.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "sstferry/options.h"

namespace sstferry {

// Returns a hook that runs /bin/sh -c COMMAND in a new process group and waits
// for the shell, but not for background processes of the command. The command
// has SSTFERRY_TARGET_DIR, SSTFERRY_TRANSFER_ID and SSTFERRY_EXCHANGED (yes or
// no) in its environment. It has no standard input; its standard output goes to
// standard error.
//
// Before the command begins, the hook records the shell's process and this
// process in the file NoteOfCommand(). If this process is killed,
// EndLeftCommand() of a later run finds the command there.
//
// The hook logs that it runs the command. If stopped() of the SwapEvent returns
// true, or at the time `until`, the hook sends SIGTERM to the process group.
// Ten seconds later, the hook sends SIGKILL.
// The hook returns:
//   kRefused    the command could not be started, exited with a code other than
//               0, or was ended by a signal. The message contains `option`, the
//               command and the code or signal.
//   kDeadline   the hook ended the command at `until`
//   kCancelled  the hook ended the command because of stopped()
SwapHook MakeCommandHook(
    const std::string& option, const std::string& command,
    std::optional<std::chrono::steady_clock::time_point> until,
    const LogFunction& log = nullptr);

// Returns the path of a file that identifies two processes: the process of a
// hook's command, and the sstferry process that waits for the command. The file
// is in the workspace (TARGET_DIR.sstferry), or in `target_dir` if there is no
// workspace. If this process runs as root, the file is in /run/sstferry, where
// only root may write.
std::string NoteOfCommand(const std::string& target_dir);

// Ends a hook's command that still runs although the sstferry process that
// started it was killed. Call this function before a pull into `target_dir` or
// a promotion begins. Otherwise the old command might stop or start the
// application later, for example after the new pull has succeeded.
//
// Sends SIGTERM to the command's process group, and SIGKILL ten seconds later.
// Does nothing if the sstferry process that started the command still runs, or
// if the command's environment does not contain SSTFERRY_TARGET_DIR with the
// value `target_dir`.
//   kBusy  the command cannot be ended. The message contains its process id.
[[nodiscard]] rocksdb::Status EndLeftCommand(const std::string& target_dir,
                                             const LogFunction& log);

// The result of a job that has ended. RunEndCommand() passes it to the command
// of --on-success or --on-failure.
struct JobEnd {
  std::string command;  // "pull", "archive push", ...
  int exit_code = 0;
  std::string summary;  // the JSON object of the job
};

// Runs the command of --on-success or --on-failure as MakeCommandHook() does,
// but records no process. `option` is the option's name. The environment has
// SSTFERRY_COMMAND, SSTFERRY_EXIT_CODE and SSTFERRY_SUMMARY, the path of a file
// with the job's JSON object. The file is in memory, only this account can read
// it, and it disappears when this process ends. SIGINT or SIGTERM ends the
// command, unless the signal arrived before the call.
//   kInternal  the command failed. The message contains `option` and the
//              reason.
// REQUIRES: HoldSignals() was called, and no StopWatcher exists.
[[nodiscard]] rocksdb::Status RunEndCommand(const std::string& option,
                                            const std::string& command,
                                            const JobEnd& end);

}  // namespace sstferry
