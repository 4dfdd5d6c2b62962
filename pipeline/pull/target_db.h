// Opens the new database of a pull with sstferry's own options, which suit
// ingestion. When the database is closed, it gets the OPTIONS text for its
// application.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/options/family_options.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/listener.h"

namespace sstferry {

struct TargetDbOptions {
  std::vector<std::shared_ptr<rocksdb::EventListener>> listeners;
  bool write_dbid_to_manifest = false;
  std::string options_text;  // text of the closed database's OPTIONS file
};

// Writes `text` as the only OPTIONS file of the closed database in `dir`.
// RocksDB's own OPTIONS files contain names and the version of the linked
// RocksDB. The application's RocksDB may be unable to load such files.
[[nodiscard]] rocksdb::Status LeaveOnlyOptions(rocksdb::FileSystem* file_system,
                                               const std::string& dir,
                                               const std::string& text);

// A new, open database. The destructor closes it.
// Threads: one at a time; db() as RocksDB allows.
class TargetDb {
 public:
  // Creates a database in `dir` (which exists and is empty) with one family per
  // name, and always with `default`.
  [[nodiscard]] static rocksdb::Status Create(
      const std::string& dir, const TargetDbOptions& options,
      const std::vector<std::string>& names,
      std::vector<BuiltFamily> families,
      std::shared_ptr<rocksdb::FileSystem> file_system,
      std::unique_ptr<TargetDb>* result);
  // Opens the database that an unfinished pull created with the same families.
  //   kCorrupt  one of its files is missing
  [[nodiscard]] static rocksdb::Status Reopen(
      const std::string& dir, const TargetDbOptions& options,
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

  // Counts the files of all families by level.
  //   kInternal  a file is not in the last level, or does not have sequence 0
  [[nodiscard]] rocksdb::Status CountLevels(std::map<int, uint64_t>* levels);
  // Closes the database and writes `options_text` as its only OPTIONS file.
  // After that, all its files are complete.
  //   kInternal  its WAL has data
  [[nodiscard]] rocksdb::Status Close();

 private:
  TargetDb() = default;
  [[nodiscard]] static rocksdb::Status Make(
      bool create, const std::string& dir, const TargetDbOptions& options,
      const std::vector<std::string>& names,
      std::vector<BuiltFamily> families,
      std::shared_ptr<rocksdb::FileSystem> file_system,
      std::unique_ptr<TargetDb>* result);
  [[nodiscard]] rocksdb::Status Open(bool create);
  [[nodiscard]] rocksdb::Status CloseHandles();

  std::string dir_;
  TargetDbOptions options_;
  std::vector<std::string> names_;
  // Indexed by family. If `default` was added, it is the last element.
  std::vector<BuiltFamily> families_;
  size_t asked_ = 0;                   // number of families the pull asked for
  std::shared_ptr<rocksdb::FileSystem> file_system_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
};

}  // namespace sstferry
