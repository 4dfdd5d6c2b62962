// The common part of pull, plan and verify: signals, progress, exit code.
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

// Runs `operation` with progress on standard error. SIGINT and SIGTERM cancel
// it, and SIGHUP calls `reload` unless that is null (then HoldReloadSignal()
// must have been called). With --json, prints the JSON object. Otherwise prints
// the text of `human` if the operation succeeded, if verify found differences,
// or if plan has received a plan from the source. Returns the exit code.
int RunOperation(const std::string& command, const CommonArguments& arguments,
                 Console* console, Operation* operation,
                 const std::function<std::string(const Summary&)>& human,
                 const std::function<void()>& reload = nullptr);

// Return results for an operator, each ending in a newline.
std::string PullReport(const Summary& summary);
// Returns a line with the first RocksDB release that opens what the pull moved;
// empty if every release does.
std::string OpensLine(const Summary& summary);
// Returns which method was used, and why; empty for other commands.
std::string MethodLine(const Summary& summary);
// `brief`: no line per family and file.
std::string PlanReport(const Summary& summary, bool brief);
std::string VerifyReport(const Summary& summary);
// Returns the result of an archive's command as a JSON object.
std::string ArchiveToJson(const ArchiveOptions& options,
                          const ArchiveReport& report);
// Return the result of sstferry status as text and as a JSON object.
std::string StatusText(const std::string& place, const StatusReport& report);
std::string StatusToJson(const std::string& place, const StatusReport& report);
// Return the result of sstferry ls as text and as a JSON object.
// `is_directory`: `place` is a directory, not a server.
std::string LsText(const std::string& place, bool is_directory,
                   const StatusReport& report);
std::string LsToJson(const std::string& place, const StatusReport& report);

}  // namespace sstferry
