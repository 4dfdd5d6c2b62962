// A database that holds yesterday's data and is made current while it is read,
// all at once: PullMode::kRefresh. (linked_target.h does it to a copy.)
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
  // Leaves it open: it stays where it is, and is closed with this object.
  void CloseDatabase() override {}

 protected:
  // Works in `dir`, and is no InPlaceTarget. `drops_missing`: drops the
  // families there that the source does not have.
  RefreshTarget(const TargetInputs& inputs, const char* mode,
                const OpenReplica& replica, std::string dir,
                bool drops_missing);
  // Opens the database for reading, judges it and fills in what the source is
  // told.
  [[nodiscard]] rocksdb::Status OpenAndJudge();
  // Records damage of the replica's own files, of which `status` tells, and
  // adds the command that mends it. Any thread.
  virtual rocksdb::Status Own(const rocksdb::Status& status);
  [[nodiscard]] rocksdb::Status DropMissing();
  // Returns the names of families here that the source does not have.
  std::vector<std::string> Missing() const;
  // Writes what the next refresh is to believe.
  [[nodiscard]] rocksdb::Status WriteRecords();
  // Compacts a part of what deltas left, and records the tables again. *damage:
  // a file turned out to be damaged.
  [[nodiscard]] rocksdb::Status Compact(rocksdb::Status* damage);
  void TakeLevels();
  void FillLevels(Summary* summary) const;

  // Returns true if nobody else can write, and nothing drops entries: see
  // RecordIntervals().
  bool is_alone() const;

  const std::string& dir() const { return dir_; }
  // Sets which database OpenAndJudge() opens next.
  void set_dir(std::string dir) { dir_ = std::move(dir); }
  // Returns null before OpenAndJudge().
  LiveDb* live() const { return live_.get(); }
  // Closes the database as after a failure; OpenAndJudge() may open it again.
  void ForgetLive();
  const ReplicaRecord& told() const { return told_; }
  const JudgedTarget& judged() const { return judged_; }
  // Returns the record of the last transfer.
  const IntervalFile& record() const { return record_; }
  // Returns that of this one, after Finish().
  const IntervalFile& new_record() const { return intervals_; }
  // Returns what families of the plan would be built with, by index.
  const std::vector<BuiltFamily>& built() const { return built_; }
  uint64_t read_bytes() const { return read_bytes_; }

 private:
  // Looks at the database beside the open workspace.
  [[nodiscard]] rocksdb::Status Look(FoundTarget* found);
  // Sets *compares_all if this refresh mends a known fault.
  //   kCorrupt  a fault is known that it does not mend
  [[nodiscard]] rocksdb::Status CheckFault(bool* compares_all);
  // Opens for writing a directory that was open for reading until the refresh
  // was accepted.
  [[nodiscard]] rocksdb::Status OpenToWrite();
  // Judges the database by these records. Flushes memtables before, where that
  // may be.
  [[nodiscard]] rocksdb::Status Judge(
      const IntervalFile& record, JudgedTarget* judged, ReplicaRecord* replica);
  // Raises the last sequence of a database that stands at 0.
  [[nodiscard]] rocksdb::Status LeaveZero();
  // Searches what nobody has searched yet.
  //   kRefused  the target's application uses SingleDelete
  //   kBusy     compactions of an application took tables away again and again
  [[nodiscard]] rocksdb::Status CheckSingleDeletes(JudgedTarget* judged) const;
  // Searches these tables of a family. *gone: a compaction took one away before
  // it was searched.
  [[nodiscard]] rocksdb::Status SearchTables(const std::string& family,
                                             std::vector<LiveTable>* tables,
                                             bool* gone) const;
  void NoteFilters();
  [[nodiscard]] rocksdb::Status ReadRecord();
  [[nodiscard]] rocksdb::Status CheckSource();
  // Checks that RocksDB can ingest chunks over what is there; else kRefused.
  [[nodiscard]] rocksdb::Status CheckSupported();
  [[nodiscard]] rocksdb::Status CreateFamilies();
  [[nodiscard]] rocksdb::Status CheckKnown(const Family& family,
                                           const BuiltFamily& built,
                                           rocksdb::ColumnFamilyHandle* known);
  void NoteMissing();
  [[nodiscard]] rocksdb::Status WriteSummary(const Summary& summary);
  // Lists the files of what was judged, in whatever order.
  static JournalTargetFiles FilesOf(const JudgedTarget& judged,
                                    rocksdb::DB* db);
  // Read what the database has of a piece of a part, to compare it. Any thread.
  [[nodiscard]] rocksdb::Status IndexPart(const Part& part,
                                          const KeyInterval& piece,
                                          EntryDigester* digester,
                                          EntrySums* sums, GroupIndex* index,
                                          std::optional<std::string>* rest);
  [[nodiscard]] rocksdb::Status FindOutermost(
      const Part& part, const KeyInterval& piece,
      std::optional<std::string>* first, std::optional<std::string>* last);
  // Remembers what was written before the first read. Any thread.
  void BeginRead();
  // Takes the proof of all parts back if somebody wrote since then.
  void CheckUnwritten();
  // Returns all families, or those that were asked for.
  std::vector<FamilyHandle> Selected() const;

  const OpenReplica replica_;
  std::string dir_;
  const bool drops_missing_;
  std::unique_ptr<LiveDb> live_;
  bool writable_ = false;
  SelectionText held_;      // of the source, after this refresh
  bool left_zero_ = false;  // this run raised the last sequence
  Ingestor* ingestor_ = nullptr;  // the store
  bool remembers_ = false;  // record_ was there
  IntervalFile record_;        // of the last transfer
  IntervalFile intervals_;        // of this one
  JudgedTarget judged_;     // what was there when this run began
  ReplicaRecord told_;      // to the source
  std::vector<BuiltFamily> built_;     // of the plan, by index
  std::vector<FamilyHandle> planned_;  // the same
  bool is_complete_ = false;
  std::mutex damage_mu_;
  bool damage_recorded_ = false;  // under damage_mu_
  Summary last_summary_;
  std::map<int, uint64_t> levels_;
  uint64_t debt_bytes_ = 0;
  // The last sequence before the first read of what is compared; not set:
  // nothing was read.
  std::mutex first_read_mu_;
  std::optional<uint64_t> first_read_;  // under first_read_mu_
  ComparedEntries compared_;
  GroupComparer comparer_;
  std::atomic<uint64_t> read_bytes_{0};  // to compare
  std::unique_ptr<IngestGate> gate_;
};

}  // namespace sstferry
