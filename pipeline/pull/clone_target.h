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

// Makes a database without opening it in RocksDB. This process therefore needs
// neither the database's operators nor its release of RocksDB.
class CloneTarget : public NewDirectoryTarget, public FileReuse {
 public:
  // With kDrillMode, removes the database at the end. A drill resumes nothing:
  // it removes what a killed drill left, and returns kRefused if a pull left
  // its data.
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
  // Keeps two kinds of files in staging/: MANIFEST, OPTIONS and IDENTITY, which
  // stay there to the end, and links, which stay until all files have arrived.
  [[nodiscard]] rocksdb::Status Reopen(
      const std::shared_ptr<rocksdb::FileSystem>& file_system,
      const JournalState& unfinished, ReceivedChunks* received) override;
  std::unique_ptr<ChunkStore> MakeStore(JournalFile* journal) override;
  [[nodiscard]] rocksdb::Status Finish() override;
  // Writes CURRENT last. No process can open the directory before that.
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
  // Writes the file in `dir` that contains the MANIFEST's name, after all other
  // files. In this class: CURRENT.
  [[nodiscard]] virtual rocksdb::Status NameManifest(const std::string& dir,
                                                     const Access& access);

 private:
  // Makes a layout in which no unit is counted as complete yet.
  void MakeLayout();
  // Links files of the database in `directory`. If that fails, only reports it.
  // Sets *verify if that database is known to be wrong.
  [[nodiscard]] rocksdb::Status LinkPresent(const std::string& directory,
                                            bool* verify);
  // Reuses files that an unfinished pull received before it started over.
  [[nodiscard]] rocksdb::Status TakeEarlier(const JournalState& earlier);
  // Lists the parts of the files that are reused.
  ReusedParts ListReused() const;
  // Returns the directory whose files may be linked; empty if no such directory
  // exists.
  std::string PresentDirectory() const;
  // Returns true if the database whose files may be linked already has the
  // source's contents, so that a swap would change only names.
  bool HoldsTheSame(const PresentFiles& present) const;
  // Returns the numbers of the files that the journal records as linked and
  // whose links still exist.
  std::set<uint64_t> FindLinked(const JournalState& journal) const;
  bool IsReceived(const Part& part, const JournalChunk& chunk) const;
  // Finds out which units of the journal have arrived.
  void FindReceived(const JournalState& journal, ReceivedChunks* received);
  // Returns the names of the files that Reopen() leaves in staging/.
  std::set<std::string> WaitingInStaging() const;
  // Sets new_id_, before any data is sent.
  //   kRefused  the id of the refreshed replica cannot be read
  [[nodiscard]] rocksdb::Status ChooseNewId();
  [[nodiscard]] rocksdb::Status CheckFamilyNames() const;

  // The database id of the clone. Empty: no id; nullopt: the source's id.
  std::optional<std::string> new_id_;
  std::unique_ptr<CloneLayout> layout_;
  // OriginOfLinks() before files were linked; nullopt: no file was linked.
  std::optional<std::string> origin_;
  FinishedClone finished_;
  bool is_current_ = false;
};

}  // namespace sstferry
