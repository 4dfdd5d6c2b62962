// Formats the state of a standby for status, follow, promote and view.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "rocksdb/status.h"
#include "sstferry/follow.h"

namespace sstferry {

// Returns a line with the state of a standby: "at sequence 41951 of
// sst://db1/orders, as of 12 ms ago; ..."
std::string StandbyLine(const StandbyState& state);
// Returns the columns of a follower's progress line, for example "as of
// 2026-11-25T02:00:03Z", "lag 45 ms" and "1.2 MB to replay". The most important
// columns come first.
std::vector<std::string> StandbyColumns(const StandbyState& state);

// Returns a clause about the column families that have a compaction filter: "as
// if the compaction filters of users, orders had not run since the last cut".
// Returns "" if no column family has a filter.
std::string FilteredText(const StandbyState& state);

// Returns a line with the state of the audit: "audit: all entries were compared
// within the last 2 d; ...". Adds a line for each column family that is not
// audited.
std::string AuditText(const StandbyState& state);

// Returns a JSON object with the state of a standby. The JSON of status,
// follow, promote and view contains it.
nlohmann::ordered_json StandbyMembers(const StandbyState& state);

// Returns the JSON object of follow, promote or view.
std::string StandbyJson(const std::string& command,
                        const rocksdb::Status& status,
                        const StandbyState& state);

}  // namespace sstferry
