// A swap that sends only changes, for a replica that was ingested: the files of
// TARGET_DIR are linked into db/ (pull/linked_copy.h), this copy is refreshed
// as a refresh in place would refresh TARGET_DIR, and both are exchanged.
// TARGET_DIR is only read.
//
// The new directory equals one that is built from scratch: families that the
// source does not have are dropped, entries are deleted, OPTIONS are the
// source's. If that is impossible, the target gives way, and a new database is
// built.
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

  // A plan examines TARGET_DIR itself.
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
  // The copy is in the workspace, which is about to be unlocked or emptied.
  void CloseDatabase() override { ForgetLive(); }

 protected:
  rocksdb::Status Own(const rocksdb::Status& status) override;

 private:
  // Gives way if `status` is a failure of this method.
  rocksdb::Status GiveWayAt(const rocksdb::Status& status);
  [[nodiscard]] rocksdb::Status CheckWhole() const;
  // Refuses prepared transactions of a clone: the source may have ended them,
  // which no delta contains.
  [[nodiscard]] rocksdb::Status CheckNothingPrepared() const;
  [[nodiscard]] rocksdb::Status Look(FoundTarget* found);
  // Checks that tables of the old families can be tables of the new ones.
  [[nodiscard]] rocksdb::Status CheckShapes() const;
  [[nodiscard]] rocksdb::Status FinishDatabase(JournalFile* journal);

  std::shared_ptr<SyncBatch> last_files_;
  LinkedCopy copy_;
  std::string copied_state_;  // state of TARGET_DIR before this run copied it
  bool has_same_families_ = false;
};

}  // namespace sstferry
