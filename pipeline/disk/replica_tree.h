// A directory of replicas. The replica of database NAME is in DIRECTORY/NAME.
// The source chooses the names, so this class checks each name. It opens every
// directory on a path relative to the parent directory, and never through a
// link.
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

// Name of the file in a mirror's directory that records earlier runs.
inline constexpr char kFleetRecordName[] = "sstferry.fleet";

// Finds the directories below `directory` that contain one of the files in
// `files`, or that have a workspace next to them. *names receives their paths
// relative to `directory`. Searches as deep as a server does, and follows no
// link. Changes nothing and locks nothing. After a failure, *names contains the
// directories that were found anyway.
//   kDenied    this account may not search a directory
//   kInternal  a directory cannot be read
[[nodiscard]] rocksdb::Status FindHolders(const std::string& directory,
                                          const std::vector<std::string>& files,
                                          std::set<std::string>* names);
// Finds the replicas of a mirror, complete or unfinished, as FindHolders()
// does.
[[nodiscard]] rocksdb::Status FindReplicas(const std::string& directory,
                                           std::set<std::string>* names);

// The record of earlier runs of a mirror (the file sstferry.fleet).
struct FleetRecord {
  std::string source;
  // File system of the source's directory; 0: unknown.
  uint64_t file_system = 0;
  // Maps a database's name to the number of latest consecutive runs in which
  // the source did not list the database. Has an entry for each database that
  // has, or should have, a replica.
  std::map<std::string, uint32_t> missed;
};

// The directory of a mirror. Only one process may use it at a time.
//
// Threads: any thread may call Prepare(); only one thread calls the others.
class ReplicaTree {
 public:
  // Opens the directory, or creates it.
  //   kRefused  it is not a directory, or is itself a database, or its parent
  //             is missing
  //   kBusy     another process mirrors into it
  [[nodiscard]] static rocksdb::Status Open(const std::string& directory,
                                            std::unique_ptr<ReplicaTree>* out);
  // Opens the directory only to read it. Creates and locks nothing. Sets *out
  // to null if there is no such directory.
  [[nodiscard]] static rocksdb::Status Look(const std::string& directory,
                                            std::unique_ptr<ReplicaTree>* out);

  // Removes the directory if Open() created it and it is empty.
  void RemoveUnused() const;

  std::string PathOf(const std::string& name) const {
    return directory_ + "/" + name;
  }
  // Creates the directories on the path to a replica. Sets *exists to true if
  // the replica's own directory exists and contains a database.
  //   kRefused  the name is not allowed as a path, or the path contains a link,
  //             a file or another replica
  [[nodiscard]] rocksdb::Status Prepare(const std::string& name, bool* exists);

  // Sets *has to true if there is a replica, or an unfinished pull, with this
  // name. Also sets *has to true if a directory on its path is a link, because
  // the link may lead to a replica.
  //   kRefused  it is unknown, because a directory on the path cannot be
  //             searched
  [[nodiscard]] rocksdb::Status Has(const std::string& name, bool* has) const;

  // Reads the record. Sets *found to false if there is no record.
  //   kCorrupt  the record is damaged, or belongs neither to this account nor
  //             to root; after Look(), the record may also belong to the
  //             directory's owner
  //   kDenied   this account may not read it
  [[nodiscard]] rocksdb::Status ReadRecord(bool* found, FleetRecord* record);
  [[nodiscard]] rocksdb::Status WriteRecord(const FleetRecord& record);

  // Appends `suffix` to the name of a replica's directory. Discards an
  // unfinished pull into this replica. Sets *moved to false if there is no such
  // directory.
  //   kBusy     a process has the replica open, or pulls into it
  //   kRefused  the replica, or a directory on its path, is a link or a file
  [[nodiscard]] rocksdb::Status MoveAway(const std::string& name,
                                         const std::string& suffix,
                                         const LogFunction& log, bool* moved);

 private:
  ReplicaTree(std::string directory, bool is_made, bool is_locked,
              Descriptor top);

  // Opens the parent directory of the replica. If `make` is true, creates
  // missing directories. If `make` is false and a directory is missing, returns
  // OK and leaves *parent closed.
  [[nodiscard]] rocksdb::Status OpenParent(const std::string& name, bool make,
                                           Descriptor* parent) const;

  const std::string directory_;
  const bool is_made_;    // true: Open() created the directory
  const bool is_locked_;  // true: Open() locked top_ with flock()
  const Descriptor top_;
};

}  // namespace sstferry
