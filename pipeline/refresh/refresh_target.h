// A database with older data that is made current while it is read, all at
// once: PullMode::kRefresh. (linked_target.h does this to a copy.)
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "format/interval_file.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/options/family_options.h"
#include "pipeline/pull/ingestor.h"
#include "pipeline/pull/pull_target.h"
#include "pipeline/refresh/compared_entries.h"
#include "pipeline/refresh/group_compare.h"
#include "pipeline/refresh/ingest_gate.h"
#include "pipeline/refresh/interval_records.h"
#include "pipeline/refresh/live_db.h"

namespace sstferry {

class RefreshTarget : public PullTarget, public InPlaceTarget {
 public:
  // Without a replica (its db is null) it opens options().target_dir itself.
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
  [[nodiscard]] rocksdb::Status CompactAndClose() override;
  void FillSummary(Summary* summary) const override;
  [[nodiscard]] rocksdb::Status DigestPart(const Part& part,
                                           DigestReply* reply) override;
  PartComparer* comparer() override { return &comparer_; }
  // Leaves it open: the database stays in place, and is closed with this
  // object.
  void CloseDatabase() override {}

 protected:
  // Works in `dir`, and is not an InPlaceTarget. `drops_missing`: drops
  // families that the source does not have.
  RefreshTarget(const TargetInputs& inputs, const char* mode,
                const OpenReplica& replica, std::string dir,
                bool drops_missing);
  // Opens the database for reading, judges it, and fills in the description for
  // the source.
  [[nodiscard]] rocksdb::Status OpenAndJudge();
  // Records damage of the replica's own files, if `status` reports some, and
  // adds the command that repairs it. May be called from any thread.
  virtual rocksdb::Status Own(const rocksdb::Status& status);
  [[nodiscard]] rocksdb::Status DropMissing();
  // Returns the names of families here that the source does not have.
  std::vector<std::string> Missing() const;
  // Writes the records for the next refresh.
  [[nodiscard]] rocksdb::Status WriteRecords();
  // Compacts some of the deltas, and records the tables again. *damage: a file
  // turned out to be damaged.
  [[nodiscard]] rocksdb::Status Compact(rocksdb::Status* damage);
  void TakeLevels();
  void FillLevels(Summary* summary) const;

  // Returns true if no other process can write, and nothing drops entries: see
  // RecordIntervals().
  bool is_alone() const;

  const std::string& dir() const { return dir_; }
  // Sets the database that OpenAndJudge() opens next.
  void set_dir(std::string dir) { dir_ = std::move(dir); }
  // Returns null before OpenAndJudge().
  LiveDb* live() const { return live_.get(); }
  // Closes the database as after a failure; OpenAndJudge() may open it again.
  void ForgetLive();
  const ReplicaRecord& told() const { return told_; }
  const JudgedTarget& judged() const { return judged_; }
  // Returns the record of the last transfer.
  const IntervalFile& record() const { return record_; }
  // Returns the record of this transfer, after Finish().
  const IntervalFile& new_record() const { return intervals_; }
  // Returns the options with which families of the plan would be built, by
  // index.
  const std::vector<BuiltFamily>& built() const { return built_; }
  uint64_t read_bytes() const { return read_bytes_; }

 private:
  // Examines the database beside the open workspace.
  [[nodiscard]] rocksdb::Status Look(FoundTarget* found);
  // Sets *compares_all if this refresh repairs a known fault.
  //   kCorrupt  there is a known fault that it does not repair
  [[nodiscard]] rocksdb::Status CheckFault(bool* compares_all);
  // Opens for writing a directory that was open for reading until the refresh
  // was accepted.
  [[nodiscard]] rocksdb::Status OpenToWrite();
  // Judges the database by these records. Flushes memtables before, if allowed.
  [[nodiscard]] rocksdb::Status Judge(
      const IntervalFile& record, JudgedTarget* judged, ReplicaRecord* replica);
  // Raises the last sequence of a database that is at 0.
  [[nodiscard]] rocksdb::Status LeaveZero();
  // Searches the tables that were not searched before.
  //   kRefused  the target's application uses SingleDelete
  //   kBusy     compactions of an application kept removing tables
  [[nodiscard]] rocksdb::Status CheckSingleDeletes(JudgedTarget* judged) const;
  // Searches these tables of a family. *gone: a compaction removed one before
  // it was searched.
  [[nodiscard]] rocksdb::Status SearchTables(const std::string& family,
                                             std::vector<LiveTable>* tables,
                                             bool* gone) const;
  void NoteFilters();
  [[nodiscard]] rocksdb::Status ReadRecord();
  [[nodiscard]] rocksdb::Status CheckSource();
  // Checks that RocksDB can ingest chunks over the present data; else kRefused.
  [[nodiscard]] rocksdb::Status CheckSupported();
  [[nodiscard]] rocksdb::Status CreateFamilies();
  [[nodiscard]] rocksdb::Status CheckKnown(const Family& family,
                                           const BuiltFamily& built,
                                           rocksdb::ColumnFamilyHandle* known);
  void NoteMissing();
  [[nodiscard]] rocksdb::Status WriteSummary(const Summary& summary);
  // Lists the files of the judged tables, in any order.
  static JournalTargetFiles FilesOf(const JudgedTarget& judged,
                                    rocksdb::DB* db);
  // Read the database's entries of a piece of a part, to compare it. May be
  // called from any thread.
  [[nodiscard]] rocksdb::Status IndexPart(const Part& part,
                                          const KeyInterval& piece,
                                          EntryDigester* digester,
                                          EntrySums* sums, GroupIndex* index,
                                          std::optional<std::string>* rest);
  [[nodiscard]] rocksdb::Status FindOutermost(
      const Part& part, const KeyInterval& piece,
      std::optional<std::string>* first, std::optional<std::string>* last);
  // Stores the last sequence before the first read. May be called from any
  // thread.
  void BeginRead();
  // Withdraws the proof of all parts if another process wrote since then.
  void CheckUnwritten();
  // Returns all families, or the requested ones.
  std::vector<FamilyHandle> Selected() const;

  const OpenReplica replica_;
  std::string dir_;
  const bool drops_missing_;
  std::unique_ptr<LiveDb> live_;
  bool writable_ = false;
  SelectionText held_;      // part of the source held after this refresh
  bool left_zero_ = false;  // this run raised the last sequence
  Ingestor* ingestor_ = nullptr;  // the store
  bool remembers_ = false;  // record_ was found
  IntervalFile record_;        // of the last transfer
  IntervalFile intervals_;        // of this one
  JudgedTarget judged_;     // the database when this run began
  ReplicaRecord told_;      // description sent to the source
  std::vector<BuiltFamily> built_;     // of the plan, by index
  std::vector<FamilyHandle> planned_;  // by the same index
  bool is_complete_ = false;
  std::mutex damage_mu_;
  bool damage_recorded_ = false;  // guarded by damage_mu_
  Summary last_summary_;
  std::map<int, uint64_t> levels_;
  uint64_t debt_bytes_ = 0;
  // The last sequence before the first compared entry was read; not set:
  // nothing was read.
  std::mutex first_read_mu_;
  std::optional<uint64_t> first_read_;  // guarded by first_read_mu_
  ComparedEntries compared_;
  GroupComparer comparer_;
  std::atomic<uint64_t> read_bytes_{0};  // for comparisons
  std::unique_ptr<IngestGate> gate_;
};

}  // namespace sstferry
