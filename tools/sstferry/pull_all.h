// sstferry pull, refresh and swap with --all.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "sstferry/fleet.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/console.h"
#include "tools/sstferry/measured_pull.h"

namespace sstferry {

// Runs the mirror. `reload` is called with its operation on SIGHUP.
int RunAll(const PullArguments& arguments, Console* console,
           const MetricsWriter& write_metrics,
           const std::function<void(Operation*)>& reload);

// Return the result as text and as a JSON object.
std::string FleetText(const Summary& summary, const FleetReport& report);
std::string FleetToJson(const std::string& command, const Summary& summary,
                        const FleetReport& report);

}  // namespace sstferry
