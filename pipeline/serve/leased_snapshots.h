// The retained snapshots beside the databases of a server that no transfer of
// this process holds, as the leases in their private directories describe them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "format/messages.h"
#include "pipeline/serve/served_databases.h"
#include "pipeline/snapshot/private_dir.h"
#include "sstferry/source.h"

namespace sstferry {

// Leaves enough of an id to distinguish transfers, not enough to join one.
void CutId(TransferId* id);

// Ownership: borrows the options and the databases.
// Threads:   any.
class LeasedSnapshots {
 public:
  LeasedSnapshots(const ServeOptions* options, ServedDatabases* databases)
      : options_(options), databases_(databases) {}

  // The directories that hold the private ones.
  std::set<std::string> parents() const {
    return databases_->Now(kMaxAge)->snapshot_parents;
  }
  // Rules for leases on disk: this server's time to live bounds those of its
  // databases.
  LeaseRules rules() const;
  // True if the lease is of a database that this server serves.
  bool IsOurs(const Lease& lease) const;
  // Returns false if there is no valid lease of that transfer.
  bool Find(const std::string& database, const TransferId& id,
            std::string* path, Lease* lease) const;
  // Appends those of databases with these names, less the `listed` transfers.
  void List(const std::set<std::string>& names,
            const std::set<TransferId>& listed, const PeerIdentity* peer,
            std::vector<RetainedSnapshot>* all) const;
  // Removes the snapshot of a transfer that its target has dropped. Returns
  // false if there is none. *note ends a sentence for the target's operator;
  // *removed is the directory, empty if nothing was removed.
  bool Drop(const std::string& database, const TransferId& id,
            const PeerIdentity* peer, std::string* note,
            std::string* removed) const;
  // Removes the oldest of those that no process has open, until there are no
  // more than `most`. Returns their directories.
  std::vector<std::string> RemoveAbove(size_t most) const;

 private:
  // Leases are looked at every second, whether or not anybody asks.
  static constexpr std::chrono::seconds kMaxAge{10};
  const ServeOptions* const options_;
  ServedDatabases* const databases_;
};

}  // namespace sstferry
