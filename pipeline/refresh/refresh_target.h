// The target of a refresh in place (PullMode::kRefresh). It changes a database
// in one step, while applications may read the database. (The subclass in
// linked_target.h refreshes a copy of a database.)
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pipeline/base/last_transfer.h"
#include "pipeline/options/family_options.h"
#include "pipeline/pull/ingestor.h"
#include "pipeline/pull/live_tables.h"
#include "pipeline/pull/pull_target.h"
#include "pipeline/refresh/compared_entries.h"
#include "pipeline/refresh/group_compare.h"
#include "pipeline/refresh/ingest_gate.h"
#include "pipeline/refresh/live_db.h"

namespace sstferry {

// The tables that a column family had when the target was examined.
struct FamilyTables {
  std::string name;
  bool is_unflushed = false;  // see FamilyHandle
  std::vector<LiveTable> tables;
};

class RefreshTarget : public PullTarget, public InPlaceTarget {
 public:
  // Refreshes the open database of `replica`. If `replica` has none (its db is
  // null), opens the database in options().target_dir.
  RefreshTarget(const TargetInputs& inputs, const OpenReplica& replica);
  ~RefreshTarget() override;

  [[nodiscard]] rocksdb::Status ReadExisting(
      WorkspaceUse use, const std::shared_ptr<rocksdb::FileSystem>& disk,
      FoundTarget* found) override;
  bool IsAsLeft(const JournalState& journal) const override;
  [[nodiscard]] rocksdb::Status BuildFamilies() override;
  [[nodiscard]] rocksdb::Status Create(
      const std::shared_ptr<rocksdb::FileSystem>& file_system,
      std::optional<JournalTargetFiles>* held) override;
  [[nodiscard]] rocksdb::Status Reopen(
      const std::shared_ptr<rocksdb::FileSystem>& file_system,
      const JournalState& unfinished, ReceivedChunks* received) override;
  std::unique_ptr<ChunkStore> MakeStore(JournalFile* journal) override;
  [[nodiscard]] rocksdb::Status Finish() override;
  [[nodiscard]] rocksdb::Status Close(JournalFile* journal) override;
  [[nodiscard]] rocksdb::Status Record(const Summary& summary) override;
  [[nodiscard]] rocksdb::Status CheckNotTakenOver(uint64_t sequence) override;
  [[nodiscard]] rocksdb::Status CompactAndClose() override;
  void FillSummary(Summary* summary) const override;
  [[nodiscard]] rocksdb::Status DigestPart(const Part& part,
                                           DigestReply* reply) override;
  PartComparer* comparer() override { return &comparer_; }
  // Does nothing. The database is not in the workspace, so it may stay open.
  void CloseDatabase() override {}

 protected:
  // For subclasses: refreshes the database in `dir`, and is no InPlaceTarget.
  // If `drops_missing` is true, drops families that the source does not have.
  RefreshTarget(const TargetInputs& inputs, const char* mode,
                const OpenReplica& replica, std::string dir,
                bool drops_missing);
  // Opens the database for reading, checks it, and lists its tables.
  [[nodiscard]] rocksdb::Status OpenAndList();
  // Returns the names of the listed families that have entries. Leaves out
  // names that do not fit into the request.
  std::vector<std::string> FilledFamilies() const;
  // If `status` reports damage, records the damage of this replica, and adds
  // the repair command to the error. Returns any other status unchanged.
  // Threads: any.
  virtual rocksdb::Status Own(const rocksdb::Status& status);
  [[nodiscard]] rocksdb::Status DropMissing();
  // Returns the names of the target's families that the source does not have.
  std::vector<std::string> Missing() const;
  // Compacts some of the deltas (see delta_compaction.h).
  //   kCorrupt  a file is damaged
  [[nodiscard]] rocksdb::Status Compact();
  void TakeLevels();
  // Raises last_sequence() to the source's sequence number if it is lower.
  void RaiseKnownSequence();
  void FillLevels(Summary* summary) const;

  // Returns true if nobody else can change the database: no other process can
  // write to it, and no family has FIFO compactions, which drop entries.
  bool is_alone() const;

  const std::string& dir() const { return dir_; }
  // Sets the directory of the database that OpenAndList() will open.
  void set_dir(std::string dir) { dir_ = std::move(dir); }
  // Returns the open database. Returns null before OpenAndList().
  LiveDb* live() const { return live_.get(); }
  // Closes the database, and ignores errors. OpenAndList() can open it again.
  void ForgetLive();
  // Returns what the journal records after the database's id.
  virtual std::string origin() const { return ""; }
  // Returns the requested families with the tables that were listed last.
  const std::vector<FamilyTables>& tables() const { return tables_; }
  // Returns, for each family of the plan, the options with which it would be
  // built.
  const std::vector<BuiltFamily>& built() const { return built_; }
  uint64_t read_bytes() const { return read_bytes_; }

 private:
  // Examines the database. REQUIRES: the database's workspace is open.
  [[nodiscard]] rocksdb::Status Look(FoundTarget* found);
  // Reads the record of the database's last transfer. REQUIRES: the workspace
  // is locked, so that no other sstferry can replace the record meanwhile.
  [[nodiscard]] rocksdb::Status TakeRecord(FoundTarget* found);
  // Checks that Look() has examined the database that is in the directory now.
  //   kBusy  another process has exchanged the database, or has recorded a
  //          transfer or a fault
  [[nodiscard]] rocksdb::Status CheckSame() const;
  // Checks that this refresh repairs the recorded fault of the replica, if
  // there is one. Adds a note about the fault.
  //   kCorrupt  this refresh does not repair the fault
  [[nodiscard]] rocksdb::Status CheckFault();
  // Opens the database for writing. Before this call, a database that this
  // process opened is open only for reading.
  [[nodiscard]] rocksdb::Status OpenToWrite();
  // Lists the tables, and searches them for a SingleDelete. If the database is
  // open for writing, flushes the memtables first.
  [[nodiscard]] rocksdb::Status List();
  // Raises the last sequence number of the database if it is 0.
  [[nodiscard]] rocksdb::Status LeaveZero();
  // Searches the listed tables and the WALs for a SingleDelete.
  //   kRefused  the target's application uses SingleDelete
  //   kBusy     compactions of the application removed tables again and again
  //             before they were searched
  [[nodiscard]] rocksdb::Status CheckSingleDeletes() const;
  [[nodiscard]] rocksdb::Status HasSingleDelete(const std::string& family,
                                                const std::string& where) const;
  // Searches these tables of a family for a SingleDelete. Sets *gone to true if
  // a compaction removed a table before the table was searched.
  [[nodiscard]] rocksdb::Status SearchTables(
      const std::string& family, const std::vector<LiveTable>& tables,
      bool* gone) const;
  void NoteFilters();
  [[nodiscard]] rocksdb::Status CheckRecord();
  [[nodiscard]] rocksdb::Status CheckSource();
  // Sets *leaves to true if the refreshed families have keys outside of the
  // selected interval. This refresh leaves them as they are.
  [[nodiscard]] rocksdb::Status LeavesKeys(bool* leaves);
  // Returns the database's last sequence number. Returns a lower number if only
  // the ingestion of an interrupted refresh has used the numbers above it.
  uint64_t WrittenSequence() const;
  // Returns the database's last sequence number. Returns a lower number if this
  // refresh leaves families with entries as they are, and only writes to these
  // families have used the numbers above it.
  uint64_t ReplacedSequence() const;
  // These functions record that the ingestion begins, and that it has ended. If
  // this process dies in between, WrittenSequence() of a later run can tell the
  // ingestion from an application's writes.
  [[nodiscard]] rocksdb::Status RecordIngestionStart();
  [[nodiscard]] rocksdb::Status RecordIngestionEnd();
  [[nodiscard]] rocksdb::Status WriteSequences() const;
  // Checks that RocksDB can ingest chunks above the existing data of each
  // family.
  //   kRefused  it cannot
  [[nodiscard]] rocksdb::Status CheckSupported();
  [[nodiscard]] rocksdb::Status CreateFamilies();
  // Checks that source and target use the same comparator for the family.
  //   kIncompatible  the comparators differ
  [[nodiscard]] static rocksdb::Status CheckOrder(
      const Family& family, rocksdb::ColumnFamilyHandle* known);
  void NoteMissing();
  [[nodiscard]] rocksdb::Status WriteSummary(const Summary& summary);
  // Returns the database's id, and a digest of the listed tables. The digest
  // does not depend on the order of the tables.
  static JournalTargetFiles FilesOf(const std::vector<FamilyTables>& listed,
                                    rocksdb::DB* db);
  // Read the target's entries, or its first and last key, in a piece of a part.
  // Used for comparisons. Threads: any.
  [[nodiscard]] rocksdb::Status IndexPart(const Part& part,
                                          const KeyInterval& piece,
                                          EntryDigester* digester,
                                          EntrySums* sums, GroupIndex* index,
                                          std::optional<std::string>* rest);
  [[nodiscard]] rocksdb::Status FindOutermost(
      const Part& part, const KeyInterval& piece,
      std::optional<std::string>* first, std::optional<std::string>* last);
  // State of a database that changes when an application changes entries. The
  // sequence number alone would not suffice: ingestions, compaction filters and
  // deletions of files change entries without a new sequence number.
  struct Written {
    uint64_t sequence = 0;  // last sequence number
    // The tables of the planned families; not set if they cannot be listed.
    std::optional<JournalTargetFiles> files;
  };
  Written LookForWrites() const;
  // Remembers LookForWrites() before the first comparison reads the database.
  // Does nothing if no application has the database open. Threads: any.
  void BeginRead();
  // Sets the number of proven parts to 0 if the application may have changed
  // entries since BeginRead().
  void CheckUnwritten();
  // Returns the requested families that the database has.
  std::vector<FamilyHandle> Selected() const;

  const OpenReplica replica_;
  std::string dir_;
  const bool drops_missing_;
  std::unique_ptr<LiveDb> live_;
  bool writable_ = false;
  SelectionText held_;      // data in dir_ after this refresh
  bool holds_more_ = false;  // see LastTransfer::holds_more
  bool left_zero_ = false;  // this run raised the sequence from 0
  Ingestor* ingestor_ = nullptr;  // owned by the caller of MakeStore()
  LastTransfer last_;       // record before this refresh
  LastTransfer announced_;  // record during this refresh
  std::string database_id_;  // when examined; empty: unknown
  std::vector<FamilyTables> tables_;
  std::vector<BuiltFamily> built_;     // families of the plan, by index
  std::vector<FamilyHandle> planned_;  // handles, by the same index
  bool is_complete_ = false;
  std::mutex damage_mu_;
  bool damage_recorded_ = false;  // guarded by damage_mu_
  Summary last_summary_;
  std::map<int, uint64_t> levels_;
  uint64_t debt_bytes_ = 0;
  // State before the first read of a comparison. BeginRead() sets it.
  std::mutex first_read_mu_;
  std::optional<Written> first_read_;  // guarded by first_read_mu_
  ComparedEntries compared_;
  GroupComparer comparer_;
  std::atomic<uint64_t> read_bytes_{0};  // read for comparisons
  std::unique_ptr<IngestGate> gate_;
};

}  // namespace sstferry
