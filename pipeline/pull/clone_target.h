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

// Makes a database that no RocksDB opens before it is complete: its operators
// and its release need not be known here.
class CloneTarget : public NewDirectoryTarget, public FileReuse {
 public:
  // `is_drill`: it is removed. A drill resumes nothing: it removes what another
  // one left that was killed, and refuses what a pull left (kRefused).
  explicit CloneTarget(const TargetInputs& inputs, bool is_drill = false);

  [[nodiscard]] rocksdb::Status ReadExisting(
      WorkspaceUse use, const std::shared_ptr<rocksdb::FileSystem>& disk,
      FoundTarget* found) override;
  [[nodiscard]] rocksdb::Status BuildFamilies() override;
  [[nodiscard]] rocksdb::Status FindReused(const JournalState* earlier,
                                           bool* verify,
                                           ReusedParts* reused) override;
  [[nodiscard]] rocksdb::Status RejectReused(
      const std::vector<uint32_t>& different, ReusedParts* reused) override;
  [[nodiscard]] rocksdb::Status Create(
      const std::shared_ptr<rocksdb::FileSystem>& file_system,
      std::optional<JournalTargetFiles>* held) override;
  // Leaves in staging/ MANIFEST, OPTIONS and IDENTITY, which stay there to the
  // end, and links, which stay until all has come.
  [[nodiscard]] rocksdb::Status Reopen(
      const std::shared_ptr<rocksdb::FileSystem>& file_system,
      const JournalState& unfinished, ReceivedChunks* received) override;
  std::unique_ptr<ChunkStore> MakeStore(JournalFile* journal) override;
  [[nodiscard]] rocksdb::Status Finish() override;
  // Writes CURRENT last: before it nothing opens the directory.
  [[nodiscard]] rocksdb::Status Record(const Summary& summary) override;
  void FillSummary(Summary* summary) const override;
  [[nodiscard]] rocksdb::Status DigestPart(const Part& part,
                                           DigestReply* reply) override;
  void CloseDatabase() override {}

 protected:
  [[nodiscard]] rocksdb::Status CloseFiles() override {
    return rocksdb::Status::OK();
  }
  // Writes the file in `dir` that says which MANIFEST counts, as the last one.
  // Here: CURRENT.
  [[nodiscard]] virtual rocksdb::Status NameManifest(const std::string& dir,
                                                     const Access& access);

 private:
  // Makes a layout in which no unit is counted.
  void MakeLayout();
  // Links files of a database that is there. A failure is a note. Sets *verify
  // if that database is known to be wrong.
  [[nodiscard]] rocksdb::Status LinkPresent(const std::string& directory,
                                            bool* verify);
  // Takes the files of the unfinished pull that started over.
  [[nodiscard]] rocksdb::Status TakeEarlier(const JournalState& earlier);
  // Lists the parts of the files that are reused now.
  ReusedParts ListReused() const;
  // Returns the directory whose files may be linked; empty: there is none.
  std::string PresentDirectory() const;
  // Returns true if that directory holds what the source holds, so that a swap
  // would change nothing but names.
  bool HoldsTheSame(const PresentFiles& present) const;
  // Returns the numbers of the files that the journal tells to have been
  // linked, and that are there.
  std::set<uint64_t> FindLinked(const JournalState& journal) const;
  bool IsReceived(const Part& part, const JournalChunk& chunk) const;
  // Finds which units of the journal have come.
  void FindReceived(const JournalState& journal, ReceivedChunks* received);
  // Names what Reopen() leaves in staging/.
  std::set<std::string> WaitingInStaging() const;
  [[nodiscard]] rocksdb::Status CheckFamilyNames() const;
  void FillIntervals();

  std::unique_ptr<CloneLayout> layout_;
  FinishedClone finished_;
  bool is_current_ = false;
};

}  // namespace sstferry
