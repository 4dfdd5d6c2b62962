// Formats the state of a standby, for several commands.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "rocksdb/status.h"
#include "sstferry/follow.h"

namespace sstferry {

// Returns "at sequence 41951 of sst://db1/orders, as of 12 ms ago; ..."
std::string StandbyLine(const StandbyState& state);
// Returns the columns of a follower's progress line, the most important ones
// first: "as of 2026-11-25T02:00:03Z", "lag 45 ms", "1.2 MB to replay".
std::vector<std::string> StandbyColumns(const StandbyState& state);

// Returns "as if the compaction filters of users, orders had not run since the
// last cut"; empty: no family has one.
std::string FilteredText(const StandbyState& state);

// Returns "audit: all entries were compared within the last 2 d; ...", and a
// line for each column family that is not audited.
std::string AuditText(const StandbyState& state);

// Returns the JSON members of a standby in status, follow, promote and view.
nlohmann::ordered_json StandbyMembers(const StandbyState& state);

// Returns the JSON object of follow, promote or view.
std::string StandbyJson(const std::string& command,
                        const rocksdb::Status& status,
                        const StandbyState& state);

}  // namespace sstferry
