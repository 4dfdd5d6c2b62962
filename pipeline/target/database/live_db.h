// A database that holds data and takes chunks while it is open: one that an
// application has opened, or a directory that this process opens.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/target/database/live_tables.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "sstferry/options.h"
#include "sstferry/target.h"

namespace sstferry {

// Threads: one at a time, but db() is RocksDB's own business.
class LiveDb {
 public:
  // With the options that the directory's OPTIONS file tells, and objects of
  // the registry. That file stays word for word, and nothing is compacted but
  // by hand, without the application's compaction filters.
  //   kBusy          another process holds its LOCK
  //   kRefused       no database, or none with an OPTIONS file; its WALs or
  //                  its tables may lie elsewhere
  //   kIncompatible  a comparator or merge operator that nobody here knows
  [[nodiscard]] static rocksdb::Status Open(
      const std::string& dir, const OperatorRegistry& registry,
      std::shared_ptr<rocksdb::FileSystem> file_system,
      std::unique_ptr<LiveDb>* live, std::vector<std::string>* notes);
  // The same to look at it: nothing is written, whoever has it open. What its
  // WALs hold is in families().
  [[nodiscard]] static rocksdb::Status OpenToRead(
      const std::string& dir, const OperatorRegistry& registry,
      std::unique_ptr<LiveDb>* live, std::vector<std::string>* notes);
  // Of an application, which keeps it.
  static std::unique_ptr<LiveDb> Borrow(const OpenReplica& replica);
  ~LiveDb();

  rocksdb::DB* db() const { return db_; }
  // An application has opened it.
  bool is_borrowed() const { return replica_.db != nullptr; }
  // By name of the column family: the compaction filter (or its factory) that
  // the application uses. None of them is run where this process opened it.
  const std::map<std::string, std::string>& compaction_filters() const {
    return compaction_filters_;
  }
  const std::vector<FamilyHandle>& families() const { return families_; }
  rocksdb::ColumnFamilyHandle* Find(const std::string& name) const;

  [[nodiscard]] rocksdb::Status Create(
      const std::string& name, const rocksdb::ColumnFamilyOptions& options);
  [[nodiscard]] rocksdb::Status Drop(const std::string& name);
  // Of these families, without letting writers wait.
  [[nodiscard]] rocksdb::Status Flush(
      const std::vector<FamilyHandle>& families);
  // Nothing for a borrowed one.
  [[nodiscard]] rocksdb::Status Close();

 private:
  LiveDb() = default;
  [[nodiscard]] static rocksdb::Status OpenAt(
      const std::string& dir, const OperatorRegistry& registry, bool to_read,
      std::shared_ptr<rocksdb::FileSystem> file_system,
      std::unique_ptr<LiveDb>* live, std::vector<std::string>* notes);

  OpenReplica replica_;  // of an application; else all null
  rocksdb::DB* db_ = nullptr;
  std::vector<FamilyHandle> families_;
  std::map<std::string, std::string> compaction_filters_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> owned_;
  std::vector<rocksdb::ColumnFamilyHandle*> owned_handles_;
};

}  // namespace sstferry
