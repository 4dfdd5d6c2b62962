// The common part of pull, plan and verify: signals, progress, exit code.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "sstferry/options.h"
#include "sstferry/target.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/console.h"

namespace sstferry {

// Runs `operation` with progress on standard error; SIGINT and SIGTERM cancel
// it, and SIGHUP calls `reload`, if there is one (then HoldReloadSignal() comes
// before). Prints the JSON object, or on success (for DIFFERENT, and for a
// plan that came from the source, too) what `human` makes of the summary.
// Returns the exit code.
int RunOperation(const std::string& command, const CommonArguments& arguments,
                 Console* console, Operation* operation,
                 const std::function<std::string(const Summary&)>& human,
                 const std::function<void()>& reload = nullptr);

// Results as an operator reads them, each ending in a newline.
std::string PullReport(const Summary& summary);
// The first release that opens what a pull moved; empty if every one does.
std::string OpensLine(const Summary& summary);
// Says which method was taken, and why; empty: of other commands.
std::string MethodLine(const Summary& summary);
// `brief`: without a line per family and file.
std::string PlanReport(const Summary& summary, bool brief);
std::string VerifyReport(const Summary& summary);
// The same of sstferry status, and its JSON object.
std::string StatusText(const std::string& place, const StatusReport& report);
std::string StatusToJson(const std::string& place, const StatusReport& report);
// The same of sstferry ls.
std::string LsText(const std::string& place, const StatusReport& report);
std::string LsToJson(const std::string& place, const StatusReport& report);

}  // namespace sstferry
