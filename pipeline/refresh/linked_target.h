// The target of a swap that receives only changes. A swap replaces TARGET_DIR
// by a new directory. This target fills the new directory with hard links to
// the files of TARGET_DIR (a copy: see pull/linked_copy.h). It then refreshes
// the copy like a refresh in place. Finally it exchanges the two directories.
// It writes nothing to TARGET_DIR. A pull uses this target for a replica that
// was made of chunks.
//
// The copy gets the same contents as a directory that is built from scratch. It
// has only the families and entries that the source has, and the source's
// OPTIONS. If this target fails, it gives way (PullTarget::gives_way()): the
// pull then builds a new database without links.
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

  // Examines the copy that an earlier run left. If only a plan is requested,
  // examines TARGET_DIR itself, because no copy is made for a plan.
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
  // Closes the copy, because the caller will unlock or empty the workspace, the
  // directory in which the copy is.
  void CloseDatabase() override { ForgetLive(); }

 protected:
  bool uses_old_files() const override { return true; }
  std::string origin() const override { return " " + origin_; }
  rocksdb::Status Own(const rocksdb::Status& status) override;

 private:
  // Gives way (the pull then builds a new database without links) if that may
  // avoid the error `status`. Returns `status`.
  rocksdb::Status GiveWayAt(const rocksdb::Status& status);
  [[nodiscard]] rocksdb::Status CheckWhole() const;
  // Refuses a copy with prepared transactions. A clone may contain them. The
  // source may have committed or rolled them back since it was cloned. A delta
  // can do neither.
  [[nodiscard]] rocksdb::Status CheckNothingPrepared() const;
  [[nodiscard]] rocksdb::Status Look(FoundTarget* found);
  // Checks that the source's options fit the tables of the copy.
  [[nodiscard]] rocksdb::Status CheckShapes() const;
  [[nodiscard]] rocksdb::Status FinishDatabase(JournalFile* journal);

  std::shared_ptr<SyncBatch> last_files_;
  LinkedCopy copy_;
  std::string origin_;  // OriginOfLinks() before files were linked
  std::string copied_state_;  // WrittenState() before it was copied
  bool has_same_families_ = false;
};

}  // namespace sstferry
