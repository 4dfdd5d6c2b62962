// Where the files of a clone lie while it is pulled, and which of them are
// whole.
//
// Tables, blob files and WALs are written where they stay: in db/, under their
// own names. A MANIFEST, OPTIONS and IDENTITY are received into staging/,
// because the clone gets others that are made from them. There is no CURRENT
// until all is complete, so nobody can open what is not.
//
// A file that is linked from another database lies in staging/ until all have
// come: nothing that is written in db/ is written through a link.
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

// Threads: any; what is reused is constant while lanes run.
class CloneLayout {
 public:
  // REQUIRES: `units` are the parts into which the files are cut.
  CloneLayout(const ClonePlan& clone, std::vector<Part> units,
              std::string db_dir, std::string staging_dir);

  const std::vector<CloneFile>& files() const { return files_; }
  // The unit of a part, its file and that file's path.
  const Part& unit(uint32_t part_id) const { return units_[part_id]; }
  const CloneFile& file_of(uint32_t part_id) const {
    return files_[unit(part_id).file];
  }
  std::string PathOf(const CloneFile& file) const;
  // Where in its file the unit begins; none: it is all of the file.
  std::optional<uint64_t> PartAt(uint32_t part_id) const {
    return unit(part_id).bytes == file_of(part_id).bytes
               ? std::nullopt
               : std::optional<uint64_t>(unit(part_id).offset);
  }
  // Null: the clone has no file of that kind.
  const CloneFile* Find(CloneFileKind kind) const;

  // --- files that are linked, and do not come --------------------------------
  bool IsReused(const CloneFile& file) const {
    return reused_.count(file.number) != 0;
  }
  bool IsReused(uint32_t part_id) const { return IsReused(file_of(part_id)); }
  // By number. REQUIRES: each has a link where PathOf() or LinkPathOf() tells.
  void SetReused(std::set<uint64_t> numbers) { reused_ = std::move(numbers); }
  uint64_t reused_files() const { return reused_.size(); }
  uint64_t reused_bytes() const;
  std::string LinkPathOf(const CloneFile& file) const {
    return staging_dir_ + "/" + CloneFileName(file);
  }
  // Where a reused file is: as linked, or already moved into db/. False: in
  // neither place, or not with the bytes that it should have.
  [[nodiscard]] bool FindLink(const CloneFile& file, std::string* path) const;

  // Makes the files that no unit makes as a whole: those of several units, and
  // empty ones.
  [[nodiscard]] rocksdb::Status MakeFiles(
      rocksdb::FileSystem* file_system) const;

  // Returns true if the unit is the end of a table, where the index is
  // expected. The scheduler hands such units out first.
  bool IsTail(uint32_t part_id) const;

  // Checks the blocks of a unit while they arrive. Null: that is not possible,
  // the file is read when it is whole.
  std::unique_ptr<SstPartCheck> StartCheck(
      uint32_t part_id, rocksdb::FileSystem* file_system) const;

  // Counts a unit that has come, or that was here, and the blocks of it that
  // were checked. True: its file is whole, *checked are the blocks of all of
  // its units that need not be read.
  bool CompleteUnit(uint32_t part_id, const ByteSpan& blocks,
                    std::vector<ByteSpan>* checked);

  // Marks a whole file as one that has bytes without a checksum of their own.
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
  std::set<uint64_t> reused_;         // numbers of files
  std::vector<uint32_t> last_units_;  // by file
  mutable std::mutex mu_;
  std::vector<uint32_t> units_left_;             // under mu_; by file
  std::vector<bool> has_tail_;                   // under mu_; by file
  std::vector<std::vector<ByteSpan>> checked_;   // under mu_; by file
  std::set<uint64_t> unchecked_;                 // under mu_; numbers of files
};

}  // namespace sstferry
