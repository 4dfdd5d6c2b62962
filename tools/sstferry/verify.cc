// Implements the command sstferry verify.
#include <algorithm>
#include <optional>

#include "format/printable.h"
#include "format/quantity.h"
#include "sstferry/target.h"
#include "tools/sstferry/all_databases.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/console.h"
#include "tools/sstferry/operation_runner.h"
#include "tools/sstferry/progress.h"
#include "tools/sstferry/run.h"
#include "tools/sstferry/run_as.h"
#include "tools/sstferry/signals.h"

namespace sstferry {
namespace {

// Returns a key or a name in quotes. If it is longer than kMaxShownKeyBytes,
// truncates it and adds its complete length, `whole`.
std::string Shown(const std::string& bytes, uint64_t whole) {
  const size_t shown = std::min(bytes.size(), kMaxShownKeyBytes);
  return "\"" + KeyToText(rocksdb::Slice(bytes.data(), shown)) + "\"" +
         (shown < whole ? "... (" + std::to_string(whole) + " bytes)" : "");
}

std::string SideLine(const char* label, const char* other,
                     const ComparedSide& side) {
  std::string line = label + Printable(side.address);
  if (!side.snapshot_transfer_id.empty()) {
    line += ", snapshot of " + side.snapshot_transfer_id;
  }
  line += " at sequence " + std::to_string(side.snapshot_sequence);
  if (!side.pulled_transfer_id.empty()) {
    line += ", pulled from " + std::string(other) + " at sequence " +
            std::to_string(side.pulled_sequence);
  }
  return line + "\n";
}

}  // namespace

std::string VerifyReport(const Summary& summary) {
  const std::string sides = SideLine("left:  ", "right", summary.left) +
                            SideLine("right: ", "left", summary.right);
  const EndState state = EndStateOf(summary.status);
  if (state == EndState::kOk) {
    return "equal: " +
           (summary.compared == "files"
                ? FormatCount(summary.files_compared, "file", "files") +
                      " with " + FormatBytes(summary.bytes_compared) +
                      ", byte by byte, and what the WALs hold,"
                : FormatCount(summary.entries_left, "entry", "entries")) +
           " on both sides\n" + sides;
  }
  std::string text =
      state == EndState::kChangedSince ? "changed since: " : "different: ";
  text += Printable(SentenceOf(summary.status)) + "\n" + sides;
  for (const DifferenceSummary& difference : summary.first_differences) {
    text += "  " +
            (difference.file.empty()
                 ? Shown(difference.column_family,
                         difference.column_family.size()) +
                       ": " + Shown(difference.key, difference.key_bytes)
                 : difference.file) +
            ": " + difference.what + "\n";
  }
  const uint64_t shown = summary.first_differences.size();
  if (shown < summary.differences) {
    text += "  and " + std::to_string(summary.differences - shown) +
            " more (--show N lists more)\n";
  }
  for (const std::string& note : summary.notes) {
    text += "note: " + Printable(note) + "\n";
  }
  const std::string next = NextOf(summary.status);
  if (!next.empty()) {
    text += "next: " + Printable(next) + "\n";
  }
  return text;
}

namespace {

// Returns the account under which verify should run if root has started it: the
// account that owns the directories on both sides. This account may record a
// fault in a replica. Returns nullopt if there is no such account, or if the
// sides have different ones; verify then runs as root.
std::optional<uint32_t> AccountOfSides(const VerifyArguments& verify) {
  std::optional<uint32_t> found;
  for (const SourceAddress* const side :
       {&verify.options.left, &verify.options.right}) {
    if (!side->is_directory()) {
      continue;
    }
    // With --all, the directory contains the databases. AccountOfTarget() must
    // then consider the owner of the directory, who can rename databases.
    const std::optional<uint32_t> account =
        AccountOfTarget(side->directory + (verify.all ? "/replica" : ""));
    if (!account.has_value() || (found.has_value() && *found != *account)) {
      return std::nullopt;
    }
    found = account;
  }
  return found;
}

int VerifyHere(VerifyArguments verify, const RootSide* root) {
  Console console(verify.common, stderr, ScreenFor(root));
  if (verify.all) {
    return VerifyAll(verify, &console);
  }
  verify.options.log = console.log_function();
  const std::unique_ptr<Operation> operation = MakeVerify(verify.options);
  return RunOperation("verify", verify.common, &console, operation.get(),
                      VerifyReport);
}

}  // namespace

int RunVerify(const std::vector<std::string>& arguments) {
  VerifyArguments verify;
  const rocksdb::Status usage = ParseVerify(arguments, &verify);
  if (!usage.ok()) {
    return ReportUsage("verify", usage);
  }
  Console console(verify.common);
  LogTlsWarnings(verify.options.tls, &console);
  const std::optional<uint32_t> account = AccountOfSides(verify);
  if (!account.has_value()) {
    return VerifyHere(verify, nullptr);
  }
  HoldReloadSignal();
  const bool is_left = verify.options.left.is_directory();
  RootDuties duties;
  duties.target_dir = is_left ? verify.options.left.directory
                              : verify.options.right.directory;
  duties.tls = &verify.options.tls;
  duties.command = "verify";
  duties.log = console.log_function();
  duties.uses_ssh =
      verify.options.left.is_ssh() || verify.options.right.is_ssh();
  return RunAs(*account, duties, arguments,
               [&verify](const std::vector<std::string>&, RootSide* root) {
                 return VerifyHere(verify, root);
               });
}

}  // namespace sstferry
