#include "tools/sstferry/options/refresh_arguments.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "format/hex.h"
#include "format/limits.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Of a file of --ranges: far above what a verify lists.
constexpr size_t kMaxRangesFileBytes = 64u << 20;

Status ReadCompaction(const OptionTexts& texts, PullOptions* options) {
  const std::string text = texts.Get("compact", "auto");
  options->compact = text != "none";
  options->compact_deltas = text == "auto";
  return text == "auto" || text == "paced" || text == "none"
             ? Status::OK()
             : Wrong("--compact", "auto, paced or none", text);
}

// 0x and hex digits; null, "" or nothing: no bound.
Status ReadBound(const nlohmann::json& range, const char* name,
                 std::optional<std::string>* out) {
  const auto found = range.find(name);
  if (found == range.end() || found->is_null() || *found == "") {
    return Status::OK();
  }
  const std::string text =
      found->is_string() ? found->get<std::string>() : found->dump();
  bool is_hex = found->is_string() && text.size() % 2 == 0 &&
                text.compare(0, 2, "0x") == 0 &&
                text.size() <= 2 + 2 * size_t{kMaxKeyBytes};
  std::string key;
  for (size_t i = 2; is_hex && i < text.size(); i += 2) {
    const std::optional<uint8_t> byte = HexByte(text[i], text[i + 1]);
    is_hex = byte.has_value();
    key.push_back(static_cast<char>(byte.value_or(0)));
  }
  *out = std::move(key);
  return is_hex ? Status::OK()
                : Wrong(name,
                        "0x and two hex digits for each byte of a key, or null",
                        text.substr(0, kMaxShownKeyBytes));
}

Status ReadRange(const nlohmann::json& item, FamilyRange* out) {
  if (!item.is_object() || !item.contains("column_family") ||
      !item["column_family"].is_string()) {
    return Status::InvalidArgument(
        "expected an object with column_family, begin and end");
  }
  out->column_family = item["column_family"].get<std::string>();
  if (out->column_family.empty() ||
      out->column_family.size() > kMaxFamilyNameBytes) {
    return Wrong("column_family",
                 "1 to " + std::to_string(kMaxFamilyNameBytes) + " bytes",
                 out->column_family.substr(0, kMaxShownKeyBytes));
  }
  const Status status = ReadBound(item, "begin", &out->interval.begin);
  return status.ok() ? ReadBound(item, "end", &out->interval.end) : status;
}

Status ReadRangesText(const std::string& path, std::string* text) {
  std::ifstream file(path, std::ios::binary);
  std::error_code error;
  if (!file || std::filesystem::is_directory(path, error)) {
    return Status::InvalidArgument("cannot be read");
  }
  text->resize(kMaxRangesFileBytes + 1);
  file.read(text->data(), static_cast<std::streamsize>(text->size()));
  text->resize(static_cast<size_t>(file.gcount()));
  return text->size() <= kMaxRangesFileBytes
             ? Status::OK()
             : Status::InvalidArgument("expected at most " +
                                       std::to_string(kMaxRangesFileBytes) +
                                       " bytes, found more");
}

// The report of a verify, or its different_ranges alone.
Status ReadRangesFile(const std::string& path,
                      std::vector<FamilyRange>* ranges) {
  std::string text;
  const Status status = ReadRangesText(path, &text);
  if (!status.ok()) {
    return status;
  }
  const nlohmann::json json =
      nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("different_ranges") ||
      !json["different_ranges"].is_array()) {
    return Status::InvalidArgument(
        "expected the JSON of sstferry verify --json, with a list "
        "different_ranges");
  }
  const nlohmann::json& list = json["different_ranges"];
  if (list.empty() || list.size() > kMaxListedRanges) {
    return Wrong("different_ranges",
                 "1 to " + std::to_string(kMaxListedRanges) + " of them",
                 list.empty() ? "none: there is nothing to repair"
                              : std::to_string(list.size()));
  }
  for (size_t i = 0; i < list.size(); ++i) {
    ranges->emplace_back();
    const Status read = ReadRange(list[i], &ranges->back());
    if (!read.ok()) {
      return Status::InvalidArgument(
          "different_ranges[" + std::to_string(i) + "]", read.getState());
    }
  }
  return Status::OK();
}

// Only what they list is looked at: an option for the rest has no meaning.
Status ReadRanges(const OptionTexts& texts, PullOptions* options) {
  if (!texts.Has("ranges")) {
    return Status::OK();
  }
  const std::string path = texts.Get("ranges");
  for (const char* name : {"cf", "begin", "end", "compare", "method"}) {
    if (texts.Has(name)) {
      return Wrong("--ranges", std::string("no --") + name + " with it", path);
    }
  }
  for (const char* name : {"adopt", "drop-missing", "verify"}) {
    if (texts.IsSet(name)) {
      return Wrong("--ranges", std::string("no --") + name + " with it", path);
    }
  }
  if (options->visibility != Visibility::kAll) {
    return Wrong("--ranges", "--visibility all with it",
                 texts.Get("visibility"));
  }
  const Status status = ReadRangesFile(path, &options->ranges);
  return status.ok() ? status
                     : Status::InvalidArgument("--ranges: " + path,
                                               status.getState());
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
       {"visibility", "compare", "compact", "compact-rate", "min-rate",
        "min-free", "ranges", "before-swap", "after-swap", "delete-rate"}) {
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

Status CheckMode(const OptionTexts& texts, PullOptions* options) {
  if (options->mode == PullMode::kSeed) {
    return RefuseForSeed(texts);
  }
  if (options->replace) {
    return Status::InvalidArgument(
        "--replace: expected --mode seed with it; a refresh always replaces");
  }
  Status status = RefuseForOthers(texts, options->visibility);
  if (status.ok()) {
    status = ReadRanges(texts, options);
  }
  if (status.ok()) {
    status = CheckDropMissing(texts, *options);
  }
  return status.ok() ? ReadCompaction(texts, options) : status;
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

Status ReadRefresh(const OptionTexts& texts, PullArguments* out) {
  PullOptions* options = &out->options;
  Status status = ReadSourceId(texts, &options->source_id);
  if (status.ok()) {
    status = CheckMode(texts, options);
  }
  return status.ok() ? CheckMethod(texts, *options) : status;
}

}  // namespace sstferry
