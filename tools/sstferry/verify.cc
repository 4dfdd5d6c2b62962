// sstferry verify
#include "tools/sstferry/commands.h"
#include "tools/sstferry/console.h"
#include "tools/sstferry/operation_runner.h"

namespace sstferry {

std::string VerifyReport(const Summary& summary) {
  if (EndStateOf(summary.status) != EndState::kDifferent) {
    return "equal: " + std::to_string(summary.entries_left) +
           " entries on both sides\n";
  }
  std::string text =
      "different: " + std::to_string(summary.differences) +
      " differences, " + std::to_string(summary.entries_left) +
      " entries left, " + std::to_string(summary.entries_right) + " right\n";
  for (const DifferenceSummary& difference : summary.first_differences) {
    text += "  " + KeyToText(difference.column_family) + ": \"" +
            KeyToText(difference.key) + "\": " + difference.what + "\n";
  }
  const uint64_t shown = summary.first_differences.size();
  if (shown < summary.differences) {
    text += "  and " + std::to_string(summary.differences - shown) +
            " more\n";
  }
  return text;
}

int RunVerify(const std::vector<std::string>& arguments) {
  VerifyArguments verify;
  const rocksdb::Status usage = ParseVerify(arguments, &verify);
  if (!usage.ok()) {
    return ReportUsage("verify", usage);
  }
  Console console(verify.common.log_level);
  verify.options.log = console.log_function();
  LogTlsWarnings(verify.options.tls, &console);
  const std::unique_ptr<Operation> operation = MakeVerify(verify.options);
  return RunOperation("verify", verify.common, &console, operation.get(),
                      VerifyReport);
}

}  // namespace sstferry
