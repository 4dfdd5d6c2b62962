// A part of a set as a snapshot whose entries are read: what a restore of some
// keys, or as chunks, is made of.
//
// A private directory gets the set's WALs and its MANIFEST, behind which stand
// edits that take away all tables without a key of the interval. Of the others
// it gets footer, properties, index and range deletions, in files that are else
// a hole. That is a database, of which Snapshot::Create() takes a snapshot as
// of any: it is recovered, planned, merged and verified by what does that for
// every source. Before a part is read, Fetch() gets the blocks, and the blobs,
// of its keys.
#pragma once

#include <memory>

#include "pipeline/archive/set_reader.h"
#include "pipeline/snapshot/snapshot.h"
#include "rocksdb/status.h"

namespace sstferry {

// Takes the snapshot of the entries in options.interval.
//   kRefused    a column family that is not there, or of which no part can be
//               read: the message says why
//   kNoSpace    there is no room for the blocks of the interval
// also the errors of SetReader and of Snapshot::Create().
// REQUIRES: options.interval is set.
[[nodiscard]] rocksdb::Status TakeRange(std::shared_ptr<SetReader> reader,
                                        const SnapshotOptions& options,
                                        std::unique_ptr<Snapshot>* result);

}  // namespace sstferry
