#include "pipeline/api/method_choice.h"

#include "format/end_state.h"
#include "pipeline/api/operation_parts.h"
#include "pipeline/pull/target_state.h"

namespace sstferry {

using rocksdb::Status;

namespace {

bool SelectsAll(const Selection& selection) {
  return selection.families.empty() && selection.interval == KeyInterval();
}

}  // namespace

bool SwapWouldClone(const PullOptions& options) {
  return SelectsAll(options.selection) && options.mode == PullMode::kRefresh;
}

std::string WhyNoClone(const PullOptions& options) {
  if (!SelectsAll(options.selection)) {
    return "a clone has all column families and all keys (no --cf, --begin, "
           "--end)";
  }
  if (SwapWouldClone(options)) {
    return "a refresh in place never clones: sstferry swap does, and needs "
           "no comparator and no operator of the application";
  }
  return "";
}

MethodChoice FirstChoice(const PullOptions& options) {
  MethodChoice choice;
  choice.method = options.method;
  if (RefreshesInPlace(options)) {
    choice.method = PullMethod::kIngest;
    choice.reason = "a refresh in place";
    return choice;
  }
  if (options.method != PullMethod::kAuto) {
    choice.reason = "asked for";
    return choice;
  }
  const std::string why = WhyNoClone(options);
  if (!why.empty()) {
    choice.method = PullMethod::kIngest;
    choice.reason = "auto: " + why;
    return choice;
  }
  const std::optional<PullMethod> begun =
      options.restart ? std::nullopt : UnfinishedMethod(options.target_dir);
  if (begun == PullMethod::kClone) {
    choice.method = PullMethod::kClone;
  }
  choice.reason = begun.has_value()
                      ? "auto: the unfinished pull was begun with it"
                      : "auto: chunks hold all that the database holds";
  return choice;
}

MethodChoice CloneInstead(const Status& refusal, bool cheaper) {
  MethodChoice choice;
  choice.method = PullMethod::kClone;
  choice.reason = "auto: " + MessageOf(refusal);
  if (!cheaper) {
    choice.note = "clones the database, since chunks cannot hold all of it: " +
                  MessageOf(refusal);
  }
  choice.starts_over = true;
  return choice;
}

MethodChoice ChunksNevertheless(const Status& no_clone, bool leaves_out) {
  MethodChoice choice;
  choice.method = PullMethod::kIngest;
  choice.reason = "auto: a clone is refused: " + MessageOf(no_clone);
  if (leaves_out) {
    choice.note = "moves the database as chunks, which leave something out, "
                  "since a clone is refused: " + MessageOf(no_clone);
  }
  choice.starts_over = true;
  return choice;
}

Status WithoutClone(const Status& refusal, const std::string& why) {
  return MakeStatus(EndStateOf(refusal),
                    MessageOf(refusal) + "; no clone instead: " + why);
}

}  // namespace sstferry
