#include "tools/sstferry/refresh_arguments.h"

#include "format/limits.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// What --visibility takes, and what a refresh without it means.
Status ReadVisibility(const OptionTexts& texts, Visibility* out) {
  const std::string text = texts.Get("visibility");
  *out = Visibility::kSwap;
  return text == "swap" ? Status::OK() : Wrong("--visibility", "swap", text);
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

// What a seed has no use for.
Status RefuseForSeed(const OptionTexts& texts) {
  for (const char* name :
       {"visibility", "before-swap", "after-swap", "delete-rate"}) {
    if (texts.Has(name)) {
      return Wrong(std::string("--") + name, "--mode refresh with it",
                   texts.Get(name));
    }
  }
  return texts.IsSet("adopt") ? Status::InvalidArgument(
                                    "--adopt: expected --mode refresh with it")
                              : Status::OK();
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
        "--replace: expected --mode seed with it; a refresh replaces");
  }
  status = ReadVisibility(texts, &options->visibility);
  if (status.ok()) {
    status = ReadCommand(texts, "before-swap", &out->before_swap);
  }
  if (status.ok()) {
    status = ReadCommand(texts, "after-swap", &out->after_swap);
  }
  if (status.ok() && texts.Has("delete-rate")) {
    status = ParseByteCount("--delete-rate", texts.Get("delete-rate"),
                            &options->delete_rate_bytes_per_sec);
  }
  return status;
}

}  // namespace sstferry
