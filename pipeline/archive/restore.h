// An archive as the source of a clone: a set is a snapshot, whose units are
// read by ranged gets. The target's half is that of any clone (pull/).
#pragma once

#include <memory>
#include <string>

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
// were pushed is got again, at most kTriesOfUnit times in all; then, as after
// one that is not there, the restore ends with the sets that use the file and
// the newest one that is whole.
//   kRefused  an option that cannot be used; no such directory
[[nodiscard]] rocksdb::Status MakeArchiveOrigin(
    const StoreOptions& store, const std::string& which,
    std::shared_ptr<SnapshotOrigin>* origin);
// The same of a store, for tests.
std::shared_ptr<SnapshotOrigin> MakeArchiveOriginOf(
    std::unique_ptr<ObjectStore> store, const std::string& which);

inline constexpr int kTriesOfUnit = 3;

}  // namespace sstferry
