// A directory of replicas: the replica of database NAME is DIRECTORY/NAME. The
// names come from a source, so each name is checked, and every directory on its
// path is opened relative to its parent, never through a link.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "rocksdb/status.h"
#include "sstferry/descriptor.h"
#include "sstferry/options.h"

namespace sstferry {

// Name of the file in a mirror's directory that contains its record.
inline constexpr char kFleetRecordName[] = "sstferry.fleet";

// Finds the directories below `directory` that have one of these files, or a
// workspace beside them. Their names are paths relative to `directory`.
// Searches as deep as a server, and follows no link. Changes nothing and takes
// no lock. After a failure, *names has what was found elsewhere.
//   kDenied    this account may not search a directory
//   kInternal  a directory cannot be read
[[nodiscard]] rocksdb::Status FindHolders(const std::string& directory,
                                          const std::vector<std::string>& files,
                                          std::set<std::string>* names);
// Finds the replicas of a mirror, complete or unfinished, in the same way.
[[nodiscard]] rocksdb::Status FindReplicas(const std::string& directory,
                                           std::set<std::string>* names);

// Record of earlier runs, in the directory's file sstferry.fleet.
struct FleetRecord {
  std::string source;
  uint64_t file_system = 0;  // of the source's directory; 0: unknown
  // By name, for each database that has, or should have, a replica: the number
  // of latest runs, without a gap, in which the source did not list it.
  std::map<std::string, uint32_t> missed;
};

// A mirror's directory. Only one process may use it at a time.
//
// Threads: Prepare() from any, all other members from one.
class ReplicaTree {
 public:
  // Opens the directory, or creates it.
  //   kRefused  it is not a directory, its parent is missing, or it is itself a
  //             database
  //   kBusy     another process mirrors into it
  [[nodiscard]] static rocksdb::Status Open(const std::string& directory,
                                            std::unique_ptr<ReplicaTree>* out);
  // Opens the directory only to read it: creates and locks nothing. *out is
  // null if there is no such directory.
  [[nodiscard]] static rocksdb::Status Look(const std::string& directory,
                                            std::unique_ptr<ReplicaTree>* out);

  // Removes the directory if Open() created it and it is empty.
  void RemoveUnused() const;

  std::string PathOf(const std::string& name) const {
    return directory_ + "/" + name;
  }
  // Creates the directories on the path to a replica. *exists: the replica's
  // own directory exists and contains a database.
  //   kRefused  the name may not become a path, or its path contains a link, a
  //             file or another replica
  [[nodiscard]] rocksdb::Status Prepare(const std::string& name, bool* exists);

  // Finds out if there is a replica, or an unfinished pull, with that name.
  // Also sets *has if its path has a link, which may lead to the replica.
  //   kRefused  it is unknown: a component of the path cannot be searched
  [[nodiscard]] rocksdb::Status Has(const std::string& name, bool* has) const;

  // Reads the record; *found is false if there is no record.
  //   kCorrupt  it is damaged, or belongs to an account other than this one and
  //             root; after Look(), it may also belong to the directory's owner
  //   kDenied   this account may not read it
  [[nodiscard]] rocksdb::Status ReadRecord(bool* found, FleetRecord* record);
  [[nodiscard]] rocksdb::Status WriteRecord(const FleetRecord& record);

  // Appends `suffix` to the name of a replica's directory, and discards an
  // unfinished pull into it. *moved is false if there is no such directory.
  //   kBusy     a process has the replica open, or pulls into it
  //   kRefused  the replica, or a component of its path, is a link or a file
  [[nodiscard]] rocksdb::Status MoveAway(const std::string& name,
                                         const std::string& suffix,
                                         const LogFunction& log, bool* moved);

 private:
  ReplicaTree(std::string directory, bool is_made, bool is_locked,
              Descriptor top);

  // Opens the parent directory of the replica. With `make`, creates missing
  // directories. Without `make`, if a directory is missing, returns OK and
  // *parent is not open.
  [[nodiscard]] rocksdb::Status OpenParent(const std::string& name, bool make,
                                           Descriptor* parent) const;

  const std::string directory_;
  const bool is_made_;    // Open() created it
  const bool is_locked_;  // by Open(): top_ has its flock
  const Descriptor top_;
};

}  // namespace sstferry
