// Runs pull, plan and verify: handles signals, shows progress, prints the
// result and determines the exit code.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "sstferry/archive.h"
#include "sstferry/options.h"
#include "sstferry/target.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/console.h"

namespace sstferry {

// Runs `operation`, shows its progress on standard error, prints its result and
// returns the exit code. SIGINT or SIGTERM cancels the operation. SIGHUP calls
// `reload`.
//
// With --json, prints a JSON object. Otherwise prints the text that `human`
// returns, if one of these is true: the operation succeeded; it ended with
// kDifferent or kChangedSince; or the source has sent a plan to `plan`.
// REQUIRES: HoldReloadSignal() was called, unless `reload` is null.
int RunOperation(const std::string& command, const CommonArguments& arguments,
                 Console* console, Operation* operation,
                 const std::function<std::string(const Summary&)>& human,
                 const std::function<void()>& reload = nullptr);

// Returns the result of pull, refresh or swap as text that ends in a newline.
std::string PullReport(const Summary& summary);
// Returns a line with the first RocksDB release that can open the database
// which the pull has made. Returns "" if every release can open it.
std::string OpensLine(const Summary& summary);
// Returns a line with the method of a pull, such as clone, and the reason for
// it. Returns "" for other commands.
std::string MethodLine(const Summary& summary);
// Returns the result of plan. If `brief` is true, leaves out the lines for
// column families and files.
std::string PlanReport(const Summary& summary, bool brief);
std::string VerifyReport(const Summary& summary);
// Returns the result of sstferry archive as a JSON object.
std::string ArchiveToJson(const ArchiveOptions& options,
                          const ArchiveReport& report);
// Return the result of sstferry status as text and as a JSON object.
std::string StatusText(const std::string& place, const StatusReport& report);
std::string StatusToJson(const std::string& place, const StatusReport& report);
// Return the result of sstferry ls as text and as a JSON object. `place` is a
// directory if `is_directory` is true, otherwise the address of a server.
std::string LsText(const std::string& place, bool is_directory,
                   const StatusReport& report);
std::string LsToJson(const std::string& place, const StatusReport& report);

}  // namespace sstferry
