#include "tools/sstferry/job_arguments.h"

#include <algorithm>

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

// Refuses --drop-missing for a selection, which does not show which families
// the source dropped.
Status CheckDropMissing(const OptionTexts& texts, const PullOptions& options) {
  const bool part = texts.Has("cf") || texts.Has("begin") || texts.Has("end");
  return options.drop_missing && part
             ? Status::InvalidArgument(
                   "--drop-missing: not possible together with --cf, --begin "
                   "or --end")
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

// Refuses options that only a clone has with other methods. Refuses options
// that select or change entries with a clone, which copies complete files.
Status CheckMethod(const OptionTexts& texts, const PullOptions& options) {
  if (options.method != PullMethod::kClone) {
    for (const char* name : {"keep-identity", "reuse", "always-swap"}) {
      if (texts.Has(name) || texts.IsSet(name)) {
        return OnlyWith(std::string("--") + name, "--method clone");
      }
    }
    return Status::OK();
  }
  for (const char* name : {"begin", "end"}) {
    if (texts.Has(name)) {
      return OnlyWith(std::string("--") + name, "--method ingest",
                      "--method clone");
    }
  }
  const std::vector<std::string>& families = options.selection.families;
  return families.empty() || std::find(families.begin(), families.end(),
                                       "default") != families.end()
             ? Status::OK()
             : Wrong("--cf",
                     "default among them, because a clone always has it, or "
                     "--method ingest",
                     families.front());
}

}  // namespace

Status ReadJob(const OptionTexts& texts, PullArguments* out) {
  PullOptions* options = &out->options;
  RETURN_IF_ERROR(ReadSourceId(texts, &options->source_id));
  RETURN_IF_ERROR(CheckDropMissing(texts, *options));
  RETURN_IF_ERROR(ReadCompaction(texts, &options->compact));
  return CheckMethod(texts, *options);
}

}  // namespace sstferry
