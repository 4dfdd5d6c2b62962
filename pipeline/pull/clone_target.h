// A new database that is made of the files of the source's snapshot.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "pipeline/pull/clone_finish.h"
#include "pipeline/pull/clone_layout.h"
#include "pipeline/pull/new_directory_target.h"
#include "pipeline/pull/present_files.h"

namespace sstferry {

// No RocksDB opens it: what it holds need not be known here.
class CloneTarget : public NewDirectoryTarget {
 public:
  using NewDirectoryTarget::NewDirectoryTarget;

  const char* mode() const override {
    return is_exchanged() ? kCloneSwapMode : kCloneMode;
  }
  std::vector<std::string> Directories() const override;
  [[nodiscard]] rocksdb::Status OpenWorkspace(
      std::unique_ptr<Workspace>* workspace) override;
  [[nodiscard]] rocksdb::Status BuildFamilies() override;
  [[nodiscard]] rocksdb::Status Reuse(std::vector<uint32_t>* parts) override;
  bool KeepsFiles() const override { return true; }
  std::vector<uint32_t> ReusedToCompare() const override;
  [[nodiscard]] rocksdb::Status RejectReused(
      const std::vector<uint32_t>& different,
      std::vector<uint32_t>* parts) override;
  bool is_current() const override { return is_current_; }
  [[nodiscard]] rocksdb::Status Keep(const Summary& summary) override;
  [[nodiscard]] rocksdb::Status Create() override;
  [[nodiscard]] rocksdb::Status Reopen() override { return MakeFiles(); }
  [[nodiscard]] rocksdb::Status FindReceived(const JournalState& journal,
                                         ReceivedChunks* received) override;
  // MANIFEST, OPTIONS and IDENTITY stay there to the end, links until all has
  // come.
  [[nodiscard]] rocksdb::Status ClearStaging(const ReceivedChunks&) override;
  void Drop() override {}
  // Records what does not come.
  [[nodiscard]] rocksdb::Status Begin() override;
  [[nodiscard]] rocksdb::Status Finish() override;
  // CURRENT comes last: before it nothing opens the directory.
  [[nodiscard]] rocksdb::Status Record(const Summary& summary) override;
  void FillSummary(Summary* summary) const override;
  [[nodiscard]] rocksdb::Status DigestPart(const Part& part,
                                            DigestReply* reply) override;

 protected:
  std::unique_ptr<ChunkStore> MakeStore(JournalFile* journal) override;
  [[nodiscard]] rocksdb::Status CloseFiles() override {
    return rocksdb::Status::OK();
  }

 private:
  // With no unit counted.
  void MakeLayout();
  [[nodiscard]] rocksdb::Status MakeFiles();
  // Links files of a database that is there. A failure is a note.
  [[nodiscard]] rocksdb::Status LinkPresent(const std::string& directory);
  // Takes those of an unfinished pull that started over.
  [[nodiscard]] rocksdb::Status TakeEarlier();
  // Whose files may be linked; empty: nothing's.
  std::string PresentDirectory() const;
  // Returns true if that directory holds what the source holds, so that a swap
  // would change nothing but names.
  bool HoldsTheSame(const PresentFiles& present) const;
  // Files that the journal tells to have been linked, and that are there.
  std::set<uint64_t> FindLinked(const JournalState& journal) const;
  bool IsReceived(const Part& part, const JournalChunk& chunk) const;
  [[nodiscard]] rocksdb::Status CheckFamilyNames() const;
  void FillIntervals();

  std::unique_ptr<CloneLayout> layout_;
  FinishedClone finished_;
  bool is_current_ = false;
};

}  // namespace sstferry
