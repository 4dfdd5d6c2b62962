// Makes a whole set of a damaged one, by a push (push.h) whose source is the set
// itself. Every object of it is read and compared with its digests. Those that
// are right are used again; bytes of the others come from wherever the same
// bytes are: other sets of the archive, another archive, a directory, or a
// source of which a push could be made. Whatever gives them, they are right only
// if the digests of the damaged set are theirs.
//
// The new set has an id of its own, and the time, the label and the log of the
// damaged one, which stays until RemoveFromArchive() takes it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/archive/archive.h"
#include "pipeline/archive/set_source.h"
#include "rocksdb/status.h"

namespace sstferry {

// A place where bytes of a lost file may be.
//
// Threads: one at a time.
class FileDonor {
 public:
  virtual ~FileDonor() = default;
  using Open =
      std::function<rocksdb::Status(std::unique_ptr<SetFile>* opened)>;
  // Calls take(open) for each that may be that file, until it returns true.
  // Nobody has compared the bytes, and each time that one is opened they may be
  // others.
  [[nodiscard]] virtual rocksdb::Status Offer(
      const CloneFile& file, uint64_t unit_bytes,
      const std::function<bool(const Open& open)>& take) = 0;
};

// Files of a directory by their names: a database, a replica. It may be open:
// nothing is written there, and no link is followed.
std::unique_ptr<FileDonor> MakeDirectoryDonor(const std::string& directory);
// Files of the sets of an archive.
std::unique_ptr<FileDonor> MakeArchiveDonor(const Archive& archive);
// Files of a source. Borrows it.
std::unique_ptr<FileDonor> MakeSourceDonor(SetSource* source);

struct RepairOptions {
  std::string set;    // its name; empty: all that count
  FileDonor* from = nullptr;  // borrowed; null: the archive alone
  std::string software;
  int lanes = 8;
  NewSetId new_id = RandomSetId;
  std::function<uint64_t()> steady_seconds;
  std::function<bool()> cancelled;  // polled between files; may be null
  WorkProgress* progress = nullptr;  // may be null
};

// A set that was looked at.
struct RepairedSet {
  SetName name;
  SetName by;  // the new one; its id is zeros: it was whole, or stays damaged
  std::string problem;  // the first that is amiss; empty: it is whole
  std::string label;
  uint64_t files = 0;
  uint64_t bytes = 0;
  bool is_repaired() const { return by.id != SetId(); }
};

struct RepairSummary {
  std::vector<RepairedSet> sets;  // the newest first
  uint64_t read_bytes = 0;
  uint64_t uploaded_files = 0;
  uint64_t uploaded_bytes = 0;
  uint64_t reused_files = 0;
  uint64_t reused_bytes = 0;
};

//   kRefused  there is no such set; or it is sealed, and this archive has
//             another key or none
//   kCorrupt  a set stays damaged: the message names the first file that
//             nobody has
//   others    the store's and the donor's, as of a push
[[nodiscard]] rocksdb::Status RepairArchive(const Archive& archive,
                                            const RepairOptions& options,
                                            RepairSummary* summary);

}  // namespace sstferry
