// Refers to the objects of a server that its sessions share.
#pragma once

#include <functional>
#include <string>

#include "pipeline/serve/follow_at_source.h"
#include "pipeline/serve/served_databases.h"
#include "pipeline/serve/server_shares.h"
#include "pipeline/serve/snapshot_store.h"
#include "pipeline/serve/transfer.h"
#include "sstferry/source.h"

namespace sstferry {

// Borrowed objects of the server.
struct SessionHost {
  const ServeOptions* options = nullptr;
  ServedDatabases* databases = nullptr;
  ServerShares* shares = nullptr;
  // Finds a database. Returns kRefused if no database of that name is served,
  // kDenied if `peer` (may be null) may not read this database.
  std::function<rocksdb::Status(const std::string& name,
                                const PeerIdentity* peer,
                                ServedDatabase* database)>
      find_database;
  SnapshotStore* store = nullptr;
  FollowAtSource* follow = nullptr;  // null: following is not possible
  // Logs a warning that a peer can cause; the rate is limited.
  std::function<void(const std::string& line)> log_peer;
  // Called with each new transfer before it is pinned. May be null.
  std::function<void(Transfer*)> on_transfer;
};

}  // namespace sstferry
