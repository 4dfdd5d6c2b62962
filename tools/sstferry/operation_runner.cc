#include "tools/sstferry/operation_runner.h"

#include "tools/sstferry/progress.h"
#include "tools/sstferry/signals.h"

namespace sstferry {

int RunOperation(const std::string& command, const CommonArguments& arguments,
                 Console* console, Operation* operation,
                 const std::function<std::string(const Summary&)>& human,
                 const std::function<void()>& reload) {
  Summary summary;
  rocksdb::Status status;
  {
    const StopWatcher watcher([operation] { operation->Cancel(); }, reload);
    ProgressReporter reporter(arguments, console,
                              [operation] { return operation->progress(); });
    status = operation->Run(&summary);
  }
  if (command == "verify") {  // pull logs notes itself; plan prints them
    for (const std::string& note : summary.notes) {
      console->Log(LogLevel::kInfo, "note: " + note);
    }
  }
  const EndState state = EndStateOf(status);
  const auto json = [&] { return SummaryToJson(summary, command) + "\n"; };
  std::string result;
  if (arguments.json) {
    result = json();
  } else if (state == EndState::kOk || state == EndState::kDifferent ||
             state == EndState::kChangedSince ||
             (command == "plan" && !summary.column_families.empty())) {
    result = human(summary);
  }
  return FinishCommand(command, status, summary.error_where, result, console,
                       json);
}

}  // namespace sstferry
