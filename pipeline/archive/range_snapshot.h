// Takes a snapshot of some keys of a set, from which entries can be read. Used
// to restore a key interval, or to restore as chunks.
//
// A private directory receives the set's WALs and its MANIFEST, with appended
// edits that delete all tables without a key of the interval. For each other
// table it receives a file with the footer, properties, index and range
// deletions; the rest of the file is a hole. A SnapshotCopy is made of this
// database as of any other, so the same code recovers, plans, merges and
// verifies every source.
//
// Before a part is read, and not earlier, Fetch() gets the blocks and blobs of
// its keys. So a plan, and a restore that its target refuses, fetch no blocks;
// a restore that resumes fetches only those of the missing parts; lanes build
// some parts while others are fetched; and a rate limit slows down the reads of
// the archive, too.
#pragma once

#include <memory>

#include "pipeline/archive/set_reader.h"
#include "pipeline/snapshot/snapshot.h"
#include "rocksdb/status.h"

namespace sstferry {

// Takes the snapshot of the entries in options.interval. Also returns the
// errors of SetReader and of Snapshot::Create().
//   kRefused    a column family does not exist, or cannot be read in part: the
//               message says why
//   kNoSpace    there is no room for the blocks of the interval
// REQUIRES: options.interval is set.
[[nodiscard]] rocksdb::Status TakeRange(std::shared_ptr<SetReader> reader,
                                        const SnapshotOptions& options,
                                        std::unique_ptr<Snapshot>* result);

}  // namespace sstferry
