#include "tools/sstferry/standby_report.h"
#include "tools/sstferry/result_json.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include <nlohmann/json.hpp>

#include "format/end_state.h"
#include "format/printable.h"
#include "format/quantity.h"

namespace sstferry {
namespace {

using nlohmann::ordered_json;

// Returns the age of a time in milliseconds, measured with the clock of this
// machine. Returns nullopt if the time is 0 or too far in the future
// (KnownAge()).
std::optional<uint64_t> MillisSince(uint64_t micros) {
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  const bool is_known = KnownAge(static_cast<uint64_t>(now) / 1'000'000,
                                 micros / 1'000'000)
                            .has_value();
  if (micros == 0 || !is_known) {
    return std::nullopt;
  }
  return static_cast<uint64_t>(now) > micros
             ? (static_cast<uint64_t>(now) - micros) / 1000
             : 0;
}

ordered_json AuditMembers(const AuditState& audit) {
  ordered_json json;
  json["oldest_age_millis"] = OrNull(MillisSince(audit.oldest_micros));
  json["slices"] = audit.slices;
  json["entries"] = audit.entries;
  json["differences"] = audit.differences;
  json["difference"] = OrNull(audit.difference);
  json["skipped_cuts"] = audit.unaudited_cuts;
  json["skipped_reason"] = OrNull(audit.unaudited_reason);
  json["families"] = ordered_json::object();
  for (const auto& [family, reason] : audit.families) {
    json["families"][family] = reason;
  }
  json["damage"] = OrNull(audit.damage);
  return json;
}

}  // namespace

std::string FilteredText(const StandbyState& state) {
  if (!state.filtered_families || state.filtered_families->empty()) {
    return "";
  }
  const std::vector<std::string>& families = *state.filtered_families;
  constexpr size_t kShown = 3;
  std::string text = "as if the compaction filters of ";
  for (size_t i = 0; i < std::min(families.size(), kShown); ++i) {
    text += (i > 0 ? ", " : "") + Printable(families[i]);
  }
  if (families.size() > kShown) {
    text += " and " + std::to_string(families.size() - kShown) + " more";
  }
  return text + " had not run since the last cut";
}

std::string StandbyLine(const StandbyState& state) {
  std::string line = "at sequence " + std::to_string(state.sequence) + " of " +
                     Printable(state.source);
  const std::optional<uint64_t> age = MillisSince(state.moment_micros);
  if (age) {
    line += ", as of " + std::to_string(*age) + " ms ago";
  }
  if (state.is_archive) {
    const std::optional<uint64_t> put = MillisSince(state.put_micros);
    line += ", in the archive as of " +
            (put ? std::to_string(*put / 1000) + " s ago" : "no time yet");
  }
  line += "; " + FormatBytes(state.replay_bytes) + " to replay, last cut ";
  const std::optional<uint64_t> cut = MillisSince(state.cut_micros);
  line += (cut ? std::to_string(*cut / 1000) + " s ago"
               : std::string("at an unknown time")) +
          " (" + state.cut_reason + ")";
  const std::optional<uint64_t> view = MillisSince(state.view_moment_micros);
  if (view) {
    line += "; newest view as of " + std::to_string(*view / 1000) + " s ago";
  }
  if (!state.view_problem.empty()) {
    line += ", no newer one: " + Printable(state.view_problem);
  }
  if (!state.lost_dir.empty()) {
    line += "; its source restarted without its last " +
            std::to_string(state.lost_sequences) + " sequence numbers; " +
            Printable(state.lost_dir) + " keeps them";
  }
  const std::string filtered = FilteredText(state);
  if (!filtered.empty()) {
    line += "; " + filtered;
  }
  return line;
}

std::vector<std::string> StandbyColumns(const StandbyState& state) {
  const std::optional<uint64_t> age = MillisSince(state.moment_micros);
  std::vector<std::string> columns = {
      "following",
      state.moment_micros == 0 ? "no moment yet" : "lag unknown"};
  if (age) {
    columns = {"as of " + Rfc3339(state.moment_micros / 1'000'000),
               "lag " + FormatMillis(static_cast<int64_t>(*age))};
  }
  columns.push_back(FormatBytes(state.replay_bytes) + " to replay");
  if (state.is_archive) {
    columns.push_back(FormatBytes(state.unput_bytes) +
                      " not in the archive yet");
  }
  return columns;
}

std::string AuditText(const StandbyState& state) {
  const AuditState& audit = state.audit;
  std::string text = "audit: ";
  const std::optional<uint64_t> oldest = MillisSince(audit.oldest_micros);
  if (!audit.damage.empty()) {
    text += "state unreadable: " + Printable(audit.damage);
  } else if (!oldest) {
    text += "not all entries were compared yet (" +
            std::to_string(audit.entries) + " were)";
  } else {
    text += "all entries were compared within the last " +
            FormatMillis(static_cast<int64_t>(*oldest));
  }
  text += "; differences found: " + std::to_string(audit.differences);
  if (!audit.difference.empty()) {
    text += ", the last one: " + Printable(audit.difference);
  }
  if (audit.unaudited_cuts > 0) {
    text += "; cuts that could not be audited: " +
            std::to_string(audit.unaudited_cuts) + ", the last one: " +
            Printable(audit.unaudited_reason);
  }
  for (const auto& [family, reason] : audit.families) {
    text += "\nnot audited: column family '" + Printable(family) + "': " +
            Printable(reason);
  }
  return text;
}

ordered_json StandbyMembers(const StandbyState& state) {
  ordered_json json;
  json["source"] = state.source;
  json["source_database_id"] = state.source_database_id;
  json["followed"] = state.is_followed;
  json["promoted"] = state.is_promoted;
  json["sequence"] = state.sequence;
  json["durable_sequence"] = state.durable_sequence;
  json["age_millis"] = OrNull(MillisSince(state.moment_micros));
  json["source_closed"] = state.source_closed;
  json["source_open"] = OrNull(state.source_process != SourceProcess::kUnknown,
                               state.source_process == SourceProcess::kOpen);
  json["heard_age_millis"] = OrNull(MillisSince(state.heard_micros));
  json["fault"] = OrNull(state.fault);
  json["behind_bytes"] = state.behind_bytes;
  json["replay_bytes"] = state.replay_bytes;
  json["cut_age_millis"] = OrNull(MillisSince(state.cut_micros));
  json["cut_reason"] = state.cut_reason;
  json["cuts"] = state.cuts;
  json["filtered_families"] = OrNull(state.filtered_families);
  json["unknown_options"] = OrNull(state.unknown_options);
  json["received_bytes"] = state.received_bytes;
  json["log"] = nullptr;
  if (state.is_archive) {
    json["log"] = {{"put_age_millis", OrNull(MillisSince(state.put_micros))},
                   {"segments", state.segments},
                   {"segment_bytes", state.segment_bytes},
                   {"gaps", state.gaps},
                   {"unput_bytes", state.unput_bytes},
                   {"unput_age_millis",
                    OrNull(MillisSince(state.unput_micros))}};
  }
  json["view_age_millis"] = OrNull(MillisSince(state.view_moment_micros));
  json["views_made"] = state.views_made;
  json["view_problem"] = OrNull(state.view_problem);
  json["audit"] = nullptr;
  if (!state.is_archive) json["audit"] = AuditMembers(state.audit);
  json["lost_sequences"] = state.lost_sequences;
  json["lost_dir"] = OrNull(state.lost_dir);
  json["unproven_dirs"] = state.unproven_dirs;
  return json;
}

std::string StandbyJson(const std::string& command,
                        const rocksdb::Status& status,
                        const StandbyState& state) {
  ordered_json json = ResultJson(command, status, state.dir);
  json["place"] = state.dir;
  json["standby"] = nullptr;
  if (!state.source.empty()) {
    json["standby"] = StandbyMembers(state);
  }
  json["seconds"] = state.seconds;
  return DumpJson(json);
}

}  // namespace sstferry
