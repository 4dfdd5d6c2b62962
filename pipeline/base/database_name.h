// Database names that become paths: names of databases in a source directory,
// and of their replicas at a target. Normative text: FORMAT.md, "Names that
// become paths".
#pragma once

#include <string>
#include <vector>

#include "rocksdb/status.h"

namespace sstferry {

// Returns the components of a valid name.
std::vector<std::string> ComponentsOf(const std::string& name);

// Returns true for names that sstferry itself creates next to databases:
// workspaces, private snapshots, old directories, records. Databases in a
// served directory cannot have such names.
bool IsReservedComponent(const std::string& component);

// Formats a time, in seconds since 1970, as "20261125T020003Z".
std::string DateInName(uint64_t seconds);

// Returns ".old-20261125T020003Z", the suffix of a directory that was renamed
// at this time, in seconds since 1970, to make room for another.
std::string OldDirectorySuffix(uint64_t seconds);

// A directory whose database became a standby is renamed; this text separates
// its old name from the time.
inline constexpr char kAdoptedInfix[] = ".sstferry-old-";
// The same, for directories that keep data of a standby that its source lost.
inline constexpr char kLostInfix[] = ".sstferry-lost-";

// Checks a name that a source sent and that becomes a path in a directory of
// replicas.
//   kRefused  it is not valid, or has a reserved component
[[nodiscard]] rocksdb::Status CheckReplicaName(const std::string& name);

}  // namespace sstferry
