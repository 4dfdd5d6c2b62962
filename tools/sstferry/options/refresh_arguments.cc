#include "tools/sstferry/options/refresh_arguments.h"

#include "format/limits.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Default: all.
Status ReadVisibility(const OptionTexts& texts, Visibility* out) {
  const std::string text = texts.Get("visibility", "all");
  *out = text == "chunk"  ? Visibility::kChunk
         : text == "swap" ? Visibility::kSwap
                          : Visibility::kAll;
  return text == "all" || text == "chunk" || text == "swap"
             ? Status::OK()
             : Wrong("--visibility", "all, chunk or swap", text);
}

Status ReadCompare(const OptionTexts& texts, CompareMode* out) {
  const std::string text = texts.Get("compare", "files");
  *out = text == "digest" ? CompareMode::kDigest
         : text == "full" ? CompareMode::kFull
                          : CompareMode::kFiles;
  return text == "files" || text == "digest" || text == "full"
             ? Status::OK()
             : Wrong("--compare", "files, digest or full", text);
}

Status ReadCompaction(const OptionTexts& texts, PullOptions* options) {
  const std::string text = texts.Get("compact", "auto");
  options->compact = text != "none";
  options->compact_deltas = text == "auto";
  options->single_delete = texts.IsSet("single-delete");
  Status status = text == "auto" || text == "paced" || text == "none"
                      ? Status::OK()
                      : Wrong("--compact", "auto, paced or none", text);
  if (status.ok() && texts.Has("compact-rate")) {
    uint64_t rate = 0;
    status = ParseByteCount("--compact-rate", texts.Get("compact-rate"), &rate);
    options->compact_rate_bytes_per_sec = rate;
  }
  if (status.ok() && texts.Has("min-rate")) {
    status = ParseByteCount("--min-rate", texts.Get("min-rate"),
                            &options->min_rate_bytes_per_sec);
  }
  return status;
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
  for (const char* name : {"compare", "compact", "compact-rate", "min-rate"}) {
    if (swap && texts.Has(name)) {
      return Wrong(std::string("--") + name,
                   "--visibility all or chunk with it", texts.Get(name));
    }
  }
  if (swap && texts.IsSet("single-delete")) {
    return Status::InvalidArgument(
        "--single-delete: expected --visibility all or chunk with it; a swap "
        "lays no entry above another");
  }
  return swap && texts.IsSet("drop-missing")
             ? Status::InvalidArgument(
                   "--drop-missing: expected --visibility all or chunk with "
                   "it; a swap drops them always")
             : Status::OK();
}

// A part of the source does not show which families it dropped.
Status ReadDropMissing(const OptionTexts& texts, PullOptions* options) {
  options->drop_missing = texts.IsSet("drop-missing");
  const bool part = texts.Has("cf") || texts.Has("begin") || texts.Has("end");
  return options->drop_missing && part
             ? Status::InvalidArgument(
                   "--drop-missing: expected none of --cf, --begin and --end "
                   "with it")
             : Status::OK();
}

// It may not be empty: a shell would do nothing, and well.
Status ReadCommand(const OptionTexts& texts, const std::string& name,
                   std::string* out) {
  if (texts.Has(name)) {
    *out = texts.Get(name);
    if (out->find_first_not_of(" \t") == std::string::npos) {
      return Wrong("--" + name, "a command", *out);
    }
  }
  return Status::OK();
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
       {"visibility", "compare", "compact", "compact-rate", "min-rate",
        "min-free", "before-swap", "after-swap", "delete-rate"}) {
    if (texts.Has(name)) {
      return Wrong(std::string("--") + name, "--mode refresh with it",
                   texts.Get(name));
    }
  }
  for (const char* name : {"adopt", "drop-missing", "single-delete"}) {
    if (texts.IsSet(name)) {
      return Status::InvalidArgument(std::string("--") + name +
                                     ": expected --mode refresh with it");
    }
  }
  return Status::OK();
}

}  // namespace

Status ReadRefresh(const OptionTexts& texts, PullArguments* out) {
  PullOptions* options = &out->options;
  Status status = ReadSourceId(texts, &options->source_id);
  if (!status.ok()) {
    return status;
  }
  const std::string mode = texts.Get("mode", "seed");
  if (mode != "seed" && mode != "refresh") {
    return Wrong("--mode", "seed or refresh", mode);
  }
  if (mode == "seed") {
    return RefuseForSeed(texts);
  }
  options->mode = PullMode::kRefresh;
  options->adopt = texts.IsSet("adopt");
  if (options->replace) {
    return Status::InvalidArgument(
        "--replace: expected --mode seed with it; a refresh always replaces");
  }
  status = ReadVisibility(texts, &options->visibility);
  if (status.ok()) {
    status = RefuseForOthers(texts, options->visibility);
  }
  if (status.ok()) {
    status = ReadCompare(texts, &options->compare);
  }
  if (status.ok()) {
    status = ReadDropMissing(texts, options);
  }
  if (status.ok()) {
    status = ReadCompaction(texts, options);
  }
  if (status.ok()) {
    status = ReadCommand(texts, "before-swap", &out->before_swap);
  }
  if (status.ok()) {
    status = ReadCommand(texts, "after-swap", &out->after_swap);
  }
  if (status.ok() && texts.Has("min-free")) {
    status = ParsePercent("--min-free", texts.Get("min-free"),
                          &options->min_free_percent);
  }
  if (status.ok() && texts.Has("delete-rate")) {
    status = ParseByteCount("--delete-rate", texts.Get("delete-rate"),
                            &options->delete_rate_bytes_per_sec);
  }
  return status;
}

}  // namespace sstferry
