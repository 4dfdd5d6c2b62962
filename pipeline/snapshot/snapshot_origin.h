// Interface for a source that is not a directory on this machine. It has one
// implementation: archive/ provides the sets of an archive. Other code that
// reads snapshots does not depend on archives.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "format/digest.h"
#include "format/part.h"
#include "pipeline/snapshot/snapshot.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Reads the files of a snapshot in units of FileSet::unit_bytes bytes.
//
// Ownership: belongs to the snapshot. Threads: may be called from any thread.
class UnitSource {
 public:
  enum class DigestFrom : uint8_t { kRecord, kBytes };

  virtual ~UnitSource() = default;

  // Passes all bytes of a unit to `take`, in order. Compares the bytes with the
  // recorded facts about the unit. `cancelled` is called from time to time, and
  // ends the call if it returns true.
  //   kDeadPeer      the bytes could not be fetched, or were wrong: the caller
  //                  must discard what `take` received and call again
  //   kCorrupt       the bytes are lost: the message says what remains
  //   kSnapshotGone  the snapshot was removed
  //   others         errors of `take`
  [[nodiscard]] virtual rocksdb::Status Read(
      const Part& unit, const std::function<bool()>& cancelled,
      const std::function<rocksdb::Status(const rocksdb::Slice&)>& take) = 0;
  // Sets *digest to the digest of a unit. With kRecord, reads the unit only if
  // its digest is not recorded. With kBytes, reads the unit in any case, and
  // reads it again if its bytes were wrong. Returns the errors of Read().
  [[nodiscard]] virtual rocksdb::Status DigestOf(
      const Part& unit, DigestFrom from,
      const std::function<bool()>& cancelled, Digest128* digest) = 0;
};

// Takes snapshots of a source that is not a directory.
//
// Ownership: shared by a server and its creator. Threads: may be called from
// any thread.
class SnapshotOrigin {
 public:
  virtual ~SnapshotOrigin() = default;

  // Takes a snapshot. Until a newer set exists, all snapshots with as_files are
  // equal, and all others are equal, even if other processes take them.
  //
  // With as_files, the result has units(), and only the options `families`,
  // `cancelled` and `read_bytes` are used. Without as_files, these options are
  // also used: `interval`, `snapshot_dir` (empty: the directory for temporary
  // files), `registry` and `log`.
  //   kRefused  there is no such snapshot; marked as a refusal of chunks,
  //             unless as_files
  [[nodiscard]] virtual rocksdb::Status Take(
      const SnapshotOptions& options, std::unique_ptr<Snapshot>* result) = 0;
  // Ends all running and later calls of this object and of its snapshots.
  virtual void Cancel() = 0;
};

}  // namespace sstferry
