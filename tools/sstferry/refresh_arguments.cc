#include "tools/sstferry/refresh_arguments.h"

#include "format/limits.h"

namespace sstferry {
namespace {

using rocksdb::Status;

Status ReadCompaction(const OptionTexts& texts, bool* out) {
  const std::string text = texts.Get("compact", "auto");
  *out = text != "none";
  return text == "auto" || text == "none"
             ? Status::OK()
             : Wrong("--compact", "auto or none", text);
}

// Each way of becoming current has options that the others have no use for.
Status RefuseForOthers(const OptionTexts& texts, Visibility visibility) {
  const bool swap = visibility == Visibility::kSwap;
  for (const char* name : {"before-swap", "after-swap", "delete-rate"}) {
    if (!swap && texts.Has(name)) {
      return Wrong(std::string("--") + name, "--visibility swap with it",
                   texts.Get(name));
    }
  }
  for (const char* name : {"compare", "compact"}) {
    if (swap && texts.Has(name)) {
      return Wrong(std::string("--") + name, "--visibility all with it",
                   texts.Get(name));
    }
  }
  return swap && texts.IsSet("drop-missing")
             ? Status::InvalidArgument(
                   "--drop-missing: expected --visibility all with it; a swap "
                   "drops them always")
             : Status::OK();
}

// A part of the source does not show which families it dropped.
Status CheckDropMissing(const OptionTexts& texts, const PullOptions& options) {
  const bool part = texts.Has("cf") || texts.Has("begin") || texts.Has("end");
  return options.drop_missing && part
             ? Status::InvalidArgument(
                   "--drop-missing: expected none of --cf, --begin and --end "
                   "with it")
             : Status::OK();
}

Status ReadSourceId(const OptionTexts& texts, std::string* out) {
  if (!texts.Has("source-id")) {
    return Status::OK();
  }
  *out = texts.Get("source-id");
  return out->empty() || out->size() > kMaxIdentifierBytes
             ? Wrong("--source-id",
                     "1 to " + std::to_string(kMaxIdentifierBytes) + " bytes",
                     *out)
             : Status::OK();
}

// Refuses options that only a refresh uses.
Status RefuseForSeed(const OptionTexts& texts) {
  for (const char* name :
       {"visibility", "compare", "compact", "min-free", "before-swap",
        "after-swap", "delete-rate"}) {
    if (texts.Has(name)) {
      return Wrong(std::string("--") + name, "--mode refresh with it",
                   texts.Get(name));
    }
  }
  for (const char* name : {"adopt", "drop-missing"}) {
    if (texts.IsSet(name)) {
      return Status::InvalidArgument(std::string("--") + name +
                                     ": expected --mode refresh with it");
    }
  }
  return Status::OK();
}

Status CheckMode(const OptionTexts& texts, PullOptions* options) {
  if (options->mode == PullMode::kSeed) {
    return RefuseForSeed(texts);
  }
  if (options->replace) {
    return Status::InvalidArgument(
        "--replace: expected --mode seed with it; a refresh always replaces");
  }
  RETURN_IF_ERROR(RefuseForOthers(texts, options->visibility));
  RETURN_IF_ERROR(CheckDropMissing(texts, *options));
  return ReadCompaction(texts, &options->compact);
}

// Refuses options of a clone for other methods, and those for a clone that
// choose or change entries, which it does not look at.
Status CheckMethod(const OptionTexts& texts, const PullOptions& options) {
  if (options.method != PullMethod::kClone) {
    for (const char* name : {"keep-identity", "reuse", "always-swap"}) {
      if (texts.Has(name) || texts.IsSet(name)) {
        return Status::InvalidArgument(
            std::string("--") + name + ": expected --method clone with it");
      }
    }
    return Status::OK();
  }
  for (const char* name : {"cf", "begin", "end"}) {
    if (texts.Has(name)) {
      return Wrong(std::string("--") + name, "--method ingest with it",
                   texts.Get(name));
    }
  }
  if (options.always_swap && !IsSwap(options)) {
    return Status::InvalidArgument(
        "--always-swap: expected --visibility swap with it");
  }
  return options.mode == PullMode::kRefresh && !IsSwap(options)
             ? Status::InvalidArgument(
                   "--method clone: expected --mode seed or --visibility swap "
                   "with it; all changes a database in place")
             : Status::OK();
}

}  // namespace

Status ReadRefresh(const OptionTexts& texts, PullArguments* out) {
  PullOptions* options = &out->options;
  RETURN_IF_ERROR(ReadSourceId(texts, &options->source_id));
  RETURN_IF_ERROR(CheckMode(texts, options));
  return CheckMethod(texts, *options);
}

}  // namespace sstferry
