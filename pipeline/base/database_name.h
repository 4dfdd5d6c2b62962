// Names of databases that become paths: at a source, of databases below a
// directory; at a target, of their replicas. FORMAT.md, "Names that become
// paths", is the normative text.
#pragma once

#include <string>
#include <vector>

#include "rocksdb/status.h"

namespace sstferry {

// Returns the components of a valid name.
std::vector<std::string> ComponentsOf(const std::string& name);

// Returns true for names that sstferry gives to what it makes beside databases:
// workspaces, private snapshots, old directories, records. No database below a
// directory is called so.
bool IsReservedComponent(const std::string& component);

// Returns "20261125T020003Z" for that time, in seconds since 1970.
std::string DateInName(uint64_t seconds);

// Returns ".old-20261125T020003Z": what follows the name of a directory that
// was moved out of the way at that time, in seconds since 1970.
std::string OldDirectorySuffix(uint64_t seconds);

// Follows the name of a directory whose database became a standby, before the
// time.
inline constexpr char kAdoptedInfix[] = ".sstferry-old-";

// Checks a name that a source sends and that is to become a path below a
// directory of replicas.
//   kRefused  it is not valid, or has a reserved component
[[nodiscard]] rocksdb::Status CheckReplicaName(const std::string& name);

}  // namespace sstferry
