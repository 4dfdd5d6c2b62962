// A source that is in no directory of this machine: the sets of an archive.
// archive/ implements it; the code that reads snapshots knows no more about
// archives than this interface.
#pragma once

#include <functional>
#include <memory>

#include "format/digest.h"
#include "format/part.h"
#include "pipeline/snapshot/snapshot.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Reads the bytes of a snapshot's files, cut into units of
// ClonedFiles::unit_bytes.
//
// Ownership: belongs to the snapshot. Threads: may be called from any thread.
class UnitSource {
 public:
  virtual ~UnitSource() = default;

  // Passes all bytes of a unit to `take`, in order, and compares them with what
  // is known about them. `cancelled` is polled.
  //   kDeadPeer      the bytes could not be got, or were wrong: the caller must
  //                  drop what `take` received and ask again
  //   kCorrupt       the bytes are lost: the message says what is left
  //   kSnapshotGone  the snapshot was removed
  //   others         errors of `take`
  [[nodiscard]] virtual rocksdb::Status Read(
      const Part& unit, const std::function<bool()>& cancelled,
      const std::function<rocksdb::Status(const rocksdb::Slice&)>& take) = 0;
  // Sets the digest of a unit; reads the unit only if its digest is not
  // recorded. Errors are those of Read().
  [[nodiscard]] virtual rocksdb::Status DigestOf(
      const Part& unit, const std::function<bool()>& cancelled,
      Digest128* digest) = 0;
};

// Takes snapshots of such a source.
//
// Ownership: shared by a server and its creator. Threads: may be called from
// any thread.
class SnapshotOrigin {
 public:
  virtual ~SnapshotOrigin() = default;

  // Takes the snapshot. All snapshots of one kind are equal, even those that
  // other processes take, until a newer set exists. If as_files, the result has
  // units(), and of the options only `families` and `cancelled` are used;
  // otherwise also `interval`, `snapshot_dir` (empty: the directory for
  // temporary files), `registry`, `read_bytes` and `log`.
  //   kRefused  there is no such snapshot; marked as a refusal of chunks,
  //             unless as_files
  [[nodiscard]] virtual rocksdb::Status Take(
      const SnapshotOptions& options, std::unique_ptr<Snapshot>* result) = 0;
  // Ends current and later calls of this object and of its snapshots.
  virtual void Cancel() = 0;
};

}  // namespace sstferry
