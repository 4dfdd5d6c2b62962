// Database names that become paths: names of databases in a source directory,
// and of their replicas at a target. Normative text: FORMAT.md, "Names that
// become paths".
#pragma once

#include <string>
#include <vector>

#include "rocksdb/status.h"

namespace sstferry {

// Splits a database name at its slashes and returns the components. REQUIRES:
// the name is valid.
std::vector<std::string> ComponentsOf(const std::string& name);

// Returns true if only sstferry may use the component as a file name. sstferry
// uses such names for its own files and directories next to databases. A
// database in a served directory cannot have such a name.
bool IsReservedComponent(const std::string& component);

// Formats a time, in seconds since 1970, as "20261125T020003Z".
std::string DateInName(uint64_t seconds);

// Returns ".old-20261125T020003Z", a suffix for the name of a replaced
// directory. `seconds` is the time of the replacement, in seconds since 1970.
std::string OldDirectorySuffix(uint64_t seconds);

// A directory "users" gets the name "users.sstferry-old-20261125T020003Z" when
// a standby replaces the database in it.
inline constexpr char kAdoptedInfix[] = ".sstferry-old-";
// A directory "users.sstferry-lost-20261125T020003Z" keeps data of the standby
// "users" that its source has lost.
inline constexpr char kLostInfix[] = ".sstferry-lost-";

// Checks a database name that a source sent. The target uses the name as a path
// in a directory of replicas.
//   kRefused  the name is not valid, or a component of the name is reserved
[[nodiscard]] rocksdb::Status CheckReplicaName(const std::string& name);

}  // namespace sstferry
