// Takes a snapshot of a part of a set, whose entries can be read. Used to
// restore some keys, or as chunks.
//
// A private directory receives the set's WALs and its MANIFEST, with appended
// edits that delete all tables without a key of the interval. Of the other
// tables it receives footer, properties, index and range deletions, in files
// that are otherwise holes. The result is a database, of which
// Snapshot::Create() takes a snapshot as of any other: the same code recovers,
// plans, merges and verifies every source. Before a part is read, Fetch() gets
// the blocks and blobs of its keys.
#pragma once

#include <memory>

#include "pipeline/archive/set_reader.h"
#include "pipeline/snapshot/snapshot.h"
#include "rocksdb/status.h"

namespace sstferry {

// Takes the snapshot of the entries in options.interval. Also returns the
// errors of SetReader and of Snapshot::Create().
//   kRefused    a column family does not exist, or no part of it can be read:
//               the message says why
//   kNoSpace    there is no room for the blocks of the interval
// REQUIRES: options.interval is set.
[[nodiscard]] rocksdb::Status TakeRange(std::shared_ptr<SetReader> reader,
                                        const SnapshotOptions& options,
                                        std::unique_ptr<Snapshot>* result);

}  // namespace sstferry
