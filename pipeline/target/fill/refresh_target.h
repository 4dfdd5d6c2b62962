// A database that holds yesterday's data and is made current while it is read:
// Visibility::kAll and kChunk.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "format/record/cover_file.h"
#include "pipeline/options/family_options.h"
#include "pipeline/target/database/call_thread.h"
#include "pipeline/target/database/ingest_gate.h"
#include "pipeline/target/database/ingestor.h"
#include "pipeline/target/database/live_db.h"
#include "pipeline/target/fill/compared_entries.h"
#include "pipeline/target/memory/cover_record.h"
#include "pipeline/target/pull/pull_target.h"

namespace sstferry {

class RefreshTarget : public PullTarget {
 public:
  // Without a replica (its db is null) it opens options().target_dir itself.
  RefreshTarget(const PullContext* context, const OpenReplica& replica);
  ~RefreshTarget() override;

  const char* mode() const override;
  std::vector<std::string> Directories() const override {
    return TargetDirectories(options(), replica_.db);
  }
  [[nodiscard]] rocksdb::Status OpenWorkspace(
      std::unique_ptr<Workspace>* workspace) override;
  [[nodiscard]] rocksdb::Status Inspect() override;
  // A clone remembers its source, but no intervals: both sides compare it.
  // (Nor does a record that was begun anew, but that names no database.)
  CompareMode compare() const override {
    return remembers_ && record_.covers.empty() && !options().adopt &&
                   !record_.target_database_id.empty() &&
                   options().compare == CompareMode::kFiles
               ? CompareMode::kDigest
               : options().compare;
  }
  bool HasEnded(const JournalTransfer& head) const override;
  bool TakesPlaceOf(const JournalTransfer& head) const override {
    return head.mode == kRefreshListedMode;
  }
  [[nodiscard]] rocksdb::Status CheckAsLeft(const JournalState& journal,
                                            bool* as_left) override;
  void Describe(TargetMemory* memory) const override {
    *memory = memory_;
  }
  [[nodiscard]] rocksdb::Status BuildFamilies() override;
  [[nodiscard]] rocksdb::Status Create() override;
  [[nodiscard]] rocksdb::Status Reopen() override;
  [[nodiscard]] rocksdb::Status FindHeld(const JournalState& journal,
                                         HeldChunks* held) override;
  [[nodiscard]] rocksdb::Status ClearStaging(const HeldChunks& held) override;
  void Drop() override {}
  std::string dir() const override { return dir_; }
  [[nodiscard]] rocksdb::Status Begin() override;
  [[nodiscard]] rocksdb::Status Finish() override;
  [[nodiscard]] rocksdb::Status Distrust(
      const std::vector<bool>& equal) override;
  [[nodiscard]] rocksdb::Status Close(JournalFile* journal) override;
  [[nodiscard]] rocksdb::Status Record(const Summary& summary) override;
  [[nodiscard]] rocksdb::Status Publish() override {
    return rocksdb::Status::OK();  // its name is what it was
  }
  [[nodiscard]] rocksdb::Status Settle() override;
  void Leave(const Summary& summary) override;
  void FillSummary(Summary* summary) const override;
  [[nodiscard]] rocksdb::Status DigestRange(const Range& range,
                                            DigestReply* reply) override;
  [[nodiscard]] rocksdb::Status IndexRange(const Range& range,
                                           GroupIndex* index) override;

 protected:
  std::unique_ptr<ChunkStore> MakeStore(JournalFile* journal) override;

  // Whether what was judged can be refreshed as it is asked for.
  [[nodiscard]] virtual rocksdb::Status CheckJudged() {
    return rocksdb::Status::OK();
  }
  // Makes what the target will remember of this refresh. `journal` as in
  // RecordCovers().
  [[nodiscard]] virtual rocksdb::Status MakeRecord(const JournalState* journal,
                                                   CoverFile* covers);
  // Writes it durably, with what the source leaves.
  [[nodiscard]] virtual rocksdb::Status WriteRecord();
  [[nodiscard]] virtual rocksdb::Status WriteSummary(const Summary& summary);
  // Of the last transfer; none if it does not remember one.
  const CoverFile* record() const { return remembers_ ? &record_ : nullptr; }
  const JudgedTarget& judged() const { return judged_; }
  const CoverFile& covers() const { return covers_; }
  const std::vector<FamilyHandle>& planned() const { return planned_; }
  rocksdb::DB* db() const { return live_->db(); }

 private:
  enum class State { kUntouched, kMixed, kComplete };

  bool by_chunk() const {
    return options().visibility == Visibility::kChunk;
  }
  [[nodiscard]] rocksdb::Status OpenAndJudge();
  // Of a directory, which is opened to be read until the refresh is accepted.
  [[nodiscard]] rocksdb::Status OpenToWrite();
  // By these records. Memtables are flushed before, where that may be.
  [[nodiscard]] rocksdb::Status Judge(
      const CoverFile& record, JudgedTarget* judged, TargetMemory* memory);
  // Raises the last sequence of a database that stands at 0.
  [[nodiscard]] rocksdb::Status LeaveZero();
  void NoteFilters();
  [[nodiscard]] rocksdb::Status ReadRecord();
  [[nodiscard]] rocksdb::Status CheckSource();
  [[nodiscard]] rocksdb::Status CheckVersion();
  [[nodiscard]] rocksdb::Status RecordMixed();
  [[nodiscard]] rocksdb::Status CreateFamilies();
  [[nodiscard]] rocksdb::Status CheckKnown(const Family& family,
                                           const BuiltFamily& built,
                                           rocksdb::ColumnFamilyHandle* known);
  [[nodiscard]] rocksdb::Status DropMissing();
  // Families here that the source does not have.
  std::vector<std::string> Missing() const;
  void NoteMissing();
  void TakeLevels();
  // Whether nobody else can write, and nothing drops entries: see
  // RecordCovers().
  bool is_alone() const;
  // Of what was judged, in whatever order.
  static JournalTargetFiles FilesOf(const JudgedTarget& judged,
                                    rocksdb::DB* db);
  // Of all families, or those that were asked for.
  std::vector<FamilyHandle> Selected() const;

  const OpenReplica replica_;
  const std::string dir_;
  std::unique_ptr<LiveDb> live_;
  bool writable_ = false;
  bool left_zero_ = false;  // this run raised the last sequence
  JournalFile* journal_ = nullptr;
  Ingestor* ingestor_ = nullptr;  // the store
  bool remembers_ = false;  // record_ was there
  CoverFile record_;        // of the last transfer
  CoverFile covers_;        // of this one
  JudgedTarget judged_;     // what was there when this run began
  // The same when the journal was begun that this run resumes.
  JudgedTarget begun_with_;
  TargetMemory memory_;
  std::vector<BuiltFamily> built_;     // of the plan, by index
  std::vector<FamilyHandle> planned_;  // the same
  bool reopened_ = false;
  bool resumes_ = false;  // the journal was begun by an earlier run
  State state_ = State::kUntouched;
  Summary last_summary_;
  std::map<int, uint64_t> levels_;
  uint64_t debt_bytes_ = 0;
  ComparedEntries compared_;
  std::atomic<uint64_t> read_bytes_{0};  // to compare
  std::unique_ptr<IngestGate> gate_;
  std::unique_ptr<CallThread> ingests_;  // where lanes are not to
};

}  // namespace sstferry
