// An operator's command around an exchange, run by the shell.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "sstferry/refresh_options.h"

namespace sstferry {

// Runs /bin/sh -c COMMAND in a process group of its own, with
// SSTFERRY_TARGET_DIR, SSTFERRY_TRANSFER_ID and SSTFERRY_EXCHANGED (yes or no)
// in its environment, no standard input, and standard output going to standard
// error. What the command leaves running in the background is not waited for.
//
// When the event says so, or at `until`, the group gets SIGTERM, and SIGKILL
// ten seconds later. Threads: the hook blocks its caller's.
//   kRefused   the command ended with another code than 0, or by a signal; the
//              message has `option`, the command and which
//   kDeadline, kCancelled  it was ended for that
SwapHook MakeCommandHook(
    const std::string& option, const std::string& command,
    std::optional<std::chrono::steady_clock::time_point> until);

}  // namespace sstferry
