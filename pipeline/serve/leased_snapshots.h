// Finds retained snapshots that no transfer of this process uses, by the leases
// in their private directories beside the databases of a server.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "format/messages.h"
#include "pipeline/serve/served_databases.h"
#include "pipeline/snapshot/private_dir.h"
#include "sstferry/source.h"

namespace sstferry {

// Clears all but the first bytes of an id: enough to distinguish transfers, not
// enough to join one.
void CutId(TransferId* id);

// Finds, lists and removes snapshots by their leases on disk.
//
// Ownership: borrows the options and the databases.
// Threads:   any.
class LeasedSnapshots {
 public:
  LeasedSnapshots(const ServeOptions* options, ServedDatabases* databases)
      : options_(options), databases_(databases) {}

  // Returns the directories that contain the private directories.
  std::set<std::string> parents() const {
    return databases_->Now(kMaxAge)->snapshot_parents;
  }
  // Returns the rules for leases on disk. For leases of databases that this
  // server serves, this server's time to live is the maximum.
  LeaseRules rules() const;
  // Returns true if the lease is of a database that this server serves.
  bool IsOurs(const Lease& lease) const;
  // Finds the valid lease of a transfer. Returns false if there is none.
  bool Find(const std::string& database, const TransferId& id,
            std::string* path, Lease* lease) const;
  // Appends the leases of databases with these names, except those of the
  // `listed` transfers.
  void List(const std::set<std::string>& names,
            const std::set<TransferId>& listed, const PeerIdentity* peer,
            std::vector<RetainedSnapshot>* all) const;
  // Removes the snapshot of a transfer that its target has dropped. Returns
  // false if there is none. *note is the end of a sentence for the target's
  // operator; *removed is the directory, empty if nothing was removed.
  bool Drop(const std::string& database, const TransferId& id,
            const PeerIdentity* peer, std::string* note,
            std::string* removed) const;
  // Removes the oldest snapshots that no process has open, until at most `most`
  // are left. Returns the removed directories.
  std::vector<std::string> RemoveAbove(size_t most) const;

 private:
  // Maximum age of the list of databases. Leases are read every second; a
  // search for the databases every second would cost too much.
  static constexpr std::chrono::seconds kMaxAge{10};
  const ServeOptions* const options_;
  ServedDatabases* const databases_;
};

}  // namespace sstferry
