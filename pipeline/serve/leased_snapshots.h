// Finds snapshots that no transfer of this process uses. Such a snapshot is in
// a directory of its own next to the database (a private directory). A file in
// it, the lease, names the snapshot's transfer and how long the snapshot is
// retained.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "format/messages.h"
#include "pipeline/serve/served_databases.h"
#include "pipeline/snapshot/private_dir.h"
#include "sstferry/source.h"

namespace sstferry {

// Sets all bytes of an id to 0 except the first ones. These are enough to
// distinguish transfers, but not to resume one.
void CutId(TransferId* id);

// Finds, lists and removes snapshots by the leases in their directories.
//
// Ownership: borrows the options and the databases. Threads:   any.
class LeasedSnapshots {
 public:
  LeasedSnapshots(const ServeOptions* options, ServedDatabases* databases)
      : options_(options), databases_(databases) {}

  // Returns the directories that contain the private directories of all
  // databases.
  std::set<std::string> parents() const {
    return databases_->Now(kMaxAge)->snapshot_parents;
  }
  // Returns the rules for leases on disk. If this server serves the database of
  // a lease, the lease lasts at most as long as this server's --snapshot-ttl.
  LeaseRules rules() const;
  // Returns true if this server serves the database of the lease.
  bool IsOurs(const Lease& lease) const;
  // Finds the lease of the transfer `id`, and sets *path to its directory.
  // Returns false if there is no valid lease.
  bool Find(const std::string& database, const TransferId& id,
            std::string* path, Lease* lease) const;
  // Appends to *all the leased snapshots of databases with these names. Leaves
  // out the transfers in `listed`.
  void List(const std::set<std::string>& names,
            const std::set<TransferId>& listed, const PeerIdentity* peer,
            std::vector<RetainedSnapshot>* all) const;
  // Removes the snapshot of a transfer that its target no longer wants. Returns
  // false if there is none. Sets *note to what happened, as the end of a
  // sentence for the target's operator. Sets *removed to the removed directory,
  // if any.
  bool Drop(const std::string& database, const TransferId& id,
            const PeerIdentity* peer, std::string* note,
            std::string* removed) const;
  // If there are more than `most` leased snapshots that no process has open,
  // removes the oldest of them, until `most` are left. Returns the removed
  // directories.
  std::vector<std::string> RemoveAbove(size_t most) const;

 private:
  // The list of databases may be this old. Leases are read every second, and a
  // search for databases costs too much to run as often.
  static constexpr std::chrono::seconds kMaxAge{10};
  const ServeOptions* const options_;
  ServedDatabases* const databases_;
};

}  // namespace sstferry
