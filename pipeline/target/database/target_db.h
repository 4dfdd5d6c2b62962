// The database under construction: opened for ingest, then turned into what
// the source's OPTIONS describe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/options/family_options.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"

namespace sstferry {

// Threads: one at a time, but db() is RocksDB's own business.
class TargetDb {
 public:
  // Makes a new database in `dir` (which exists and is empty) with one family
  // per name, and `default` whatever the names are. Listeners of the final
  // options hear of all, from the first step on.
  [[nodiscard]] static rocksdb::Status Create(
      const std::string& dir, const rocksdb::DBOptions& final_options,
      const std::vector<std::string>& names,
      std::vector<BuiltFamily> families,
      std::shared_ptr<rocksdb::FileSystem> file_system,
      std::unique_ptr<TargetDb>* result);
  // The same of one that an unfinished pull made, with the same families.
  [[nodiscard]] static rocksdb::Status Reopen(
      const std::string& dir, const rocksdb::DBOptions& final_options,
      const std::vector<std::string>& names,
      std::vector<BuiltFamily> families,
      std::shared_ptr<rocksdb::FileSystem> file_system,
      std::unique_ptr<TargetDb>* result);
  ~TargetDb();

  rocksdb::DB* db() const { return db_.get(); }
  rocksdb::ColumnFamilyHandle* handle(size_t family) const {
    return handles_[family];
  }
  const BuiltFamily& family(size_t i) const { return families_[i]; }

  // Reopens with the final options, background work paused, so that the
  // OPTIONS file left behind is the application's. Handles change.
  [[nodiscard]] rocksdb::Status Finalize();
  // Files by level over all families. A seeded family that must lie wholly in
  // its last level, at sequence 0, and does not, is kInternal.
  [[nodiscard]] rocksdb::Status CountLevels(std::map<int, uint64_t>* levels);
  // After OK every file of the database is written; a database whose WAL holds
  // data is kInternal.
  [[nodiscard]] rocksdb::Status Close();

 private:
  enum class How { kCreate, kReopen, kFinal };

  TargetDb() = default;
  [[nodiscard]] static rocksdb::Status Make(
      How how, const std::string& dir, const rocksdb::DBOptions& final_options,
      const std::vector<std::string>& names,
      std::vector<BuiltFamily> families,
      std::shared_ptr<rocksdb::FileSystem> file_system,
      std::unique_ptr<TargetDb>* result);
  [[nodiscard]] rocksdb::Status Open(How how);
  [[nodiscard]] rocksdb::Status CloseHandles();
  bool NeedsAllFilesOpen() const;
  // kInternal when no OPTIONS file was written since the last call: RocksDB
  // goes on without one when the disk is full.
  [[nodiscard]] rocksdb::Status ExpectNewOptionsFile();
  [[nodiscard]] rocksdb::Status RestoreMaxOpenFiles();

  std::string dir_;
  rocksdb::DBOptions final_options_;
  std::vector<std::string> names_;
  std::vector<BuiltFamily> families_;  // by family index; default last if added
  size_t asked_ = 0;                   // families that were asked for
  std::shared_ptr<rocksdb::FileSystem> file_system_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  std::string options_file_;
};

}  // namespace sstferry
