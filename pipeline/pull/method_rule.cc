#include "pipeline/pull/method_rule.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

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

std::optional<PullMethod> MethodOfReplica(const PullOptions& options) {
  LastTransfer last;
  if (!IsSwap(options) || !ReadLastTransfer(options.target_dir, &last)) {
    return std::nullopt;
  }
  return last.method == "clone"    ? std::optional(PullMethod::kClone)
         : last.method == "ingest" ? std::optional(PullMethod::kIngest)
                                   : std::nullopt;
}

}  // namespace

// Each condition is a row of the table in docs/methods.md, in the same order.
MethodDecision DecideMethod(const MethodInput& input) {
  if (input.in_place) {
    return {PullMethod::kIngest, "a refresh in place"};
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
  std::error_code error;
  input.asked = options.method;
  input.in_place = options.mode == PullMode::kRefresh &&
                   std::filesystem::is_directory(options.target_dir, error) &&
                   !std::filesystem::is_empty(options.target_dir, error);
  input.no_clone = WhyNoClone(options.selection);
  if (input.no_clone.empty() && options.mode == PullMode::kRefresh) {
    input.no_clone =
        "a refresh in place never clones: sstferry swap does, and needs "
        "neither comparator nor operator of the application";
  }
  if (!options.restart) {
    input.unfinished = UnfinishedMethod(options.target_dir);
  }
  input.replica = MethodOfReplica(options);
  return input;
}

}  // namespace sstferry
