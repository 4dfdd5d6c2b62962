// Implements the command sstferry plan.
#include <algorithm>
#include <optional>
#include <utility>

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
#include "tools/sstferry/table.h"

namespace sstferry {
namespace {

// Maximum number of characters of a key in the table, so that a row fits on a
// screen.
constexpr size_t kBoundWidth = 18;
// Maximum number of files or key intervals in the table. --json lists all.
constexpr size_t kMostItems = 40;

std::string Bound(const std::optional<std::string>& key,
                  const char* when_absent) {
  if (!key) {
    return when_absent;
  }
  std::string text = key->empty() ? "0x" : KeyToText(*key);
  if (text.size() <= kBoundWidth) {
    return text;
  }
  size_t cut = kBoundWidth - 2;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) {
    --cut;  // does not cut a UTF-8 character
  }
  return text.substr(0, cut) + "..";
}

std::string ServedNames(const Summary& summary) {
  const size_t count = summary.served_names.size();
  std::string text = summary.source + " serves " +
                     FormatCount(count, "database") + ":\n";
  const char* const between =
      summary.source.starts_with(kUnixScheme) ? ":" : "/";
  for (const std::string& name : summary.served_names) {
    text += "  " + summary.source + between + Printable(name) + "\n";
  }
  return text;
}

// An action of a plan, such as "rebuild", and a text about its bytes.
using ActionText = std::pair<const char*, const char*>;

// Returns the totals of the plan's actions, such as "rebuild: 3 files, 20.0
// MB". For a refresh in place, returns a line for each action, with the number
// of key intervals and their bytes.
std::string Actions(const Summary& summary) {
  const bool in_place = IsInPlace(summary);
  std::vector<ActionText> actions = {{"rebuild", ""}};
  if (in_place) {
    actions = {{"delta", " to read and compare on both sides; what differs is "
                         "sent"},
               {"rebuild", " to send"}};
  }
  std::string text;
  for (const auto& [action, meaning] : actions) {
    uint64_t count = 0;
    uint64_t bytes = 0;
    for (const PlanItemSummary& item : summary.items) {
      if (item.action == action) {
        ++count;
        bytes += item.bytes;
      }
    }
    if (in_place && count == 0) {
      continue;
    }
    text += (text.empty() ? "" : in_place ? "\n" : "; ") + std::string(action) +
            ": " + FormatCount(count, in_place ? "interval" : "file") + ", " +
            FormatBytes(bytes) + meaning;
  }
  return text + "\n";
}

std::string Families(const Summary& summary) {
  std::vector<std::vector<std::string>> rows = {
      {"COLUMN FAMILY", IsInPlace(summary) ? "INTERVALS" : "FILES", "BYTES"}};
  for (const std::string& family : summary.column_families) {
    uint64_t items = 0;
    uint64_t bytes = 0;
    for (const PlanItemSummary& item : summary.items) {
      if (item.column_family == family) {
        ++items;
        bytes += item.bytes;
      }
    }
    rows.push_back({KeyToText(family), std::to_string(items),
                    FormatBytes(bytes)});
  }
  return Table(rows);
}

std::string Items(const Summary& summary) {
  std::vector<std::vector<std::string>> rows = {
      {"COLUMN FAMILY", "FIRST", "LAST", "FILE", "BYTES", "ACTION", "REASON"}};
  const size_t shown = std::min(summary.items.size(), kMostItems);
  for (size_t i = 0; i < shown; ++i) {
    const PlanItemSummary& item = summary.items[i];
    rows.push_back({KeyToText(item.column_family),
                    Bound(item.begin, "-"), Bound(item.end, "-"),
                    item.file.empty() ? "-" : Printable(item.file),
                    FormatBytes(item.bytes), item.action,
                    Printable(item.reason)});
  }
  for (std::vector<std::string>& row : rows) {
    if (IsInPlace(summary)) {
      row.erase(row.begin() + 3);  // no FILE: an interval has no single file
    } else {
      row.resize(5);  // no ACTION and REASON: all files are rebuilt
    }
  }
  const size_t others = summary.items.size() - shown;
  return Table(rows) + (others == 0 ? ""
                                    : "and " + std::to_string(others) +
                                          " more (--json lists all)\n");
}

// Returns a table of the files and bytes that each method would send.
std::string Methods(const Summary& summary) {
  std::vector<std::vector<std::string>> rows = {{"METHOD", "FILES", "BYTES"}};
  std::string refused;
  for (const MethodSummary& method : summary.methods) {
    if (!method.why_not.empty()) {
      refused += method.method + ": not possible: " +
                 Printable(method.why_not) + "\n";
      continue;
    }
    rows.push_back({method.method,
                    method.files == 0 ? "-" : std::to_string(method.files),
                    FormatBytes(method.bytes)});
  }
  return (rows.size() > 1 ? Table(rows) : "") + refused;
}

// Returns the space that the pull needs on the target's disk.
std::string Disk(const Summary& summary) {
  const auto bytes = [](uint64_t count) {
    return FormatBytes(count);
  };
  return "disk: the target needs " + bytes(summary.needed_bytes) +
         (summary.target.empty() || summary.free_bytes == 0
              ? ""
              : "; " + bytes(summary.free_bytes) + " are free there") +
         "; the source links its files and writes no chunk\n";
}

// Returns lines with the method of the pull, the files that need not be sent,
// and the RocksDB releases that can open the result.
std::string Method(const Summary& summary) {
  std::string text = MethodLine(summary);
  if (summary.files_reused > 0) {
    text += "reused: " + FormatCount(summary.files_reused, "file") + ", " +
            FormatBytes(summary.bytes_reused) +
            ", which this machine has\n";
  }
  text += OpensLine(summary);
  return text;
}

}  // namespace

std::string PlanReport(const Summary& summary, bool brief) {
  if (summary.method.empty()) {  // SOURCE named no database to plan
    return ServedNames(summary);
  }
  std::string text = "plan: " + summary.source;
  if (!summary.target.empty()) {
    text += " -> " + summary.target;
  }
  if (summary.column_families.empty()) {
    text += "\n";  // the pull would end before it needs the source
    for (const std::string& note : summary.notes) {
      text += "note: " + Printable(note) + "\n";
    }
    return text;
  }
  text += ", snapshot at sequence " +
          std::to_string(summary.snapshot_sequence) + ", " +
          FormatCount(summary.parts, "part") + ", " +
          FormatCount(summary.lanes, "lane") + "\n";
  if (!summary.items.empty()) {
    text += Actions(summary);
  }
  if (!summary.methods.empty() && !IsInPlace(summary)) {
    text += Methods(summary);  // a refresh in place has no other method
  }
  text += Method(summary);
  text += Disk(summary);
  for (const std::string& note : summary.notes) {
    text += "note: " + Printable(note) + "\n";
  }
  // The totals come before the list, because the list may be long.
  if (!summary.items.empty() && !brief) {
    text += "\n" + Families(summary) + "\n" + Items(summary);
  }
  return text;
}

namespace {

int PlanHere(PullArguments plan, const RootSide* root) {
  Console console(plan.common, stderr, ScreenFor(root));
  if (!plan.before_swap.empty()) {
    // A plan does not run the hook, but its result depends on whether the pull
    // has a hook.
    plan.options.before_swap = [](const SwapEvent&) {
      return rocksdb::Status::OK();
    };
  }
  if (plan.all) {
    return PlanAll(plan, &console);
  }
  const std::unique_ptr<Operation> operation = MakePlan(plan.options);
  return RunOperation("plan", plan.common, &console, operation.get(),
                      [&plan](const Summary& summary) {
                        return PlanReport(summary, plan.summary_only);
                      });
}

}  // namespace

// Runs as the same account as the planned pull would.
int RunPlan(const std::vector<std::string>& arguments) {
  PullArguments plan;
  const rocksdb::Status usage = ParsePlan(arguments, &plan);
  if (!usage.ok()) {
    return ReportUsage("plan", usage);
  }
  Console console(plan.common);
  LogTlsWarnings(plan.options.tls, &console);
  const std::optional<uint32_t> account =
      AccountOfTarget(plan.options.target_dir + (plan.all ? "/replica" : ""));
  if (!account.has_value()) {
    return PlanHere(plan, nullptr);
  }
  HoldReloadSignal();
  RootDuties duties;
  duties.target_dir = plan.options.target_dir;
  duties.tls = &plan.options.tls;
  duties.command = "plan";
  duties.log = console.log_function();
  duties.uses_ssh = plan.options.source.is_ssh();
  return RunAs(*account, duties, arguments,
               [&plan](const std::vector<std::string>&, RootSide* root) {
                 return PlanHere(plan, root);
               });
}

}  // namespace sstferry
