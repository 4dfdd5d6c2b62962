// The target of a swap that sends only changes, for a replica that was
// ingested: links the files of TARGET_DIR into db/ (pull/linked_copy.h),
// refreshes this copy as a refresh in place would refresh TARGET_DIR, and
// exchanges the two directories. Only reads TARGET_DIR.
//
// The new directory has the same contents as one that is built from scratch:
// families and entries that the source does not have are gone, and OPTIONS are
// the source's. If this way fails, the target gives way
// (PullTarget::gives_way()), and the operation builds a new database.
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

  // For a plan, examines TARGET_DIR itself: there is no copy.
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
  // Closes the copy: it is in the workspace, which is about to be unlocked or
  // emptied.
  void CloseDatabase() override { ForgetLive(); }

 protected:
  rocksdb::Status Own(const rocksdb::Status& status) override;

 private:
  // Gives way if `status` is an error that a swap without links may avoid.
  rocksdb::Status GiveWayAt(const rocksdb::Status& status);
  [[nodiscard]] rocksdb::Status CheckWhole() const;
  // Refuses prepared transactions (a clone has them): the source may have ended
  // them, and a delta cannot end them.
  [[nodiscard]] rocksdb::Status CheckNothingPrepared() const;
  [[nodiscard]] rocksdb::Status Look(FoundTarget* found);
  // Checks that the source's options can be used with the tables of the copy.
  [[nodiscard]] rocksdb::Status CheckShapes() const;
  [[nodiscard]] rocksdb::Status FinishDatabase(JournalFile* journal);

  std::shared_ptr<SyncBatch> last_files_;
  LinkedCopy copy_;
  std::string copied_state_;  // state of TARGET_DIR before this run copied it
  bool has_same_families_ = false;
};

}  // namespace sstferry
