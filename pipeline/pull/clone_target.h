// Makes a new database from the files of the source's snapshot.
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

// Makes a database from the source's files without opening it in RocksDB. So
// this process needs neither the application's comparators and merge operators
// nor its release of RocksDB.
class CloneTarget : public NewDirectoryTarget, public FileReuse {
 public:
  // With kDrillMode, the pull removes the database at the end. A drill never
  // resumes: it removes the data that a killed drill left. If an unfinished
  // pull left the data, the drill returns kRefused.
  explicit CloneTarget(const TargetInputs& inputs,
                       const char* mode = kCloneMode);

  [[nodiscard]] rocksdb::Status ReadExisting(
      WorkspaceUse use, const std::shared_ptr<rocksdb::FileSystem>& disk,
      FoundTarget* found) override;
  bool IsAsLeft(const JournalState& journal) const override;
  [[nodiscard]] rocksdb::Status BuildFamilies() override;
  [[nodiscard]] rocksdb::Status FindReused(const JournalState* earlier,
                                           bool* verify,
                                           ReusedParts* reused) override;
  [[nodiscard]] rocksdb::Status RejectReused(
      const std::vector<uint32_t>& different, ReusedParts* reused) override;
  [[nodiscard]] rocksdb::Status Create(
      const std::shared_ptr<rocksdb::FileSystem>& file_system,
      std::optional<JournalTargetFiles>* held) override;
  // Prepares an unfinished clone, and leaves two kinds of files in staging/.
  // MANIFEST, OPTIONS and IDENTITY stay there to the end. Links stay there
  // until all files have arrived.
  [[nodiscard]] rocksdb::Status Reopen(
      const std::shared_ptr<rocksdb::FileSystem>& file_system,
      const JournalState& unfinished, ReceivedChunks* received) override;
  std::unique_ptr<ChunkStore> MakeStore(JournalFile* journal) override;
  [[nodiscard]] rocksdb::Status Finish() override;
  // Syncs the database, reads from the disk what Finish() wrote, and then
  // writes CURRENT. No process can open the directory before that.
  //   kCorrupt  the disk returned other bytes; a later run writes them again
  [[nodiscard]] rocksdb::Status Record(const Summary& summary) override;
  void FillSummary(Summary* summary) const override;
  [[nodiscard]] rocksdb::Status DigestPart(const Part& part,
                                           DigestReply* reply) override;
  void CloseDatabase() override {}

 protected:
  bool uses_old_files() const override;
  [[nodiscard]] rocksdb::Status CloseFiles() override {
    return rocksdb::Status::OK();
  }
  // Writes the file in `dir` that contains the name of the MANIFEST. Called
  // after all other files are written. This class writes CURRENT.
  [[nodiscard]] virtual rocksdb::Status NameManifest(const std::string& dir,
                                                     const Access& access);

 private:
  // Makes the layout of the plan's files. None of its units is complete yet.
  void MakeLayout();
  // Links files that the database in `directory` shares with the source. If the
  // database cannot be read, reports that, and the source sends the files. Sets
  // *verify if a fault of that database is known.
  [[nodiscard]] rocksdb::Status LinkPresent(const std::string& directory,
                                            bool* verify);
  // Reuses files that an unfinished pull had received. This pull starts over
  // instead of resuming it.
  [[nodiscard]] rocksdb::Status TakeEarlier(const JournalState& earlier);
  // Lists the parts of the files that are reused.
  ReusedParts ListReused() const;
  // Returns the directory of the database whose files may be linked. Returns an
  // empty string if there is no such database.
  std::string PresentDirectory() const;
  // Returns true if TARGET_DIR already has the source's contents, so that an
  // exchange would change only names.
  bool HoldsTheSame(const PresentFiles& present) const;
  // Returns the numbers of the files that the journal records as linked and
  // whose links still exist.
  std::set<uint64_t> FindLinked(const JournalState& journal) const;
  bool IsReceived(const Part& part, const JournalChunk& chunk) const;
  // Finds out which units that the journal records are intact on the disk.
  void FindReceived(const JournalState& journal, ReceivedChunks* received);
  // Returns the names of the files that Reopen() leaves in staging/.
  std::set<std::string> WaitingInStaging() const;
  // Sets new_id_. Called before any data is sent.
  //   kRefused  the id of the replica that is refreshed cannot be read
  [[nodiscard]] rocksdb::Status ChooseNewId();
  [[nodiscard]] rocksdb::Status CheckFamilyNames() const;
  // Compares MANIFEST, OPTIONS and IDENTITY on the disk with what Finish()
  // wrote. This is necessary even with --verify, which compares only received
  // files. REQUIRES: the files are synced.
  [[nodiscard]] rocksdb::Status CheckWritten() const;

  // The new database id of the clone. If empty, the clone gets no id; if
  // nullopt, it keeps the source's id.
  std::optional<std::string> new_id_;
  std::unique_ptr<CloneLayout> layout_;
  // The result of OriginOfLinks() just before files were linked; nullopt if no
  // file was linked.
  std::optional<std::string> origin_;
  FinishedClone finished_;
  bool is_current_ = false;
};

}  // namespace sstferry
