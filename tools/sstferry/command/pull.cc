// sstferry pull
#include "tools/sstferry/command/operation_runner.h"
#include "tools/sstferry/command/run.h"
#include "tools/sstferry/options/command_arguments.h"
#include "tools/sstferry/output/console.h"
#include "tools/sstferry/output/progress.h"
#include "tools/sstferry/service/hook.h"
#include "tools/sstferry/service/reload.h"
#include "tools/sstferry/service/signals.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <optional>

namespace sstferry {
namespace {

std::string Seconds(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f s", seconds);
  return text.data();
}

std::string Rate(uint64_t bytes, double seconds) {
  return seconds > 0
             ? FormatBytes(static_cast<double>(bytes) / seconds) + "/s"
             : "-";
}

std::string Bytes(uint64_t bytes) {
  return FormatBytes(static_cast<double>(bytes));
}

std::string Levels(const Summary& summary) {
  std::string text;
  for (const auto& [level, files] : summary.levels) {
    if (files > 0) {
      text += (text.empty() ? "L" : ", L") + std::to_string(level) + ": " +
              std::to_string(files) + (files == 1 ? " file" : " files");
    }
  }
  return text.empty() ? "no files" : text;
}

// Where chunks of a refresh in place went, and what RocksDB owes for it.
std::string Placement(const Summary& summary) {
  std::string text;
  for (const auto& [level, chunks] : summary.ingested_levels) {
    text += (text.empty() ? "placed: " : ", ") + std::to_string(chunks) +
            (text.empty() ? chunks == 1 ? " chunk in L" : " chunks in L"
                          : " in L") +
            std::to_string(level);
  }
  return text.empty() ? text
                      : text + "; " + Bytes(summary.compaction_debt_bytes) +
                            " left to compact\n";
}

}  // namespace

std::string PullReport(const Summary& summary) {
  std::string text =
      "pulled: " + summary.source + " -> " + summary.target + ", " +
      std::to_string(summary.column_families.size()) +
      (summary.column_families.size() == 1 ? " column family"
                                           : " column families") +
      " at sequence " +
      std::to_string(summary.snapshot_sequence) + "\n";
  text += "moved: " + std::to_string(summary.entries) + " entries, " +
          Bytes(summary.key_value_bytes) + " of keys and values as " +
          Bytes(summary.sst_bytes) + " of SST in " +
          std::to_string(summary.chunks) + " chunks, " +
          Bytes(summary.wire_bytes) + " on the wire\n";
  if (summary.chunks_carried > 0) {
    text += "carried: " + std::to_string(summary.chunks_carried) +
            (summary.chunks_carried == 1 ? " file" : " files") +
            " of the source as they were, " +
            Bytes(summary.sst_bytes_carried);
    if (summary.chunks_unchecked > 0) {
      text += ", " + std::to_string(summary.chunks_unchecked) +
              " of them without block checksums";
    }
    text += "\n";
  }
  if (summary.chunks_resumed > 0) {
    text += "resumed: " + std::to_string(summary.chunks_resumed) +
            " of the chunks, " + Bytes(summary.sst_bytes_resumed) +
            ", had come before\n";
  }
  text += "time: " + Seconds(summary.seconds) + ", " +
          Rate(summary.sst_bytes - summary.sst_bytes_resumed,
               TransferSeconds(summary)) + ", " +
          std::to_string(summary.lanes) + " lanes, peak memory " +
          Bytes(summary.peak_rss_bytes) + "\n";
  text += "target: " + Levels(summary) + ", " +
          std::to_string(summary.ingest_calls) + " ingest calls\n";
  if (!summary.replaced.empty()) {
    text += "replaced: the old directory is " + summary.replaced + "\n";
  }
  if (summary.mode == "refresh") {
    text += "refreshed: from sequence " +
            std::to_string(summary.sequence_old) + " to " +
            std::to_string(summary.sequence_new) +
            (summary.visibility == "swap"
                 ? ", out of service for " + Seconds(summary.outage_seconds)
                 : "; ranges: " + std::to_string(summary.ranges_unchanged) +
                       " unchanged, " +
                       std::to_string(summary.ranges_compared) +
                       " compared, " + std::to_string(summary.ranges_sent) +
                       " sent") +
            "\n" + Placement(summary);
  }
  text += summary.verified
              ? "verified: equal\n"
              : "verified: not compared (pull --verify does, or sstferry "
                "verify SOURCE TARGET_DIR)\n";
  return text;
}

namespace {

// Even where the deadline has passed, the application is given this long to
// start.
constexpr std::chrono::seconds kLeastAfterSwap{60};

void SetHooks(PullArguments* pull) {
  using std::chrono::steady_clock;
  std::optional<steady_clock::time_point> until;
  if (pull->options.deadline.count() > 0) {
    until = steady_clock::now() + pull->options.deadline;
  }
  if (!pull->before_swap.empty()) {
    pull->options.before_swap =
        MakeCommandHook("--before-swap", pull->before_swap, until);
  }
  if (!pull->after_swap.empty()) {
    pull->options.after_swap = [until, command = pull->after_swap](
                                   const SwapEvent& event) {
      std::optional<steady_clock::time_point> limit = until;
      if (limit) {
        limit = std::max(*limit, steady_clock::now() + kLeastAfterSwap);
      }
      return MakeCommandHook("--after-swap", command, limit)(event);
    };
  }
}

void Reload(const std::vector<std::string>& words, Operation* operation,
            Console* console) {
  PullArguments again;
  const rocksdb::Status status = ParsePull(words, &again);
  ApplyReload(status, again.common, again.options.max_rate_bytes_per_sec,
              [operation](uint64_t rate) { operation->SetMaxRate(rate); },
              console);
}

}  // namespace

int RunPull(const std::vector<std::string>& arguments) {
  PullArguments pull;
  const rocksdb::Status usage = ParsePull(arguments, &pull);
  if (!usage.ok()) {
    return ReportUsage("pull", usage);
  }
  HoldReloadSignal();
  Console console(pull.common.log_level);
  pull.options.log = console.log_function();
  LogTlsWarnings(pull.options.tls, &console);
  SetHooks(&pull);
  const std::unique_ptr<Operation> operation = MakePull(pull.options);
  return RunOperation(
      "pull", pull.common, &console, operation.get(), PullReport,
      [&] { Reload(arguments, operation.get(), &console); });
}

}  // namespace sstferry
