#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <map>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "format/limits.h"
#include "format/printable.h"
#include "sstferry/descriptor.h"
#include "sstferry/options.h"
#include "sstferry/transport.h"

namespace sstferry {
namespace {

using nlohmann::ordered_json;
using rocksdb::Slice;
using rocksdb::Status;

// The last second of the year 9999: RFC 3339 has only four digits for the year.
constexpr uint64_t kLastSecondOf9999 = 253'402'300'799;

// Formats a time like "2026-11-22T13:45:06".
std::string UtcSeconds(time_t seconds) {
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  return text.data();
}

bool IsPlainText(const Slice& key) {
  if (key.starts_with("0x")) {
    return false;
  }
  Slice rest = key;
  while (!rest.empty()) {
    const size_t length = PrintableLength(rest);
    if (length == 0) {
      return false;
    }
    rest.remove_prefix(length);
  }
  return true;
}

ordered_json Bound(const std::optional<std::string>& key) {
  return key ? ordered_json(KeyToText(*key)) : ordered_json(nullptr);
}

// Returns the value, or null if it is not known. (The numbers 0 and "" may be
// known values.)
template <typename Value>
ordered_json Known(bool is_known, const Value& value) {
  return is_known ? ordered_json(value) : ordered_json(nullptr);
}
ordered_json Known(const std::string& text) {
  return Known(!text.empty(), text);
}

ordered_json Versions(const SideVersions& versions) {
  return {{"software", Known(versions.software)},
          {"rocksdb", Known(versions.rocksdb)}};
}

template <size_t kCount>
ordered_json Stages(const char* const (&names)[kCount],
                    const std::map<std::string, double>& seconds) {
  if (seconds.empty()) {
    return nullptr;  // the side has sent no times
  }
  ordered_json object = ordered_json::object();
  for (const char* name : names) {
    object[name] = 0.0;
  }
  for (const auto& [name, value] : seconds) {
    object[name] = value;
  }
  return object;
}

ordered_json PerSecond(uint64_t amount, double seconds) {
  return seconds > 0 ? ordered_json(static_cast<double>(amount) / seconds)
                     : ordered_json(nullptr);
}

// Returns true if this side has received the source's plan, which tells the
// snapshot.
bool HasPlan(const Summary& summary) {
  return !summary.column_families.empty();
}

bool IsOf(const Summary& summary, PullMode mode) {
  return summary.mode == PullModeName(mode);
}

// Returns true if the transfer wrote entries over existing data of the target,
// or could have done so.
bool HasDelta(const Summary& summary) {
  return IsInPlace(summary) ||
         summary.parts_unchanged + summary.parts_compared +
                 summary.parts_left + summary.parts_delta >
             0;
}

template <typename Key, typename Value>
ordered_json Map(const std::map<Key, Value>& map) {
  ordered_json object = ordered_json::object();
  for (const auto& [key, value] : map) {
    std::ostringstream name;
    name << key;
    object[name.str()] = value;
  }
  return Known(!map.empty(), object);
}

void AddTotals(const Summary& summary, ordered_json* out) {
  const bool has_plan = HasPlan(summary);
  const bool is_swap = IsOf(summary, PullMode::kSwap);
  const bool has_delta = HasDelta(summary);
  const bool is_clone = summary.method == "clone";
  const bool is_refresh = IsOf(summary, PullMode::kRefresh);
  ordered_json& json = *out;
  json["snapshot_sequence"] = Known(has_plan, summary.snapshot_sequence);
  json["target_sequence"] = Known(summary.target_sequence.has_value(),
                                  summary.target_sequence.value_or(0));
  json["snapshot_taken_at"] = Known(Rfc3339(summary.snapshot_taken_seconds));
  json["snapshot_taken_seconds"] = Known(summary.snapshot_taken_seconds != 0,
                                         summary.snapshot_taken_seconds);
  json["last_flush_seconds_before"] =
      Known(summary.last_flush_seconds_before.has_value(),
            summary.last_flush_seconds_before.value_or(0));
  json["sequence_old"] =
      Known(summary.sequence_old != 0, summary.sequence_old);
  json["sequence_new"] =
      Known(has_plan && (has_delta || is_swap || is_refresh),
            summary.sequence_new);
  json["outage_seconds"] = Known(is_swap, summary.outage_seconds);
  json["exchanged"] =
      Known(is_swap || (is_refresh && is_clone), summary.exchanged);
  json["column_families"] = summary.column_families;
  json["parts"] = Known(has_plan, summary.parts);
  json["parts_unchanged"] = Known(has_delta, summary.parts_unchanged);
  json["parts_sent"] = Known(has_delta, summary.parts_sent);
  json["parts_compared"] = Known(has_delta, summary.parts_compared);
  json["parts_left"] = Known(has_delta, summary.parts_left);
  json["parts_delta"] = Known(has_delta, summary.parts_delta);
  json["parts_proven"] = Known(has_delta, summary.parts_proven);
  json["parts_unproven"] = Known(has_delta, summary.parts_unproven);
  json["parts_whole"] = Known(has_delta, summary.parts_whole);
  json["entries_put"] = Known(has_delta, summary.entries_put);
  json["entries_deleted"] = Known(has_delta, summary.entries_deleted);
  json["bytes_skipped"] = Known(has_delta, summary.bytes_skipped);
  json["bytes_read"] = summary.bytes_read;
  json["bytes_written"] = summary.bytes_written;
  json["chunks"] = summary.chunks;
  json["chunks_built"] = summary.chunks_built;
  json["chunks_delta"] = Known(has_delta, summary.chunks_delta);
  json["chunks_resumed"] = summary.chunks_resumed;
  json["chunks_cloned"] = Known(is_clone, summary.chunks_cloned);
  json["chunks_unchecked"] = Known(is_clone, summary.chunks_unchecked);
  json["files_cloned"] = Known(is_clone, summary.files_cloned);
  const bool reuses = is_clone || summary.files_reused != 0;
  json["files_reused"] = Known(reuses, summary.files_reused);
  json["bytes_reused"] = Known(reuses, summary.bytes_reused);
  json["other_files"] = summary.other_files;
  json["other_files_bytes"] = summary.other_files_bytes;
  json["entries"] = summary.entries;
  json["key_value_bytes"] = summary.key_value_bytes;
  json["sst_bytes"] = summary.sst_bytes;
  json["sst_bytes_resumed"] = summary.sst_bytes_resumed;
  json["wire_bytes"] = summary.wire_bytes;
  json["compressed"] = {{"frames", summary.compressed_frames},
                        {"bytes_before", summary.compressed_bytes_before},
                        {"bytes_after", summary.compressed_bytes_after}};
  json["ingest_calls"] = summary.ingest_calls;
  json["write_blocked_micros"] = Map(summary.write_blocked_micros);
  json["compaction_debt_bytes"] =
      Known(has_delta, summary.compaction_debt_bytes);
  json["ingested_levels"] = Map(summary.ingested_levels);
  json["levels"] = Map(summary.levels);
  json["seconds"] = summary.seconds;
  json["sst_bytes_per_second"] = PerSecond(
      summary.sst_bytes - summary.sst_bytes_resumed, TransferSeconds(summary));
  json["key_value_bytes_per_second"] =
      PerSecond(summary.key_value_bytes - summary.key_value_bytes_resumed,
                TransferSeconds(summary));
  json["stage_seconds"] = {
      {"source", Stages(kSourceStages, summary.source_stage_seconds)},
      {"target", Stages(kTargetStages, summary.target_stage_seconds)}};
  json["peak_rss_bytes"] =
      Known(summary.peak_rss_bytes != 0, summary.peak_rss_bytes);
  json["lanes"] = Known(summary.lanes != 0, summary.lanes);
  json["retries"] = summary.retries;
}

ordered_json Side(const ComparedSide& side) {
  ordered_json object = {
      {"address", side.address},
      {"snapshot_transfer_id", Known(side.snapshot_transfer_id)},
      {"database_id", Known(side.database_id)},
      {"snapshot_sequence",
       Known(!side.database_id.empty() || side.snapshot_sequence != 0,
             side.snapshot_sequence)},
      {"pulled", nullptr}};
  if (!side.pulled_transfer_id.empty()) {
    object["pulled"] = {{"transfer_id", side.pulled_transfer_id},
                        {"snapshot_sequence", side.pulled_sequence}};
  }
  return object;
}

void AddVerify(const Summary& summary, ordered_json* out) {
  const bool by_files = summary.compared == "files";
  const bool by_entries = summary.compared == "entries";
  ordered_json& json = *out;
  json["left"] = Side(summary.left);
  json["right"] = Side(summary.right);
  json["compared"] = Known(summary.compared);
  json["files_compared"] = Known(by_files, summary.files_compared);
  json["bytes_compared"] = Known(by_files, summary.bytes_compared);
  json["entries_left"] = Known(by_entries, summary.entries_left);
  json["entries_right"] = Known(by_entries, summary.entries_right);
  json["differences"] = Known(by_files || by_entries, summary.differences);
  json["first_differences"] = ordered_json::array();
  for (const DifferenceSummary& difference : summary.first_differences) {
    const bool is_file = !difference.file.empty();
    json["first_differences"].push_back(
        {{"column_family", difference.column_family},
         {"key", Known(!is_file, KeyToText(difference.key))},
         {"key_bytes", Known(!is_file, difference.key_bytes)},
         {"what", difference.what},
         {"file", Known(difference.file)}});
  }
}

ordered_json Methods(const Summary& summary) {
  ordered_json methods = ordered_json::array();
  for (const MethodSummary& method : summary.methods) {
    const bool possible = method.why_not.empty();
    methods.push_back(
        {{"method", method.method},
         {"possible", possible},
         {"why_not", Known(method.why_not)},
         {"files", Known(possible && method.files > 0, method.files)},
         {"bytes", Known(possible, method.bytes)}});
  }
  return methods;
}

void AddPlan(const Summary& summary, ordered_json* out) {
  ordered_json& json = *out;
  json["items"] = ordered_json::array();
  for (const PlanItemSummary& item : summary.items) {
    json["items"].push_back({{"column_family", item.column_family},
                             {"begin", Bound(item.begin)},
                             {"end", Bound(item.end)},
                                                 {"file", item.file},
                             {"bytes", item.bytes},
                             {"action", item.action},
                             {"reason", item.reason}});
  }
  const bool has_space = summary.needed_bytes != 0 || summary.free_bytes != 0;
  json["needed_bytes"] = Known(has_space, summary.needed_bytes);
  json["free_bytes"] =
      Known(has_space && !summary.target.empty(), summary.free_bytes);
  json["served_names"] = summary.served_names;
}

}  // namespace

std::string KeyToText(const Slice& key) {
  if (IsPlainText(key)) {
    return key.ToString();
  }
  std::string text("0x");
  text += key.ToString(true);
  return text;
}

bool IsInPlace(const Summary& summary) {
  return IsOf(summary, PullMode::kRefresh) && summary.method != "clone";
}

const char* PullModeName(PullMode mode) {
  switch (mode) {
    case PullMode::kPull:
      return "pull";
    case PullMode::kRefresh:
      return "refresh";
    case PullMode::kSwap:
      return "swap";
  }
  return "unknown";
}

std::string SummaryToJson(const Summary& summary, const std::string& command) {
  const EndState state = EndStateOf(summary.status);
  ordered_json json;
  json["schema"] = 1;
  json["command"] = command;
  json["status"] = EndStateName(state);
  json["exit_code"] = ExitCodeOf(state);
  json["error"] = nullptr;
  if (!summary.status.ok()) {
    json["error"] = {{"code", EndStateName(state)},
                     {"message", SentenceOf(summary.status)},
                     {"where", Known(summary.error_where)},
                     {"next", Known(NextOf(summary.status))}};
  }
  json["started_at"] = Known(summary.started_at);
  json["finished_at"] = Known(summary.finished_at);
  json["versions"] = {{"source", Versions(summary.source_versions)},
                      {"target", Versions(summary.target_versions)}};
  json["mode"] = Known(summary.mode);
  json["method"] = Known(summary.method);
  json["method_reason"] = Known(summary.method_reason);
  json["methods"] = Methods(summary);
  json["for_rocksdb"] = Known(summary.for_rocksdb);
  json["opens_since"] = Known(summary.opens_since);
  json["opens_because"] = Known(summary.opens_because);
  json["state"] = Known(summary.state);
  json["source"] = Known(summary.source);
  json["target"] = Known(summary.target);
  json["selection"] = {
      {"column_families", summary.selection.families},
      {"begin", Bound(summary.selection.interval.begin)},
      {"end", Bound(summary.selection.interval.end)}};
  json["transfer_id"] = Known(summary.transfer_id);
  json["source_database_id"] = Known(summary.source_database_id);
  AddTotals(summary, &json);
  json["verified"] = Known(summary.verified, true);
  json["notes"] = summary.notes;
  if (command == "verify") {
    AddVerify(summary, &json);
  } else if (command == "plan") {
    AddPlan(summary, &json);
  }
  // Replace invalid UTF-8, which paths and family names may contain.
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

double TransferSeconds(const Summary& summary) {
  const auto deletion = summary.target_stage_seconds.find("delete");
  return deletion == summary.target_stage_seconds.end()
             ? summary.seconds
             : summary.seconds - deletion->second;
}

std::string SoftwareVersion() {
  return std::string("sstferry ") + SSTFERRY_VERSION;
}

std::string NowRfc3339() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  std::array<char, 8> millis{};
  std::snprintf(millis.data(), millis.size(), ".%03dZ",
                static_cast<int>(now.tv_nsec / 1'000'000));
  return UtcSeconds(now.tv_sec) + millis.data();
}

std::string Rfc3339(uint64_t seconds) {
  return seconds == 0 || seconds > kLastSecondOf9999
             ? std::string()
             : UtcSeconds(static_cast<time_t>(seconds)) + "Z";
}

bool ParseRfc3339(const std::string& text, uint64_t* seconds) {
  std::tm utc{};
  const char* const end = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  const time_t parsed = end != nullptr && *end == '\0' ? timegm(&utc) : -1;
  *seconds = static_cast<uint64_t>(std::max<time_t>(parsed, 0));
  return parsed >= 0;
}

std::optional<uint64_t> KnownAge(uint64_t now_seconds, uint64_t then_seconds) {
  if (then_seconds > now_seconds + kMostAheadSeconds) {
    return std::nullopt;
  }
  return now_seconds - std::min(now_seconds, then_seconds);
}

uint64_t PeakRssBytes() {
  std::istringstream status(ReadProc("self/status"));
  std::string line;
  while (std::getline(status, line)) {
    unsigned long long kibibytes = 0;
    if (std::sscanf(line.c_str(), "VmHWM: %llu kB", &kibibytes) == 1) {
      return kibibytes * 1024;
    }
  }
  // If /proc is missing, use getrusage(). Its maximum includes the program that
  // ran in this process before exec().
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace sstferry
