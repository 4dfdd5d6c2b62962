// Takes a snapshot of the keys of one interval of a set. A restore of a key
// interval, or a restore as chunks, reads its entries from this snapshot.
//
// The snapshot is a copy of a partial local database in a private directory.
// This database has the set's WALs, and its MANIFEST with appended edits that
// delete all tables without a key of the interval. For each other table it has
// a sparse file with only the footer, properties, index and range deletions.
// Because the snapshot is a SnapshotCopy, the same code recovers, plans, merges
// and verifies it as any other source.
//
// Fetch() gets the blocks and blobs for the keys of a part, just before the
// part is read. So a plan, and a restore that its target refuses, fetch no
// blocks. A restore that resumes fetches only the blocks of the missing parts.
// Lanes build some parts while others are fetched. A rate limit also slows down
// the reads of the archive.
#pragma once

#include <memory>

#include "pipeline/archive/set_reader.h"
#include "pipeline/snapshot/snapshot.h"
#include "rocksdb/status.h"

namespace sstferry {

// Takes the snapshot of the entries in options.interval. Also returns the
// errors of SetReader and Snapshot::Create().
//   kRefused    a column family does not exist, or cannot be read in part. The
//               message says why
//   kNoSpace    there is no space for the blocks of the interval
// REQUIRES: options.interval has a value.
[[nodiscard]] rocksdb::Status TakeRange(std::shared_ptr<SetReader> reader,
                                        const SnapshotOptions& options,
                                        std::unique_ptr<Snapshot>* result);

}  // namespace sstferry
