#include "pipeline/pull/method_rule.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "format/journal.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/pull/target_state.h"
#include "rocksdb/db.h"

namespace sstferry {
namespace {

bool HasDefault(const Selection& selection) {
  return selection.families.empty() ||
         std::find(selection.families.begin(), selection.families.end(),
                   rocksdb::kDefaultColumnFamilyName) !=
             selection.families.end();
}

// Returns true for a refresh whose TARGET_DIR is not empty.
bool Refreshes(const PullOptions& options) {
  std::error_code error;
  return options.mode == PullMode::kRefresh &&
         std::filesystem::is_directory(options.target_dir, error) &&
         !std::filesystem::is_empty(options.target_dir, error);
}

// Returns the method that made the replica. Returns kIngest for a refresh of a
// replica without a record, so that the refresh changes only entries.
std::optional<PullMethod> MethodOfReplica(const PullOptions& options) {
  LastTransfer last;
  const bool refreshes = Refreshes(options);
  if ((!refreshes && options.mode != PullMode::kSwap) ||
      (!ReadLastTransfer(options.target_dir, &last) && !refreshes)) {
    return std::nullopt;
  }
  return last.method == "clone" ? std::optional(PullMethod::kClone)
         : last.method == "ingest" || refreshes
             ? std::optional(PullMethod::kIngest)
             : std::nullopt;
}

// Returns the method of the unfinished pull. If it is a refresh in place,
// ignores it unless this command is a refresh, too: a swap replaces its result.
std::optional<PullMethod> MethodOfUnfinished(const PullOptions& options) {
  const std::string mode =
      options.restart ? "" : UnfinishedMode(options.target_dir);
  const bool ingests =
      mode == kIngestMode || mode == kLinkedMode ||
      (mode == kInPlaceMode && options.mode == PullMode::kRefresh);
  const bool clones =
      mode == kCloneMode || mode == kFollowMode || mode == kAdoptMode;
  return clones    ? std::optional(PullMethod::kClone)
         : ingests ? std::optional(PullMethod::kIngest)
                   : std::nullopt;
}

std::string WhyNotByFiles(const PullOptions& options) {
  const Selection& selection = options.selection;
  if (Refreshes(options) && options.adopt) {
    return "--adopt compares the replica with its new source";
  }
  return Refreshes(options) && !TextOf(selection).is_all()
             ? "a part of a replica is refreshed in place"
             : WhyNoClone(selection);
}

// Each condition is a row of the table in docs/methods.md, in the same order.
MethodDecision Decide(const MethodInput& input) {
  if (input.is_open) {
    return {PullMethod::kIngest, "the application has the replica open"};
  }
  if (input.asked != PullMethod::kAuto) {
    return {input.asked, "asked for"};
  }
  if (!input.no_clone.empty()) {
    return {PullMethod::kIngest, "auto: " + input.no_clone};
  }
  if (input.unfinished.has_value()) {
    return {*input.unfinished, "auto: the unfinished pull uses this method"};
  }
  if (input.replica == PullMethod::kIngest) {
    return {PullMethod::kIngest,
            "auto: the replica was built from chunks and remains so"};
  }
  return {PullMethod::kClone,
          "auto: the files of a whole database are sent as they are",
          /*asks_source=*/true};
}

}  // namespace

MethodDecision DecideMethod(const MethodInput& input) {
  MethodDecision decision = Decide(input);
  decision.in_place =
      input.is_open ||
      (input.refreshes && decision.method == PullMethod::kIngest);
  return decision;
}

std::string WhyNoClone(const Selection& selection) {
  if (!(selection.interval == KeyInterval())) {
    return "a clone contains all keys of its column families (no --begin, "
           "--end)";
  }
  if (!HasDefault(selection)) {
    return "a clone must contain the column family 'default', which RocksDB "
           "cannot drop (add --cf default)";
  }
  return "";
}

MethodInput MethodInputOf(const PullOptions& options) {
  MethodInput input;
  input.asked = options.method;
  input.refreshes = Refreshes(options);
  input.no_clone = WhyNotByFiles(options);
  input.unfinished = MethodOfUnfinished(options);
  input.replica = MethodOfReplica(options);
  return input;
}

}  // namespace sstferry
