// A directory of replicas, each below it at the path that its name is. Names
// come from a source: each is checked, and every directory on its way is opened
// below the one before, and through no link.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/status.h"
#include "sstferry/descriptor.h"
#include "sstferry/options.h"

namespace sstferry {

// The file of a mirror's directory that holds its record.
inline constexpr char kFleetRecordName[] = "sstferry.fleet";

// Returns the names of the replicas below a mirror's directory, complete and
// unfinished ones, sorted: at most kMaxServedDatabases, as deep as a
// server looks, and none through a link. Changes nothing and takes no lock.
std::vector<std::string> ListReplicas(const std::string& directory);

// The findings of earlier runs, in the file sstferry.fleet of the directory.
struct FleetRecord {
  std::string source;
  uint64_t file_system = 0;  // of the source's directory; 0: not known
  // Names of databases whose replicas are (to be) here -> number of the last
  // runs in which the source did not list them.
  std::map<std::string, uint32_t> missed;
};

// The directory, which one process uses at a time.
//
// Threads: Prepare() from any, the rest from one.
class ReplicaTree {
 public:
  // Opens the directory, or makes it.
  //   kRefused  it is no directory, its parent is missing, or it is itself a
  //             database
  //   kBusy     another process mirrors into it
  [[nodiscard]] static rocksdb::Status Open(const std::string& directory,
                                            std::unique_ptr<ReplicaTree>* out);

  std::string PathOf(const std::string& name) const {
    return directory_ + "/" + name;
  }
  // Makes the directories on the way to a replica. *exists: the replica's own
  // directory is there, with a database in it.
  //   kRefused  the name may not become a path, or a link, a file or another
  //             replica is on its way
  [[nodiscard]] rocksdb::Status Prepare(const std::string& name, bool* exists);

  // True if there is a replica of that name, or an unfinished pull of one.
  bool Has(const std::string& name) const;

  // Reads the record; *found is false if there is none.
  //   kCorrupt  it is damaged, or another account could have written it
  [[nodiscard]] rocksdb::Status ReadRecord(bool* found, FleetRecord* record);
  [[nodiscard]] rocksdb::Status WriteRecord(const FleetRecord& record);

  // Gives a replica's directory the name with `suffix` behind it, and discards
  // an unfinished pull beside it. *moved is false if there is none.
  //   kBusy     a process has it open, or pulls into it
  //   kRefused  a link or a file is on its way or in its place
  [[nodiscard]] rocksdb::Status MoveAway(const std::string& name,
                                         const std::string& suffix,
                                         const LogFunction& log, bool* moved);

 private:
  ReplicaTree(std::string directory, Descriptor top)
      : directory_(std::move(directory)), top_(std::move(top)) {}

  // Opens the directory in which the replica's own one is. `make`: makes what
  // is missing; else *parent is not open then.
  [[nodiscard]] rocksdb::Status OpenParent(const std::string& name, bool make,
                                           Descriptor* parent) const;

  const std::string directory_;
  const Descriptor top_;  // with a flock
};

}  // namespace sstferry
