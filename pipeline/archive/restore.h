// Makes an archive the source of a clone: a set serves as the snapshot, and its
// units are read by ranged gets. The target works as for any clone (pull/).
#pragma once

#include <memory>
#include <string>

#include "pipeline/archive/seal.h"
#include "pipeline/archive/store.h"
#include "pipeline/snapshot/snapshot_origin.h"
#include "rocksdb/status.h"
#include "sstferry/store_options.h"

namespace sstferry {

// Makes an origin whose snapshots are the set `which` (SourceAddress::set).
// Sends no request to the store yet.
//
// Only the committed record is trusted. Before data is read, every object that
// the record names is looked up. A unit with wrong bytes is read again, up to
// kTriesOfBytes times in all. If they stay wrong, or an object is missing, the
// restore ends with a message that names the sets that use the file and the
// newest whole set. With a key, only sets that are sealed with it are restored;
// without a key, only unsealed sets. For chunks, the entries of an interval are
// read as range_snapshot.h says.
//   kRefused  an option cannot be used; no such directory, no key
[[nodiscard]] rocksdb::Status MakeArchiveOrigin(
    const StoreOptions& store, const std::string& which,
    std::shared_ptr<SnapshotOrigin>* origin);
// Makes the same origin from an open store, for tests; `key` may be null.
std::shared_ptr<SnapshotOrigin> MakeArchiveOriginOf(
    std::unique_ptr<ObjectStore> store, const std::string& which,
    std::shared_ptr<const SealKey> key = nullptr);

}  // namespace sstferry
