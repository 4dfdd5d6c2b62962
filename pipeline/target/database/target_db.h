// The new database of a pull: first opened for ingest, then opened again with
// the options of the source.
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

// A new, open database. Closes it when destroyed.
// Threads: one at a time; db() as RocksDB allows.
class TargetDb {
 public:
  // Creates a database in `dir` (which exists and is empty) with one family per
  // name, and always with `default`. Listeners of the final options are active
  // from the start.
  [[nodiscard]] static rocksdb::Status Create(
      const std::string& dir, const rocksdb::DBOptions& final_options,
      const std::vector<std::string>& names,
      std::vector<BuiltFamily> families,
      std::shared_ptr<rocksdb::FileSystem> file_system,
      std::unique_ptr<TargetDb>* result);
  // Opens the database that an unfinished pull created with the same families.
  //   kCorrupt  a file of it is missing
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

  // Opens the database again with the final options and paused background work,
  // so that its OPTIONS file has the application's options. Handles change.
  [[nodiscard]] rocksdb::Status Finalize();
  // Counts the files of all families by level.
  //   kInternal  a family that must lie in its last level, at sequence 0, does
  //              not
  [[nodiscard]] rocksdb::Status CountLevels(std::map<int, uint64_t>* levels);
  // Closes the database; every file of it is written then.
  //   kInternal  its WAL holds data
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
  // Checks that RocksDB wrote an OPTIONS file since the last call: it continues
  // without one when the disk is full.
  //   kNoSpace, kInternal  it did not
  [[nodiscard]] rocksdb::Status ExpectNewOptionsFile();
  [[nodiscard]] rocksdb::Status RestoreMaxOpenFiles();

  std::string dir_;
  rocksdb::DBOptions final_options_;
  std::vector<std::string> names_;
  std::vector<BuiltFamily> families_;  // by family index; default last if added
  size_t asked_ = 0;                   // number of families the pull asked for
  std::shared_ptr<rocksdb::FileSystem> file_system_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  std::string options_file_;
};

}  // namespace sstferry
