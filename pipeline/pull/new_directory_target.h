// A new directory, built in the workspace, that takes the name of TARGET_DIR at
// the end: by a rename, or by an exchange (exchange.h).
#pragma once

#include <memory>
#include <string>

#include "format/interval_file.h"
#include "pipeline/disk/deferred_sync.h"
#include "pipeline/pull/pull_target.h"

namespace sstferry {

// A target that fills a directory of its own and then publishes it. Subclasses
// decide what they build there, and from which chunks.
class NewDirectoryTarget : public PullTarget {
 public:
  using PullTarget::PullTarget;

  [[nodiscard]] rocksdb::Status OpenWorkspace(
      std::unique_ptr<Workspace>* workspace) override;
  [[nodiscard]] rocksdb::Status Inspect() override {
    return rocksdb::Status::OK();
  }
  bool HasEnded(const JournalTransfer&) const override { return false; }
  [[nodiscard]] rocksdb::Status CheckAsLeft(const JournalState&,
                                            bool* as_left) override {
    *as_left = true;  // nobody knows of what it makes
    return rocksdb::Status::OK();
  }
  void Describe(ReplicaRecord*) const override {}
  [[nodiscard]] rocksdb::Status CheckSnapshot() override;
  [[nodiscard]] rocksdb::Status ClearStaging(const ReceivedChunks&) override {
    return context().workspace->ClearStaging();
  }
  [[nodiscard]] rocksdb::Status Begin() override {
    return rocksdb::Status::OK();
  }
  // Nothing of it was published.
  [[nodiscard]] rocksdb::Status Distrust(const rocksdb::Status&) override {
    return rocksdb::Status::OK();
  }
  [[nodiscard]] rocksdb::Status Close(JournalFile* journal) override;
  [[nodiscard]] rocksdb::Status Record(const Summary& summary) override;
  [[nodiscard]] rocksdb::Status Publish() override;
  [[nodiscard]] rocksdb::Status Settle() override {
    return rocksdb::Status::OK();
  }
  void FillSummary(Summary* summary) const override;

 protected:
  bool is_exchanged() const { return IsSwap(options()); }
  // Nothing in db/ is open any more when this returns.
  [[nodiscard]] virtual rocksdb::Status CloseFiles() = 0;
  // Returns what Record() writes down for the next refresh.
  IntervalFile* intervals() { return &intervals_; }
  // For what Record() makes durable, all of it at once.
  SyncBatch* last_files();

 private:
  std::shared_ptr<SyncBatch> last_files_;
  IntervalFile intervals_;
  std::string replaced_;
};

}  // namespace sstferry
