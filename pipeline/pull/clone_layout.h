// Knows the path of each file of a clone during the pull, and which files are
// complete.
//
// Tables, blob files and WALs are written into db/ under their final names.
// MANIFEST, OPTIONS and IDENTITY are received into staging/, and changed
// versions of them are written into db/ later. CURRENT is written after
// everything else is complete, so no process can open an incomplete database.
//
// A reused file is a link to a file of another database. The link stays in
// staging/ until all files have arrived. So no write to a file in db/ can
// change the other database through a link.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "format/messages.h"
#include "format/rocksdb/sst_part_check.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// The files of one clone, and the units (pieces of files) in which they are
// received.
//
// Threads: any. The set of reused files does not change while lanes run.
class CloneLayout {
 public:
  // REQUIRES: `units` are the parts into which the files are divided.
  CloneLayout(const FileSet& clone, std::vector<Part> units,
              std::string db_dir, std::string staging_dir);

  const std::vector<CloneFile>& files() const { return files_; }
  // Returns the unit of a part.
  const Part& unit(uint32_t part_id) const { return units_[part_id]; }
  // Returns the file of a unit.
  const CloneFile& file_of(uint32_t part_id) const {
    return files_[unit(part_id).file];
  }
  std::string PathOf(const CloneFile& file) const;
  // Returns the offset of the unit in its file; nullopt if the unit is the
  // whole file.
  std::optional<uint64_t> PartAt(uint32_t part_id) const {
    return unit(part_id).bytes == file_of(part_id).bytes
               ? std::nullopt
               : std::optional<uint64_t>(unit(part_id).offset);
  }
  // Returns null if the clone has no file of that kind.
  const CloneFile* Find(CloneFileKind kind) const;

  // --- files that are linked, not received -----------------------------------
  bool IsReused(const CloneFile& file) const {
    return IsDataFile(file) && reused_.count(file.number) != 0;
  }
  bool IsReused(uint32_t part_id) const { return IsReused(file_of(part_id)); }
  // Sets the numbers of the data files that are reused, not received. REQUIRES:
  // each of these files exists at LinkPathOf() or PathOf(), unless the pull is
  // only planned.
  void SetReused(std::set<uint64_t> numbers) { reused_ = std::move(numbers); }
  uint64_t reused_files() const { return reused_.size(); }
  uint64_t reused_bytes() const;
  std::string LinkPathOf(const CloneFile& file) const {
    return staging_dir_ + "/" + CloneFileName(file);
  }
  // Finds the link to a reused file in staging/, or in db/ if an earlier call
  // moved it there. Returns false if neither directory has the link, or if the
  // file's size is wrong.
  [[nodiscard]] bool FindLink(const CloneFile& file, std::string* path) const;

  // Creates empty files and files that consist of several units. A file that
  // consists of one unit is created when the unit is received.
  [[nodiscard]] rocksdb::Status MakeFiles(
      rocksdb::FileSystem* file_system) const;

  // Returns true if the unit is the last one of a table with several units.
  // This unit usually contains the table's index, with which the other units
  // are checked while they arrive. So the scheduler hands out such units first.
  bool IsTail(uint32_t part_id) const;

  // Makes a checker that checks the blocks of a unit while the unit arrives.
  // Returns null if that is not possible, for example because the table's index
  // has not arrived. The complete file is then read and checked at the end.
  std::unique_ptr<SstPartCheck> StartCheck(
      uint32_t part_id, rocksdb::FileSystem* file_system) const;

  // Counts a unit that has arrived, in this run or an earlier one. `blocks` is
  // the span of the unit's blocks that were checked while they arrived. Returns
  // true if the unit completes its file. *checked then gets the checked spans
  // of all units of the file, which need not be read again.
  bool CompleteUnit(uint32_t part_id, const ByteSpan& blocks,
                    std::vector<ByteSpan>* checked);

  // Records that the file of this part, which is complete, has bytes that its
  // own checksums do not cover. Ignores files that are not data files.
  void SetUnchecked(uint32_t part_id);
  bool IsUnchecked(const CloneFile& file) const;

  const std::string& db_dir() const { return db_dir_; }
  const std::string& staging_dir() const { return staging_dir_; }

 private:
  const std::vector<CloneFile> files_;
  const uint64_t unit_bytes_;
  const std::string db_dir_;
  const std::string staging_dir_;
  const std::vector<Part> units_;
  std::set<uint64_t> reused_;         // numbers of data files
  std::vector<uint32_t> last_units_;  // by file
  mutable std::mutex mu_;
  std::vector<uint32_t> units_left_;             // under mu_; by file
  std::vector<bool> has_tail_;                   // under mu_; by file
  std::vector<std::vector<ByteSpan>> checked_;   // under mu_; by file
  std::set<uint64_t> unchecked_;  // under mu_; numbers of data files
};

}  // namespace sstferry
