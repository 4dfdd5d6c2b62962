// An open database with data, into which a pull ingests. Either an application
// has opened it, or this process opens its directory.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/pull/live_tables.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "sstferry/options.h"
#include "sstferry/target.h"

namespace sstferry {

class WrittenFiles;

// An open target database and its column families.
//
// Owner:   closes the database that it opened; borrows any other.
// Threads: one at a time; db() as RocksDB allows.
class LiveDb {
 public:
  // Opens the database in `dir` with the options in its OPTIONS file and with
  // objects of the registry. Leaves that file unchanged. Disables automatic
  // compactions and the application's compaction filters. *notes receives
  // remarks about options that were not understood.
  //   kBusy          another process holds its LOCK
  //   kRefused       `dir` has no database or no OPTIONS file; WALs or tables
  //                  may be in another directory; or RocksDB would replay the
  //                  WALs wrongly (ReadNeededWals() in pull/closed_files.h)
  //   kCorrupt       a file of the database is missing or damaged
  //   kIncompatible  neither RocksDB nor the registry knows the database's
  //                  comparator or merge operator
  [[nodiscard]] static rocksdb::Status Open(
      const std::string& dir, const OperatorRegistry& registry,
      std::shared_ptr<rocksdb::FileSystem> file_system,
      std::unique_ptr<LiveDb>* live, std::vector<std::string>* notes);
  // Opens the database for reading, even if another process has it open. Writes
  // nothing. families() shows which families have entries in WALs. Errors as
  // Open().
  [[nodiscard]] static rocksdb::Status OpenToRead(
      const std::string& dir, const OperatorRegistry& registry,
      std::unique_ptr<LiveDb>* live, std::vector<std::string>* notes);
  // Borrows the database that an application has open.
  static std::unique_ptr<LiveDb> Borrow(const OpenReplica& replica);
  ~LiveDb();

  // Returns the open database. If an application opened it as a DBWithTTL,
  // returns the database below it: there, values include their times, as in
  // ingested chunks. The iterators of a DBWithTTL hide the times.
  rocksdb::DB* db() const { return db_; }
  // Returns true if an application opened the database.
  bool is_borrowed() const { return replica_.db != nullptr; }
  // Returns column family -> name of the application's compaction filter or its
  // factory. If this process opened the database, these filters do not run.
  const std::map<std::string, std::string>& compaction_filters() const {
    return compaction_filters_;
  }
  const std::vector<FamilyHandle>& families() const { return families_; }
  // Returns true if WALs that OpenToRead() could read hold a SingleDelete.
  bool wals_hold_single_deletes() const { return wals_hold_single_deletes_; }
  // Returns the bytes of tables and blob files that RocksDB wrote, by flushes
  // and compactions, if this object opened the database; otherwise 0.
  uint64_t written_bytes() const;
  // Return null if the database has no such column family. The pointers are
  // valid until Create() or Drop().
  const FamilyHandle* FindFamily(const std::string& name) const;
  rocksdb::ColumnFamilyHandle* Find(const std::string& name) const;

  // Creates a column family and adds it to families(). In a database that this
  // object opened, the OPTIONS file gets the family's section of
  // `options_text`, the text of another OPTIONS file.
  [[nodiscard]] rocksdb::Status Create(
      const std::string& name, const rocksdb::ColumnFamilyOptions& options,
      const std::string& options_text);
  // Drops a column family. Returns OK if no family has this name.
  [[nodiscard]] rocksdb::Status Drop(const std::string& name);
  // Flushes these families without stalling writers.
  [[nodiscard]] rocksdb::Status Flush(
      const std::vector<FamilyHandle>& families);
  // Closes the database if this object opened it. Passes families that it
  // created in a borrowed database to the application's on_created.
  [[nodiscard]] rocksdb::Status Close();

 private:
  LiveDb() = default;
  [[nodiscard]] static rocksdb::Status OpenAt(
      const std::string& dir, const OperatorRegistry& registry, bool to_read,
      std::shared_ptr<rocksdb::FileSystem> file_system,
      std::unique_ptr<LiveDb>* live, std::vector<std::string>* notes);

  OpenReplica replica_;  // set if the database is borrowed
  rocksdb::DB* db_ = nullptr;
  std::vector<FamilyHandle> families_;
  bool wals_hold_single_deletes_ = false;
  std::map<std::string, std::string> compaction_filters_;
  std::shared_ptr<WrittenFiles> written_;
  std::shared_ptr<std::string> offered_;  // OPTIONS text for new families
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> owned_;
  std::vector<rocksdb::ColumnFamilyHandle*> owned_handles_;
};

}  // namespace sstferry
