#include "pipeline/archive/restore.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "format/end_state.h"
#include "pipeline/archive/archive.h"
#include "pipeline/archive/choose_set.h"
#include "pipeline/archive/open_store.h"
#include "pipeline/archive/range_snapshot.h"
#include "pipeline/archive/set_reader.h"
#include "pipeline/snapshot/file_snapshot.h"
#include "pipeline/snapshot/posix_files.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Threads: as UnitSource.
class ArchiveSnapshot : public Snapshot, public UnitSource {
 public:
  explicit ArchiveSnapshot(std::shared_ptr<SetReader> reader)
      : reader_(std::move(reader)), set_(reader_->set()) {
    for (const ArchivedFile& file : set_.files) {
      files_.files.push_back(file.file);
      files_of_set_.push_back(&file);
    }
  }

  // Looks for everything that the set names, and describes it.
  [[nodiscard]] Status Fill(const SnapshotOptions& options);

  rocksdb::DB* db() const override { return nullptr; }
  const ClonedFiles* files() const override { return &files_; }
  UnitSource* units() const override {
    return const_cast<ArchiveSnapshot*>(this);
  }
  uint64_t point_in_time_seconds() const override { return set_.name.seconds; }
  const std::vector<SnapshotFamily>& families() const override {
    return families_;
  }
  uint64_t sequence() const override { return set_.sequence; }
  const std::string& database_id() const override { return set_.database_id; }
  const std::string& directory() const override { return no_directory_; }
  const std::string& own_path() const override { return no_directory_; }
  const std::string& options_text() const override { return options_text_; }
  const std::vector<std::string>& notes() const override { return notes_; }
  bool wal_not_flushed() const override { return false; }
  const Digest128& wal_digest() const override { return not_known_; }
  bool wal_holds_entries() const override { return true; }
  const Counters& counters() const override { return counters_; }

  [[nodiscard]] Status Read(
      const Part& unit, const std::function<bool()>& cancelled,
      const std::function<Status(const Slice&)>& take) override;
  const Digest128& DigestOf(const Part& unit) const override {
    return files_of_set_[unit.file]->units[unit.id - first_units_[unit.file]];
  }

 private:
  // Leaves out the files of other families, as the MANIFEST tells.
  [[nodiscard]] Status ChooseFamilies(const std::vector<std::string>& wanted,
                                      const std::function<bool()>& cancelled);
  // Counts the units of the files before each.
  void CountUnits();

  const std::shared_ptr<SetReader> reader_;
  const ArchiveSet& set_;
  ClonedFiles files_;
  std::vector<const ArchivedFile*> files_of_set_;  // by place in files_
  std::vector<uint32_t> first_units_;              // the same
  std::vector<SnapshotFamily> families_;  // names only
  std::string options_text_;
  std::vector<std::string> notes_;
  const std::string no_directory_;
  const Digest128 not_known_{};
  Counters counters_;
};

Status ArchiveSnapshot::Fill(const SnapshotOptions& options) {
  const auto cancelled = [&options] {
    return options.cancelled && options.cancelled();
  };
  files_.unit_bytes = set_.unit_bytes;
  files_.content = set_.content;
  RocksDbRelease needs;
  if (ParseRelease(set_.needs, &needs)) {
    files_.needs.Add(needs, set_.needs_because);
  } else if (!set_.needs.empty()) {
    // One that this sstferry does not know.
    files_.needs.AddFormatVersion(std::numeric_limits<uint32_t>::max());
  }
  for (const std::string& name : set_.families) {
    if (options.families.empty() ||
        std::find(options.families.begin(), options.families.end(), name) !=
            options.families.end()) {
      families_.emplace_back().name = name;
    }
  }
  notes_ = set_.notes;
  notes_.push_back(NoteOfSet(set_));
  CountUnits();
  RETURN_IF_ERROR(reader_->LookFor(files_of_set_));
  if (!options.families.empty()) {
    RETURN_IF_ERROR(ChooseFamilies(options.families, cancelled));
  }
  // The release of the source's application is in it.
  return reader_->ReadText(CloneFileKind::kOptions, kMaxOptionsFileBytes,
                           cancelled, &options_text_);
}

void ArchiveSnapshot::CountUnits() {
  first_units_.clear();
  uint32_t unit = 0;
  for (const ArchivedFile* const file : files_of_set_) {
    first_units_.push_back(unit);
    unit += static_cast<uint32_t>(file->units.size());
  }
}

Status ArchiveSnapshot::ChooseFamilies(const std::vector<std::string>& wanted,
                                       const std::function<bool()>& cancelled) {
  std::string manifest;
  ManifestState state;
  RETURN_IF_ERROR(reader_->ReadManifest(cancelled, &manifest, &state));
  const bool leaves_out = wanted.size() < state.families.size();
  RETURN_IF_ERROR(KeepFamilies(wanted, &state, &files_.files));
  // Both lists have the same order.
  auto kept = files_.files.begin();
  std::erase_if(files_of_set_, [&](const ArchivedFile* file) {
    const bool stays = kept != files_.files.end() && *kept == file->file;
    kept += stays ? 1 : 0;
    return !stays;
  });
  CountUnits();
  files_.content = Digest128();  // that of the record is of all
  if (leaves_out) {
    notes_.push_back(kWalsOfAllFamilies);
  }
  return Status::OK();
}

Status ArchiveSnapshot::Read(const Part& unit,
                             const std::function<bool()>& cancelled,
                             const std::function<Status(const Slice&)>& take) {
  return reader_->ReadUnit(
      *files_of_set_[unit.file], unit, DigestOf(unit), cancelled,
      [&take](uint64_t /*offset*/, const Slice& piece) { return take(piece); });
}

class ArchiveOrigin : public SnapshotOrigin {
 public:
  ArchiveOrigin(std::shared_ptr<ObjectStore> store, std::string which,
                std::shared_ptr<const SealKey> key)
      : store_(std::move(store)),
        which_(std::move(which)),
        key_(std::move(key)) {}

  Status Take(const SnapshotOptions& options,
              std::unique_ptr<Snapshot>* result) override {
    if (!options.as_files && !options.interval.has_value()) {
      return RefuseAsChunks(EndState::kRefused,
                            store_->place() + ": an archive holds files, and "
                                              "no refresh is made of them");
    }
    const Archive archive(store_.get(), key_.get());
    ArchiveSet set;
    const Status chosen = ChooseSet(archive, which_, &set);
    if (EndStateOf(chosen) == EndState::kCorrupt) {
      return MakeStatus(EndState::kCorrupt,
                        MessageOf(chosen) + "; " + NextBestSet(archive));
    }
    RETURN_IF_ERROR(chosen);
    RETURN_IF_ERROR(archive.CheckReadable(set));
    auto reader = std::make_shared<SetReader>(store_, key_, std::move(set));
    if (!options.as_files) {
      return TakeRange(std::move(reader), options, result);
    }
    auto snapshot = std::make_unique<ArchiveSnapshot>(std::move(reader));
    RETURN_IF_ERROR(snapshot->Fill(options));
    *result = std::move(snapshot);
    return Status::OK();
  }

  void Cancel() override { store_->Cancel(); }

 private:
  const std::shared_ptr<ObjectStore> store_;
  const std::string which_;
  const std::shared_ptr<const SealKey> key_;  // may be null
};

}  // namespace

Status MakeArchiveOrigin(const StoreOptions& options, const std::string& which,
                         std::shared_ptr<SnapshotOrigin>* origin) {
  std::unique_ptr<ObjectStore> store;
  std::shared_ptr<SealKey> key;
  if (!options.key_file.empty()) {
    RETURN_IF_ERROR(SealKey::Read(options.key_file, &key));
  }
  RETURN_IF_ERROR(OpenStore(options, &store));
  *origin = MakeArchiveOriginOf(std::move(store), which, std::move(key));
  return Status::OK();
}

std::shared_ptr<SnapshotOrigin> MakeArchiveOriginOf(
    std::unique_ptr<ObjectStore> store, const std::string& which,
    std::shared_ptr<const SealKey> key) {
  return std::make_shared<ArchiveOrigin>(std::move(store), which,
                                         std::move(key));
}

}  // namespace sstferry
