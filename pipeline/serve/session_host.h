// Gives sessions access to the objects of their server.
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

// The objects and functions of a server that a session uses. The server owns
// all objects.
struct SessionHost {
  const ServeOptions* options = nullptr;
  ServedDatabases* databases = nullptr;
  ServerShares* shares = nullptr;
  // Finds a database. Returns kRefused if the server has no database with this
  // name, and kDenied if `peer` may not read it. A null `peer` has no
  // certificate.
  std::function<rocksdb::Status(const std::string& name,
                                const PeerIdentity* peer,
                                ServedDatabase* database)>
      find_database;
  SnapshotStore* store = nullptr;
  FollowAtSource* follow = nullptr;  // null: followers are refused
  // Logs a warning. Limits the number of lines, because a peer can cause them.
  std::function<void(const std::string& line)> log_peer;
  // Called with each new transfer, before it is added to the store and its
  // snapshot is taken. May be null.
  std::function<void(Transfer*)> on_transfer;
};

}  // namespace sstferry
