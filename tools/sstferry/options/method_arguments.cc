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
  if (options.verify) {
    return Status::InvalidArgument(
        "--verify: expected --method ingest with it; a clone's files are "
        "checked as they arrive, and sstferry verify compares entries");
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
  options->keep_identity = texts.IsSet("keep-identity");
  if (method != "clone") {
    options->method =
        method == "auto" ? PullMethod::kAuto : PullMethod::kIngest;
    return options->keep_identity
               ? Status::InvalidArgument(
                     "--keep-identity: expected --method clone with it")
               : Status::OK();
  }
  options->method = PullMethod::kClone;
  return RefuseForClone(texts, *options);
}

}  // namespace sstferry
