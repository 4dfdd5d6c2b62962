#include "tools/sstferry/old_databases.h"

#include <memory>

#include "format/end_state.h"
#include "sstferry/target.h"
#include "tools/sstferry/signals.h"

namespace sstferry {

void RemoveOldDatabases(const PullArguments& arguments,
                        const std::vector<std::string>& target_dirs,
                        Console* console) {
  std::vector<std::unique_ptr<Operation>> removals;
  for (const std::string& target_dir : target_dirs) {
    PullOptions options = arguments.options;
    options.target_dir = target_dir;
    removals.push_back(MakeOldRemoval(options, arguments.keep_old));
  }
  // Cancels all removals. A removal that has not begun then ends immediately.
  const StopWatcher watcher([&removals] {
    for (const std::unique_ptr<Operation>& removal : removals) {
      removal->Cancel();
    }
  });
  for (const std::unique_ptr<Operation>& removal : removals) {
    Summary summary;
    const rocksdb::Status status = removal->Run(&summary);
    for (const std::string& note : summary.notes) {
      console->Log(LogLevel::kInfo, note);
    }
    if (!status.ok()) {
      console->Log(EndStateOf(status) == EndState::kCancelled
                       ? LogLevel::kInfo
                       : LogLevel::kWarning,
                   "not all databases that earlier swaps kept were deleted; "
                   "the next swap continues: " + MessageOf(status));
    }
  }
}

}  // namespace sstferry
