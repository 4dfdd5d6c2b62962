// Makes a whole set from a damaged one, by a push (push.h) whose source is the
// set itself. Every object of it is read and compared with its digests. Good
// objects are reused; bytes of the others are taken from anywhere with the same
// bytes: other sets of the archive, another archive, a directory, or a source
// that could be pushed. Bytes are accepted only if they have the digests in the
// damaged set's record.
//
// The new set has an id of its own, and the time, label and log of the damaged
// one, which stays until RemoveFromArchive() removes it.
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

// A place that may have the bytes of a lost file.
//
// Threads: one at a time.
class FileDonor {
 public:
  virtual ~FileDonor() = default;
  using Open =
      std::function<rocksdb::Status(std::unique_ptr<SetFile>* opened)>;
  // Calls take(open) for each candidate for that file, until it returns true.
  // The bytes are unverified, and may differ each time a candidate is opened.
  [[nodiscard]] virtual rocksdb::Status Offer(
      const CloneFile& file, uint64_t unit_bytes,
      const std::function<bool(const Open& open)>& take) = 0;
};

// Offers files of a directory by their names: a database or a replica, which
// may be open. Writes nothing there, and follows no link.
std::unique_ptr<FileDonor> MakeDirectoryDonor(const std::string& directory);
// Offers files of the sets of an archive.
std::unique_ptr<FileDonor> MakeArchiveDonor(const Archive& archive);
// Offers files of a source, which it borrows.
std::unique_ptr<FileDonor> MakeSourceDonor(SetSource* source);

struct RepairOptions {
  std::string set;    // name of the set; empty: all that count
  FileDonor* from = nullptr;  // borrowed; null: the archive alone
  std::string software;
  int lanes = 8;
  NewSetId new_id = RandomSetId;
  std::function<uint64_t()> steady_seconds;
  std::function<bool()> cancelled;  // polled between files; may be null
  WorkProgress* progress = nullptr;  // may be null
};

// A set that was examined.
struct RepairedSet {
  SetName name;
  SetName by;  // the new one; id zero: it was whole, or stays damaged
  std::string problem;  // the first problem; empty: it is whole
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

// Repairs sets.
//   kRefused  there is no such set; or it is sealed, and this archive has
//             another key or none
//   kCorrupt  a set stays damaged: the message names the first file whose bytes
//             were not found
//   others    errors of the store and the donor, as for a push
[[nodiscard]] rocksdb::Status RepairArchive(const Archive& archive,
                                            const RepairOptions& options,
                                            RepairSummary* summary);

}  // namespace sstferry
