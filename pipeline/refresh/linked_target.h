// The target of a swap that sends only changes, for a replica that was made of
// chunks. Links the files of TARGET_DIR into db/ (pull/linked_copy.h), and
// refreshes this copy as a refresh in place would refresh TARGET_DIR. Then
// exchanges the two directories. Only reads TARGET_DIR.
//
// The new directory has the same contents as one that is built from scratch:
// families and entries that the source does not have are missing, and OPTIONS
// are the source's. If this target fails, it gives way
// (PullTarget::gives_way()): the operation then builds a new database instead.
#pragma once

#include <memory>
#include <string>

#include "pipeline/disk/deferred_sync.h"
#include "pipeline/pull/linked_copy.h"
#include "pipeline/refresh/refresh_target.h"

namespace sstferry {

class LinkedTarget : public RefreshTarget {
 public:
  explicit LinkedTarget(const TargetInputs& inputs);

  // For a plan, examines TARGET_DIR itself, because a plan makes no copy.
  [[nodiscard]] rocksdb::Status ReadExisting(
      WorkspaceUse use, const std::shared_ptr<rocksdb::FileSystem>& disk,
      FoundTarget* found) override;
  bool IsAsLeft(const JournalState& journal) const override;
  [[nodiscard]] rocksdb::Status TakeCopy(FoundTarget* found) override;
  bool keeps_copy() const override { return true; }
  void OnDisagreement() override { GiveWay(); }
  [[nodiscard]] rocksdb::Status BuildFamilies() override;
  [[nodiscard]] rocksdb::Status Reopen(
      const std::shared_ptr<rocksdb::FileSystem>& file_system,
      const JournalState& unfinished, ReceivedChunks* received) override;
  bool HeldTheSame() const override;
  [[nodiscard]] rocksdb::Status Close(JournalFile* journal) override;
  [[nodiscard]] rocksdb::Status Record(const Summary& summary) override;
  void FillSummary(Summary* summary) const override;
  // Closes the copy, because its workspace is about to be unlocked or emptied.
  void CloseDatabase() override { ForgetLive(); }

 protected:
  bool uses_old_files() const override { return true; }
  std::string origin() const override { return " " + origin_; }
  rocksdb::Status Own(const rocksdb::Status& status) override;

 private:
  // Gives way if `status` is an error that a swap without links may avoid.
  rocksdb::Status GiveWayAt(const rocksdb::Status& status);
  [[nodiscard]] rocksdb::Status CheckWhole() const;
  // Refuses a copy with prepared transactions, which a clone may contain. The
  // source may have committed or rolled them back since, and a delta cannot do
  // so.
  [[nodiscard]] rocksdb::Status CheckNothingPrepared() const;
  [[nodiscard]] rocksdb::Status Look(FoundTarget* found);
  // Checks that the source's options can be used with the tables of the copy.
  [[nodiscard]] rocksdb::Status CheckShapes() const;
  [[nodiscard]] rocksdb::Status FinishDatabase(JournalFile* journal);

  std::shared_ptr<SyncBatch> last_files_;
  LinkedCopy copy_;
  std::string origin_;  // OriginOfLinks() before files were linked
  std::string copied_state_;  // state of TARGET_DIR before this run copied it
  bool has_same_families_ = false;
};

}  // namespace sstferry
