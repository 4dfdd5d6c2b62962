#include "tools/sstferry/options/method_arguments.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Options that choose or change entries, which a clone does not look at.
Status RefuseForClone(const OptionTexts& texts, const PullOptions& options) {
  for (const char* name :
       {"cf", "begin", "end", "carry", "format-version"}) {
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
                   "with it; all and chunk change a database in place")
             : Status::OK();
}

}  // namespace

Status ReadMethod(const OptionTexts& texts, PullOptions* options) {
  const std::string method = texts.Get("method", "auto");
  if (method != "auto" && method != "ingest" && method != "clone") {
    return Wrong("--method", "auto, ingest or clone", method);
  }
  if (method != "clone") {
    options->method =
        method == "auto" ? PullMethod::kAuto : PullMethod::kIngest;
    for (const char* name : {"keep-identity", "reuse", "always-swap"}) {
      if (texts.Has(name) || texts.IsSet(name)) {
        return Status::InvalidArgument(
            std::string("--") + name + ": expected --method clone with it");
      }
    }
    return Status::OK();
  }
  options->keep_identity = texts.IsSet("keep-identity");
  options->always_swap = texts.IsSet("always-swap");
  options->reuse_dir = texts.Get("reuse");
  options->method = PullMethod::kClone;
  return RefuseForClone(texts, *options);
}

}  // namespace sstferry
