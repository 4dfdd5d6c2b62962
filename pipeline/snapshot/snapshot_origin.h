// A source that lies in no directory of this machine: the sets of an archive.
// archive/ implements it; whoever reads a snapshot knows of an
// archive no more than this.
#pragma once

#include <functional>
#include <memory>

#include "format/digest.h"
#include "format/part.h"
#include "pipeline/snapshot/snapshot.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// The bytes of a snapshot's files, cut into units of ClonedFiles::unit_bytes.
//
// Ownership: belongs to the snapshot. Threads: any.
class UnitSource {
 public:
  virtual ~UnitSource() = default;

  // Hands all bytes of a unit to `take`, in order, and compares them with what
  // is known of them. `cancelled` is polled.
  //   kDeadPeer       they could not be got, or were others: who took them
  //                   drops them, and asks again
  //   kCorrupt        they are lost: the message says what is left
  //   kSnapshotGone   the snapshot was removed
  //   others          those of `take`
  [[nodiscard]] virtual rocksdb::Status Read(
      const Part& unit, const std::function<bool()>& cancelled,
      const std::function<rocksdb::Status(const rocksdb::Slice&)>& take) = 0;
  // Sets the digest of a unit; reads it only if nothing else tells. Errors as
  // Read().
  [[nodiscard]] virtual rocksdb::Status DigestOf(
      const Part& unit, const std::function<bool()>& cancelled,
      Digest128* digest) = 0;
};

// Ownership: shared by a server and by who made it. Threads: any.
class SnapshotOrigin {
 public:
  virtual ~SnapshotOrigin() = default;

  // Takes the snapshot. As files, its units() is not null. All of its kind are
  // equal, also those of other processes, as long as there is none that is
  // newer. As files, of the options families and cancelled count; else also
  // interval, snapshot_dir (empty: that for temporary files), registry,
  // read_bytes and log.
  //   kRefused  there is none like that; marked as a refusal of chunks, if
  //             not as_files
  [[nodiscard]] virtual rocksdb::Status Take(
      const SnapshotOptions& options, std::unique_ptr<Snapshot>* result) = 0;
  // Makes current and later calls of it and of its snapshots end.
  virtual void Cancel() = 0;
};

}  // namespace sstferry
