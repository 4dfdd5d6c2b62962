// Makes a whole set from a damaged one, by a push (push.h) whose source is the
// damaged set. Every object of the set is read and compared with its digests.
// Good objects are reused. The bytes of other objects come from any place that
// has them: other sets of the archive, another archive, a directory, or a
// source that could be pushed. Bytes are accepted only if they have the digests
// in the damaged set's record.
//
// The new set has a new id, and the damaged set's time, label and log. The
// damaged set stays until RemoveFromArchive() removes it, but counts as damaged
// for every command (RepairedSets). Wrong objects are recorded like those that
// a check finds, because other sets may name them, and before the new set is
// committed.
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

// Something that may have the bytes of a lost file.
//
// Threads: one at a time.
class FileDonor {
 public:
  virtual ~FileDonor() = default;
  using Open =
      std::function<rocksdb::Status(std::unique_ptr<SetFile>* opened)>;
  // Calls take(open) for each candidate for the file, until take() returns
  // true. The bytes are unverified, and may differ each time a candidate is
  // opened.
  [[nodiscard]] virtual rocksdb::Status Offer(
      const CloneFile& file, uint64_t unit_bytes,
      const std::function<bool(const Open& open)>& take) = 0;
};

// Offers the files of a directory (a database or a replica, which may be open)
// by their names. Writes nothing in the directory, and follows no link.
std::unique_ptr<FileDonor> MakeDirectoryDonor(const std::string& directory);
// Offers files of the sets of an archive.
std::unique_ptr<FileDonor> MakeArchiveDonor(const Archive& archive);
// Offers the files of a source. Borrows the source.
std::unique_ptr<FileDonor> MakeSourceDonor(SetSource* source);

struct RepairOptions {
  std::string set;    // name of the set; empty: all committed sets
  FileDonor* from = nullptr;  // borrowed; null: only the archive
  std::string software;
  int lanes = 8;
  NewSetId new_id = RandomSetId;
  std::function<uint64_t()> steady_seconds;
  std::function<bool()> cancelled;  // polled between files; may be null
  WorkProgress* progress = nullptr;  // may be null
};

// A set that was examined. If it is repaired, own_bytes are those of the new
// set.
struct RepairedSet : SetFacts {
  SetName name;
  SetName by;  // the new set; id zero: it was whole, or stays damaged
  bool is_repaired() const { return by.id != SetId(); }
};

struct RepairSummary : ArchiveUploads {
  // The newest first; sets with unreadable records at the end.
  std::vector<RepairedSet> sets;
  uint64_t read_bytes = 0;
};

// Repairs sets.
//   kRefused  there is no such set; or it is sealed, and this archive has
//             another key or none
//   kCorrupt  a set stays damaged: the message names the first file whose bytes
//             were not found, or the first set whose record cannot be read
//   others    errors of the store and the donor, as for a push
[[nodiscard]] rocksdb::Status RepairArchive(const Archive& archive,
                                            const RepairOptions& options,
                                            RepairSummary* summary);

}  // namespace sstferry
