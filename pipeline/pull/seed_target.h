// Builds a new database from chunks: for a seed, or for a refresh that replaces
// the directory.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/pull/new_directory_target.h"
#include "pipeline/pull/target_db.h"

namespace sstferry {

// A new database that is built from chunks.
class SeedTarget : public NewDirectoryTarget {
 public:
  explicit SeedTarget(const TargetInputs& inputs)
      : NewDirectoryTarget(inputs, kIngestMode) {}

  [[nodiscard]] rocksdb::Status BuildFamilies() override;
  [[nodiscard]] rocksdb::Status Create(
      const std::shared_ptr<rocksdb::FileSystem>& file_system,
      std::optional<JournalTargetFiles>* held) override;
  [[nodiscard]] rocksdb::Status Reopen(
      const std::shared_ptr<rocksdb::FileSystem>& file_system,
      const JournalState& unfinished, ReceivedChunks* received) override;
  std::unique_ptr<ChunkStore> MakeStore(JournalFile* journal) override;
  [[nodiscard]] rocksdb::Status Finish() override;
  void FillSummary(Summary* summary) const override;
  [[nodiscard]] rocksdb::Status DigestPart(const Part& part,
                                           DigestReply* reply) override;
  void CloseDatabase() override { db_.reset(); }

 protected:
  [[nodiscard]] rocksdb::Status CloseFiles() override;

 private:
  [[nodiscard]] rocksdb::Status CheckFileCount() const;
  // Sets the options with which this pull opens the new database, and the
  // options that its application will use.
  [[nodiscard]] rocksdb::Status SetDatabaseOptions();

  TargetDbOptions database_options_;
  std::vector<BuiltFamily> built_;
  std::vector<std::string> names_;
  std::unique_ptr<TargetDb> db_;
  std::map<int, uint64_t> levels_;
};

}  // namespace sstferry
