// Makes a whole set from a damaged set. A repair is a push (push.h) whose
// source is the damaged set. It reads every object of the set, and compares the
// object with its digests. It reuses good objects. It takes the bytes of other
// objects from any place that has them: other sets of the archive, another
// archive, a directory, or a source that could be pushed. It accepts bytes only
// if they have the digests in the record of the damaged set.
//
// The new set has a new id, and the time, label and log of the damaged set. The
// damaged set stays until RemoveFromArchive() removes it, but every command
// treats it as damaged (RepairedSets). A repair stores wrong objects as
// findings, like a check, because other sets may name these objects. It stores
// them before the new set is committed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/archive/archive.h"
#include "pipeline/archive/set_source.h"
#include "rocksdb/status.h"
#include "sstferry/archive.h"

namespace sstferry {

// A place that may have the bytes of a lost file.
//
// Threads: one at a time.
class FileDonor {
 public:
  virtual ~FileDonor() = default;
  using Open =
      std::function<rocksdb::Status(std::unique_ptr<SetFile>* opened)>;
  // Calls take(open) for each candidate for the file, until take() returns
  // true. A candidate's bytes are unverified, and may change between two calls
  // of open().
  [[nodiscard]] virtual rocksdb::Status Offer(
      const CloneFile& file, uint64_t unit_bytes,
      const std::function<bool(const Open& open)>& take) = 0;
};

// Makes a donor that offers files of a directory with the names of the lost
// files. The directory is a database, which may be open, or a replica. The
// donor writes nothing in the directory, and follows no symbolic links.
std::unique_ptr<FileDonor> MakeDirectoryDonor(const std::string& directory);
// Makes a donor that offers files of the sets of an archive.
std::unique_ptr<FileDonor> MakeArchiveDonor(const Archive& archive);
// Makes a donor that offers the files of a source. Borrows the source.
std::unique_ptr<FileDonor> MakeSourceDonor(SetSource* source);

struct RepairOptions {
  std::string set;            // name of the set; empty: all committed sets
  FileDonor* from = nullptr;  // borrowed; null: only this archive
  std::string software;
  int lanes = 8;
  NewSetId new_id = RandomSetId;
  std::function<uint64_t()> steady_seconds;
  std::function<bool()> cancelled;  // polled between files; may be null
  WorkProgress* progress = nullptr;  // may be null
};

// A set that was examined. If it was repaired, own_bytes is that of the new
// set.
struct RepairedSet : SetFacts {
  SetName name;
  SetName by;  // the new set; id zero: the set was not repaired
  bool is_repaired() const { return by.id != SetId(); }
};

struct RepairSummary : ArchiveUploads {
  // The newest set first. Sets with unreadable records are at the end.
  std::vector<RepairedSet> sets;
  uint64_t read_bytes = 0;
};

// Repairs sets.
//   kRefused  there is no such set; or the set is sealed, and this archive has
//             another key or none
//   kCorrupt  a set stays damaged. The message names the first file whose bytes
//             were not found, or the first set whose record cannot be read
//   others    errors of the store and the donor, like those of a push
[[nodiscard]] rocksdb::Status RepairArchive(const Archive& archive,
                                            const RepairOptions& options,
                                            RepairSummary* summary);

}  // namespace sstferry
