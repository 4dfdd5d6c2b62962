// Makes an archive the source of a clone. A set of the archive is the snapshot,
// and each unit is read by a ranged get. The target works as for any clone
// (pull/).
#pragma once

#include <memory>
#include <string>

#include "pipeline/archive/seal.h"
#include "pipeline/archive/store.h"
#include "pipeline/snapshot/snapshot_origin.h"
#include "rocksdb/status.h"
#include "sstferry/store_options.h"

namespace sstferry {

// Makes an origin whose snapshots are the set that `which` names
// (SourceAddress::set). Sends no request to the store yet.
//
// A restore trusts only the committed record. Before it reads data, it looks up
// every object that the record names. If a unit has wrong bytes, it reads the
// unit again, up to kTriesOfBytes times in all. If the bytes stay wrong, or an
// object is missing, the restore fails with a message. The message names the
// sets that use the file, and the newest whole set. With a key, only sets that
// are sealed with this key are restored; without a key, only unsealed sets. To
// restore as chunks, the entries of an interval are read (range_snapshot.h).
//   kRefused  an option cannot be used; or there is no such directory or key
[[nodiscard]] rocksdb::Status MakeArchiveOrigin(
    const StoreOptions& store, const std::string& which,
    std::shared_ptr<SnapshotOrigin>* origin);
// Makes the same origin with an open store, for tests. `key` may be null.
std::shared_ptr<SnapshotOrigin> MakeArchiveOriginOf(
    std::unique_ptr<ObjectStore> store, const std::string& which,
    std::shared_ptr<const SealKey> key = nullptr);

}  // namespace sstferry
