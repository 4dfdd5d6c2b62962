// The target of a refresh in place (PullMode::kRefresh): a database that is
// made current in one step, while readers may use it. (linked_target.h
// refreshes a copy.)
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

// The tables of one column family when the target was examined.
struct FamilyTables {
  std::string name;
  bool is_unflushed = false;  // as in FamilyHandle
  std::vector<LiveTable> tables;
};

class RefreshTarget : public PullTarget, public InPlaceTarget {
 public:
  // Without a replica (its db is null), opens options().target_dir itself.
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
  // Leaves the database open: it stays in place, and the destructor closes it.
  void CloseDatabase() override {}

 protected:
  // For subclasses: works in `dir`, not as an InPlaceTarget. `drops_missing`:
  // drops families that the source does not have.
  RefreshTarget(const TargetInputs& inputs, const char* mode,
                const OpenReplica& replica, std::string dir,
                bool drops_missing);
  // Opens the database for reading, checks it, and lists its tables.
  [[nodiscard]] rocksdb::Status OpenAndList();
  // Returns the listed families that have entries, as many as fit into the
  // request.
  std::vector<std::string> FilledFamilies() const;
  // If `status` reports damage of the replica's own files, records it, and adds
  // the command that repairs it. May be called from any thread.
  virtual rocksdb::Status Own(const rocksdb::Status& status);
  [[nodiscard]] rocksdb::Status DropMissing();
  // Returns the names of the target's families that the source does not have.
  std::vector<std::string> Missing() const;
  // Compacts some of the deltas.
  //   kCorrupt  a file is damaged
  [[nodiscard]] rocksdb::Status Compact();
  void TakeLevels();
  // Makes last_sequence() at least that of the source.
  void RaiseKnownSequence();
  void FillLevels(Summary* summary) const;

  // Returns true if no other process can write, and no FIFO compaction drops
  // entries.
  bool is_alone() const;

  const std::string& dir() const { return dir_; }
  // Sets the database that OpenAndList() opens next.
  void set_dir(std::string dir) { dir_ = std::move(dir); }
  // Returns null before OpenAndList().
  LiveDb* live() const { return live_.get(); }
  // Closes the database, and ignores errors. OpenAndList() may open it again.
  void ForgetLive();
  // Returns what the journal records after the database's id.
  virtual std::string origin() const { return ""; }
  // Returns the requested families with their tables, as last listed.
  const std::vector<FamilyTables>& tables() const { return tables_; }
  // Returns the options with which families of the plan would be built, by
  // index.
  const std::vector<BuiltFamily>& built() const { return built_; }
  uint64_t read_bytes() const { return read_bytes_; }

 private:
  // Examines the database. REQUIRES: its workspace is open.
  [[nodiscard]] rocksdb::Status Look(FoundTarget* found);
  // Reads the record of the database. Does so under the workspace's lock, so
  // that no other sstferry can replace the record meanwhile.
  [[nodiscard]] rocksdb::Status TakeRecord(FoundTarget* found);
  // Compares the database in the directory with the one that Look() examined.
  //   kBusy  the database, its record or its known fault has changed
  [[nodiscard]] rocksdb::Status CheckSame() const;
  // Adds a note about a known fault that this refresh repairs.
  //   kCorrupt  this refresh does not repair the known fault
  [[nodiscard]] rocksdb::Status CheckFault();
  // Reopens the database for writing: a directory is open only for reading
  // until the refresh is accepted.
  [[nodiscard]] rocksdb::Status OpenToWrite();
  // Lists the tables, and searches them for a SingleDelete. Flushes memtables
  // first if the database is open for writing.
  [[nodiscard]] rocksdb::Status List();
  // Raises the last sequence number of the database if it is 0.
  [[nodiscard]] rocksdb::Status LeaveZero();
  // Searches the listed tables and the WALs for a SingleDelete.
  //   kRefused  the target's application uses SingleDelete
  //   kBusy     compactions of an application kept removing tables
  [[nodiscard]] rocksdb::Status CheckSingleDeletes() const;
  [[nodiscard]] rocksdb::Status HasSingleDelete(const std::string& family,
                                                const std::string& where) const;
  // Searches these tables of a family. Sets *gone if a compaction removed a
  // table before it was searched.
  [[nodiscard]] rocksdb::Status SearchTables(
      const std::string& family, const std::vector<LiveTable>& tables,
      bool* gone) const;
  void NoteFilters();
  [[nodiscard]] rocksdb::Status CheckRecord();
  [[nodiscard]] rocksdb::Status CheckSource();
  // Records the sequence number that the database may reach by the ingestion,
  // so that after a crash the ingestion does not look like writes of an
  // application.
  [[nodiscard]] rocksdb::Status AnnounceIngestion();
  // Checks that RocksDB can ingest chunks above the existing data; otherwise
  // returns kRefused.
  [[nodiscard]] rocksdb::Status CheckSupported();
  [[nodiscard]] rocksdb::Status CreateFamilies();
  // Compares the family's comparator with the source's.
  //   kIncompatible  they differ
  [[nodiscard]] static rocksdb::Status CheckOrder(
      const Family& family, rocksdb::ColumnFamilyHandle* known);
  void NoteMissing();
  [[nodiscard]] rocksdb::Status WriteSummary(const Summary& summary);
  // Returns the database's id, and a digest of the listed tables that does not
  // depend on their order.
  static JournalTargetFiles FilesOf(const std::vector<FamilyTables>& listed,
                                    rocksdb::DB* db);
  // Read the database's entries of a piece of a part, for its comparison. May
  // be called from any thread.
  [[nodiscard]] rocksdb::Status IndexPart(const Part& part,
                                          const KeyInterval& piece,
                                          EntryDigester* digester,
                                          EntrySums* sums, GroupIndex* index,
                                          std::optional<std::string>* rest);
  [[nodiscard]] rocksdb::Status FindOutermost(
      const Part& part, const KeyInterval& piece,
      std::optional<std::string>* first, std::optional<std::string>* last);
  // State by which changes of an application that has the database open are
  // noticed. Tables are compared, too, because ingestions, compaction filters
  // and deletions of files change entries without a new sequence number.
  struct Written {
    uint64_t sequence = 0;  // last sequence number
    // Tables of the planned families; not set: unknown.
    std::optional<JournalTargetFiles> files;
  };
  Written LookForWrites() const;
  // Stores LookForWrites() before the first read of a database that an
  // application has open. May be called from any thread.
  void BeginRead();
  // Resets the count of proven parts if the application may have changed
  // entries since BeginRead().
  void CheckUnwritten();
  // Returns all families, or only the requested families.
  std::vector<FamilyHandle> Selected() const;

  const OpenReplica replica_;
  std::string dir_;
  const bool drops_missing_;
  std::unique_ptr<LiveDb> live_;
  bool writable_ = false;
  SelectionText held_;      // selection in dir_ after this refresh
  bool holds_more_ = false;  // dir_ may then hold more
  bool left_zero_ = false;  // this run raised the last sequence
  Ingestor* ingestor_ = nullptr;  // made by MakeStore()
  LastTransfer last_;       // record in dir_ before this refresh
  std::string database_id_;  // of the examined database; empty: unknown
  std::vector<FamilyTables> tables_;
  std::vector<BuiltFamily> built_;     // families of the plan, by index
  std::vector<FamilyHandle> planned_;  // handles, by the same index
  bool is_complete_ = false;
  std::mutex damage_mu_;
  bool damage_recorded_ = false;  // guarded by damage_mu_
  Summary last_summary_;
  std::map<int, uint64_t> levels_;
  uint64_t debt_bytes_ = 0;
  // Set by BeginRead().
  std::mutex first_read_mu_;
  std::optional<Written> first_read_;  // guarded by first_read_mu_
  ComparedEntries compared_;
  GroupComparer comparer_;
  std::atomic<uint64_t> read_bytes_{0};  // for comparisons
  std::unique_ptr<IngestGate> gate_;
};

}  // namespace sstferry
