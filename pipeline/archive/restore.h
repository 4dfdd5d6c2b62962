// An archive as the source of a clone: a set is a snapshot, whose units are
// read by ranged gets. The target's half is that of any clone (pull/).
#pragma once

#include <memory>
#include <string>

#include "pipeline/archive/seal.h"
#include "pipeline/archive/store.h"
#include "pipeline/snapshot/snapshot_origin.h"
#include "rocksdb/status.h"
#include "sstferry/store_options.h"

namespace sstferry {

// Makes snapshots of the set `which` (SourceAddress::set). Nothing is asked of
// the store yet.
//
// Nothing is believed but the record that was committed. Before a byte moves,
// everything that it names is looked for. A unit whose bytes are not those that
// were pushed is got again, kTriesOfUnit times in all; then, as after
// one that is not there, the restore ends with the sets that use the file and
// the newest one that is whole. With a key only sets that are sealed with it
// are restored, and without one only others. As chunks, the entries of an
// interval are read as range_snapshot.h says.
//   kRefused  an option that cannot be used; no such directory, no key
[[nodiscard]] rocksdb::Status MakeArchiveOrigin(
    const StoreOptions& store, const std::string& which,
    std::shared_ptr<SnapshotOrigin>* origin);
// The same of a store, for tests; `key` may be null.
std::shared_ptr<SnapshotOrigin> MakeArchiveOriginOf(
    std::unique_ptr<ObjectStore> store, const std::string& which,
    std::shared_ptr<const SealKey> key = nullptr);

}  // namespace sstferry
