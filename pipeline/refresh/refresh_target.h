// A database that holds yesterday's data and is made current while it is read,
// all at once: Visibility::kAll.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "format/interval_file.h"
#include "pipeline/options/family_options.h"
#include "pipeline/pull/interval_records.h"
#include "pipeline/pull/ingest_gate.h"
#include "pipeline/pull/ingestor.h"
#include "pipeline/pull/pull_target.h"
#include "pipeline/refresh/compared_entries.h"
#include "pipeline/refresh/live_db.h"

namespace sstferry {

class RefreshTarget : public PullTarget {
 public:
  // Without a replica (its db is null) it opens options().target_dir itself.
  RefreshTarget(const PullContext* context, const OpenReplica& replica);
  ~RefreshTarget() override;

  const char* mode() const override { return kRefreshAllMode; }
  std::vector<std::string> Directories() const override {
    return TargetDirectories(options(), replica_.db);
  }
  [[nodiscard]] rocksdb::Status OpenWorkspace(
      std::unique_ptr<Workspace>* workspace) override;
  [[nodiscard]] rocksdb::Status Inspect() override;
  bool HasEnded(const JournalTransfer& head) const override {
    return remembers_ && record_.transfer_id == head.transfer_id;
  }
  [[nodiscard]] rocksdb::Status CheckAsLeft(const JournalState& journal,
                                            bool* as_left) override;
  void Describe(ReplicaRecord* replica) const override {
    *replica = told_;
  }
  [[nodiscard]] rocksdb::Status BuildFamilies() override;
  [[nodiscard]] rocksdb::Status Create() override;
  [[nodiscard]] rocksdb::Status Reopen() override;
  [[nodiscard]] rocksdb::Status FindReceived(const JournalState& journal,
                                         ReceivedChunks* received) override;
  [[nodiscard]] rocksdb::Status ClearStaging(
      const ReceivedChunks& received) override;
  void Drop() override {}
  std::string dir() const override { return dir_; }
  [[nodiscard]] rocksdb::Status Begin() override;
  [[nodiscard]] rocksdb::Status Finish() override;
  [[nodiscard]] rocksdb::Status Distrust(
      const rocksdb::Status& difference) override;
  [[nodiscard]] rocksdb::Status Close(JournalFile* journal) override;
  [[nodiscard]] rocksdb::Status Record(const Summary& summary) override;
  [[nodiscard]] rocksdb::Status Publish() override {
    return rocksdb::Status::OK();  // its name is what it was
  }
  [[nodiscard]] rocksdb::Status Settle() override;
  void FillSummary(Summary* summary) const override;
  [[nodiscard]] rocksdb::Status DigestPart(const Part& part,
                                            DigestReply* reply) override;
  [[nodiscard]] rocksdb::Status IndexPart(
      const Part& part, const KeyInterval& piece, GroupIndex* index,
      std::optional<std::string>* rest) override;
  [[nodiscard]] rocksdb::Status FindOutermost(
      const Part& part, const KeyInterval& piece,
      std::optional<std::string>* first,
      std::optional<std::string>* last) override;

 protected:
  std::unique_ptr<ChunkStore> MakeStore(JournalFile* journal) override;

 private:
  // kCorrupt: a fault is known that this refresh does not mend. Makes it
  // compare everything if it mends one.
  [[nodiscard]] rocksdb::Status CheckFault();
  // Records damage of the replica's own files, of which `status` tells, and
  // adds the command that mends it. Any thread.
  rocksdb::Status Own(const rocksdb::Status& status);
  [[nodiscard]] rocksdb::Status OpenAndJudge();
  // Opens for writing a directory that was open for reading until the refresh
  // was accepted.
  [[nodiscard]] rocksdb::Status OpenToWrite();
  // By these records. Memtables are flushed before, where that may be.
  [[nodiscard]] rocksdb::Status Judge(
      const IntervalFile& record, JudgedTarget* judged, ReplicaRecord* replica);
  // Raises the last sequence of a database that stands at 0.
  [[nodiscard]] rocksdb::Status LeaveZero();
  // Searches what nobody has searched yet. kRefused: the target's application
  // uses SingleDelete.
  [[nodiscard]] rocksdb::Status CheckSingleDeletes(JudgedTarget* judged) const;
  void NoteFilters();
  [[nodiscard]] rocksdb::Status ReadRecord();
  [[nodiscard]] rocksdb::Status CheckSource();
  // kRefused: RocksDB cannot ingest chunks over what is there.
  [[nodiscard]] rocksdb::Status CheckSupported();
  [[nodiscard]] rocksdb::Status CreateFamilies();
  [[nodiscard]] rocksdb::Status CheckKnown(const Family& family,
                                           const BuiltFamily& built,
                                           rocksdb::ColumnFamilyHandle* known);
  [[nodiscard]] rocksdb::Status DropMissing();
  // Families here that the source does not have.
  std::vector<std::string> Missing() const;
  void NoteMissing();
  void TakeLevels();
  // Returns true if nobody else can write, and nothing drops entries: see
  // RecordIntervals().
  bool is_alone() const;
  [[nodiscard]] rocksdb::Status WriteSummary(const Summary& summary);
  // Lists the files of what was judged, in whatever order.
  static JournalTargetFiles FilesOf(const JudgedTarget& judged,
                                    rocksdb::DB* db);
  // Returns all families, or those that were asked for.
  std::vector<FamilyHandle> Selected() const;

  const OpenReplica replica_;
  const std::string dir_;
  std::unique_ptr<LiveDb> live_;
  bool writable_ = false;
  bool left_zero_ = false;  // this run raised the last sequence
  JournalFile* journal_ = nullptr;
  Ingestor* ingestor_ = nullptr;  // the store
  bool remembers_ = false;  // record_ was there
  IntervalFile record_;        // of the last transfer
  IntervalFile intervals_;        // of this one
  JudgedTarget judged_;     // what was there when this run began
  ReplicaRecord told_;
  std::vector<BuiltFamily> built_;     // of the plan, by index
  std::vector<FamilyHandle> planned_;  // the same
  bool resumes_ = false;  // the journal was begun by an earlier run
  bool is_complete_ = false;
  std::mutex damage_mu_;
  bool damage_recorded_ = false;  // under damage_mu_
  Summary last_summary_;
  std::map<int, uint64_t> levels_;
  uint64_t debt_bytes_ = 0;
  ComparedEntries compared_;
  std::atomic<uint64_t> read_bytes_{0};  // to compare
  std::unique_ptr<IngestGate> gate_;
};

}  // namespace sstferry
