// A new database, built in the workspace and renamed to TARGET_DIR at the end.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "format/record/cover_file.h"
#include "pipeline/target/database/target_db.h"
#include "pipeline/target/pull/pull_target.h"

namespace sstferry {

class SeedTarget : public PullTarget {
 public:
  using PullTarget::PullTarget;

  const char* mode() const override {
    return IsSwap(options()) ? kRefreshSwapMode : kSeedMode;
  }
  [[nodiscard]] rocksdb::Status OpenWorkspace(
      std::unique_ptr<Workspace>* workspace) override;
  [[nodiscard]] rocksdb::Status Inspect() override;
  bool HasEnded(const JournalTransfer&) const override { return false; }
  [[nodiscard]] rocksdb::Status CheckAsLeft(const JournalState&,
                                            bool* as_left) override {
    *as_left = true;  // nobody knows of the database that it makes
    return rocksdb::Status::OK();
  }
  void Describe(TargetMemory*) const override {}
  [[nodiscard]] rocksdb::Status BuildFamilies() override;
  [[nodiscard]] rocksdb::Status Create() override;
  [[nodiscard]] rocksdb::Status Reopen() override;
  [[nodiscard]] rocksdb::Status FindHeld(const JournalState& journal,
                                         HeldChunks* held) override;
  [[nodiscard]] rocksdb::Status ClearStaging(const HeldChunks&) override {
    return context().workspace->ClearStaging();
  }
  void Drop() override { db_.reset(); }
  std::unique_ptr<Ingestor> MakeIngestor(JournalFile* journal) override;
  [[nodiscard]] rocksdb::Status Begin() override;
  [[nodiscard]] rocksdb::Status Finish(Ingestor* ingestor) override;
  // Nothing of it was published.
  [[nodiscard]] rocksdb::Status Distrust(const std::vector<bool>&) override {
    return rocksdb::Status::OK();
  }
  [[nodiscard]] rocksdb::Status Close(JournalFile* journal) override;
  [[nodiscard]] rocksdb::Status Record(const Summary& summary) override;
  [[nodiscard]] rocksdb::Status Publish() override;
  [[nodiscard]] rocksdb::Status Settle() override;
  void Leave(const Summary&) override {}
  void FillSummary(Summary* summary) const override;
  rocksdb::DB* db() const override { return db_->db(); }
  rocksdb::ColumnFamilyHandle* handle(size_t family) const override {
    return db_->handle(family);
  }

 private:
  [[nodiscard]] rocksdb::Status CheckFileCount() const;

  rocksdb::DBOptions database_options_;
  std::vector<BuiltFamily> built_;
  std::vector<std::string> names_;
  std::unique_ptr<TargetDb> db_;
  std::map<int, uint64_t> levels_;
  CoverFile covers_;
  std::string replaced_;
};

}  // namespace sstferry
