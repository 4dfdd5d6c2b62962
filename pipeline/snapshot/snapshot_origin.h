// A source that is not a directory on this machine: the sets of an archive.
// archive/ implements this interface. The code that reads snapshots knows
// nothing else about archives.
#pragma once

#include <functional>
#include <memory>

#include "format/digest.h"
#include "format/part.h"
#include "pipeline/snapshot/snapshot.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Reads the bytes of a snapshot's files, split into units of
// FileSet::unit_bytes.
//
// Ownership: belongs to the snapshot. Threads: may be called from any thread.
class UnitSource {
 public:
  virtual ~UnitSource() = default;

  // Passes all bytes of a unit to `take`, in order, and compares them with the
  // recorded facts about the unit. `cancelled` is polled.
  //   kDeadPeer      the bytes could not be fetched, or were wrong: the caller
  //                  must discard what `take` received and call again
  //   kCorrupt       the bytes are lost: the message says what remains
  //   kSnapshotGone  the snapshot was removed
  //   others         errors of `take`
  [[nodiscard]] virtual rocksdb::Status Read(
      const Part& unit, const std::function<bool()>& cancelled,
      const std::function<rocksdb::Status(const rocksdb::Slice&)>& take) = 0;
  // Sets the digest of a unit; reads the unit only if its digest is not
  // recorded. Returns the errors of Read().
  [[nodiscard]] virtual rocksdb::Status DigestOf(
      const Part& unit, const std::function<bool()>& cancelled,
      Digest128* digest) = 0;
};

// Takes snapshots of a source that is not a directory.
//
// Ownership: shared by a server and its creator. Threads: may be called from
// any thread.
class SnapshotOrigin {
 public:
  virtual ~SnapshotOrigin() = default;

  // Takes the snapshot. All snapshots of one kind are equal, even those that
  // other processes take, until a newer set exists. With as_files, the result
  // has units(), and only the options `families`, `cancelled` and `read_bytes`
  // are used; otherwise also `interval`, `snapshot_dir` (empty: the directory
  // for temporary files), `registry` and `log`.
  //   kRefused  there is no such snapshot; marked as a refusal of chunks,
  //             unless as_files
  [[nodiscard]] virtual rocksdb::Status Take(
      const SnapshotOptions& options, std::unique_ptr<Snapshot>* result) = 0;
  // Ends all current and later calls of this object and its snapshots.
  virtual void Cancel() = 0;
};

}  // namespace sstferry
