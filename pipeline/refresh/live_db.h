// The open database of a target, into which a pull ingests chunks. Either an
// application has the database open, or this process opens it.
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

// An open database of a target, and its column families.
//
// Ownership: closes a database that it opened; borrows a database that an
//            application opened.
// Threads:   one at a time; db() as RocksDB allows.
class LiveDb {
 public:
  // Opens the database in `dir`. Uses the options in its OPTIONS file, and
  // objects of the registry, and does not change that file. Disables automatic
  // compactions and the application's compaction filters. Adds remarks about
  // unknown options to *notes.
  //   kBusy          a process, perhaps this one, holds the database's LOCK
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
  // Opens the database in `dir` for reading, even if another process has it
  // open. Writes nothing. families() then tells which families have entries in
  // WALs. Returns the same errors as Open().
  [[nodiscard]] static rocksdb::Status OpenToRead(
      const std::string& dir, const OperatorRegistry& registry,
      std::unique_ptr<LiveDb>* live, std::vector<std::string>* notes);
  // Borrows the database that an application has open.
  static std::unique_ptr<LiveDb> Borrow(const OpenReplica& replica);
  ~LiveDb();

  // Returns the open database. If an application opened a DBWithTTL, returns
  // the database that the DBWithTTL wraps. The values in the wrapped database
  // end with a time, like the values in chunks. Iterators of the DBWithTTL
  // would remove the times.
  rocksdb::DB* db() const { return db_; }
  // Returns true if an application opened the database.
  bool is_borrowed() const { return replica_.db != nullptr; }
  // Maps a column family to the name of the application's compaction filter, or
  // of the filter's factory. If this process opened the database, the filters
  // do not run.
  const std::map<std::string, std::string>& compaction_filters() const {
    return compaction_filters_;
  }
  const std::vector<FamilyHandle>& families() const { return families_; }
  // Returns true if a WAL has a SingleDelete. Only OpenToRead() looks for them.
  bool wals_hold_single_deletes() const { return wals_hold_single_deletes_; }
  // Returns the bytes of tables and blob files that RocksDB has written in
  // flushes and compactions. Returns 0 if an application opened the database.
  uint64_t written_bytes() const;
  // Find a column family by its name. Return null if it does not exist. The
  // pointers are valid until Create() or Drop() is called.
  const FamilyHandle* FindFamily(const std::string& name) const;
  rocksdb::ColumnFamilyHandle* Find(const std::string& name) const;

  // Creates a column family and adds it to families(). If this object opened
  // the database, also adds the family's section to the database's OPTIONS
  // file. The section comes from `options_text`, the text of another OPTIONS
  // file.
  [[nodiscard]] rocksdb::Status Create(
      const std::string& name, const rocksdb::ColumnFamilyOptions& options,
      const std::string& options_text);
  // Drops a column family. Returns OK if no family has this name.
  [[nodiscard]] rocksdb::Status Drop(const std::string& name);
  // Flushes the memtables of these families. Does not stall writers.
  [[nodiscard]] rocksdb::Status Flush(
      const std::vector<FamilyHandle>& families);
  // Closes the database if this object opened it. If an application opened it,
  // passes the families that Create() has made to the application's on_created.
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
  std::shared_ptr<std::string> offered_;  // OPTIONS text with new families
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> owned_;
  std::vector<rocksdb::ColumnFamilyHandle*> owned_handles_;
};

}  // namespace sstferry
