// A new database that is made of the files of the source's snapshot.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pipeline/pull/clone_finish.h"
#include "pipeline/pull/clone_layout.h"
#include "pipeline/pull/new_directory_target.h"
#include "pipeline/pull/present_files.h"

namespace sstferry {

// Makes a database that RocksDB does not open before it is complete. So this
// process needs neither its operators nor its release of RocksDB.
class CloneTarget : public NewDirectoryTarget, public FileReuse {
 public:
  // `is_drill`: the database is removed at the end. A drill resumes nothing: it
  // removes the remains of a drill that was killed, and refuses those of a pull
  // (kRefused).
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
  // Leaves MANIFEST, OPTIONS and IDENTITY in staging/, where they stay to the
  // end, and links, which stay until all files have arrived.
  [[nodiscard]] rocksdb::Status Reopen(
      const std::shared_ptr<rocksdb::FileSystem>& file_system,
      const JournalState& unfinished, ReceivedChunks* received) override;
  std::unique_ptr<ChunkStore> MakeStore(JournalFile* journal) override;
  [[nodiscard]] rocksdb::Status Finish() override;
  // Writes CURRENT last: nothing can open the directory before that.
  [[nodiscard]] rocksdb::Status Record(const Summary& summary) override;
  void FillSummary(Summary* summary) const override;
  [[nodiscard]] rocksdb::Status DigestPart(const Part& part,
                                           DigestReply* reply) override;
  void CloseDatabase() override {}

 protected:
  [[nodiscard]] rocksdb::Status CloseFiles() override {
    return rocksdb::Status::OK();
  }
  // Writes the file in `dir` that names the current MANIFEST, after all other
  // files. Here: CURRENT.
  [[nodiscard]] virtual rocksdb::Status NameManifest(const std::string& dir,
                                                     const Access& access);

 private:
  // Makes a layout in which no unit is counted yet.
  void MakeLayout();
  // Links files of the database in `directory`. A failure is only noted. Sets
  // *verify if that database is known to be wrong.
  [[nodiscard]] rocksdb::Status LinkPresent(const std::string& directory,
                                            bool* verify);
  // Takes the files of an unfinished pull that was started over.
  [[nodiscard]] rocksdb::Status TakeEarlier(const JournalState& earlier);
  // Lists the parts of the files that are reused.
  ReusedParts ListReused() const;
  // Returns the directory whose files may be linked; empty if there is none.
  std::string PresentDirectory() const;
  // Returns true if that directory has the same contents as the source, so that
  // a swap would change only names.
  bool HoldsTheSame(const PresentFiles& present) const;
  // Returns the numbers of the files that the journal records as linked and
  // that are still there.
  std::set<uint64_t> FindLinked(const JournalState& journal) const;
  bool IsReceived(const Part& part, const JournalChunk& chunk) const;
  // Finds out which units of the journal have arrived.
  void FindReceived(const JournalState& journal, ReceivedChunks* received);
  // Returns the names of the files that Reopen() leaves in staging/.
  std::set<std::string> WaitingInStaging() const;
  // Returns the database id of the clone; nullopt: the source's.
  std::optional<std::string> ChooseNewId() const;
  [[nodiscard]] rocksdb::Status CheckFamilyNames() const;
  void FillIntervals();

  std::unique_ptr<CloneLayout> layout_;
  FinishedClone finished_;
  bool is_current_ = false;
};

}  // namespace sstferry
