// Shows a standby, by whatever command.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "rocksdb/status.h"
#include "sstferry/follow.h"

namespace sstferry {

// "at sequence 41951 of sst://db1/orders, as of 12 ms ago; ..."
std::string StandbyLine(const StandbyState& state);

// Returns "as if the compaction filters of users, orders had not run since the
// last cut"; empty: no family has one.
std::string FilteredText(const StandbyState& state);

// Returns "audit: the entries compared longest ago, 2 d ago; ...", and a line
// for each column family that is not audited.
std::string AuditText(const StandbyState& state);

// The members that status, follow, promote and view have of a standby.
nlohmann::ordered_json StandbyMembers(const StandbyState& state);

// The JSON object of follow, promote or view.
std::string StandbyJson(const std::string& command,
                        const rocksdb::Status& status,
                        const StandbyState& state);

}  // namespace sstferry
