// Names of databases that become paths: at a source, of databases in a
// directory; at a target, of their replicas. Normative text: FORMAT.md, "Names
// that become paths".
#pragma once

#include <string>
#include <vector>

#include "rocksdb/status.h"

namespace sstferry {

// Returns the components of a valid name.
std::vector<std::string> ComponentsOf(const std::string& name);

// Returns true for names that sstferry itself creates beside databases:
// workspaces, private snapshots, old directories, records. No database in a
// served directory may have such a name.
bool IsReservedComponent(const std::string& component);

// Returns a time, in seconds since 1970, as "20261125T020003Z".
std::string DateInName(uint64_t seconds);

// Returns ".old-20261125T020003Z", the suffix of a directory that was moved out
// of the way at this time, in seconds since 1970.
std::string OldDirectorySuffix(uint64_t seconds);

// Infix between the name of a directory whose database became a standby, and
// the time.
inline constexpr char kAdoptedInfix[] = ".sstferry-old-";

// Checks a name that a source sends and that becomes a path in a directory of
// replicas.
//   kRefused  it is not valid, or has a reserved component
[[nodiscard]] rocksdb::Status CheckReplicaName(const std::string& name);

}  // namespace sstferry
