#include "pipeline/archive/restore.h"

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "format/byte_source.h"
#include "format/end_state.h"
#include "format/rocksdb/log_follower.h"
#include "format/rocksdb/manifest_reader.h"
#include "pipeline/archive/archive.h"
#include "pipeline/archive/check.h"
#include "pipeline/archive/choose_set.h"
#include "pipeline/archive/open_store.h"
#include "pipeline/snapshot/file_snapshot.h"
#include "pipeline/snapshot/posix_files.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// A MANIFEST that is read for the column families of its files. Their tables
// take about 100 bytes each in it.
constexpr uint64_t kMaxManifestBytes = 64u << 20;

Status Stopped() {
  return MakeStatus(EndState::kCancelled, "restore: stopped on request");
}

// Returns the end of a sentence about a set that cannot be restored.
std::string NextBest(const CheckSummary& summary) {
  std::string whole;
  for (const ListedSet& set : summary.sets) {
    if (set.state == SetState::kWhole || set.state == SetState::kExpiring) {
      whole = SetNameText(set.name);
    }
  }
  return whole.empty() ? "no set is whole"
                       : "the newest set that is whole is " + whole +
                             ": restore @" + whole;
}

// Threads: as UnitSource.
class ArchiveSnapshot : public Snapshot, public UnitSource {
 public:
  ArchiveSnapshot(std::shared_ptr<ObjectStore> store,
                  std::shared_ptr<const SealKey> key, ArchiveSet set)
      : store_(std::move(store)),
        key_(std::move(key)),
        archive_(store_.get(), key_.get()),
        set_(std::move(set)) {
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
  [[nodiscard]] Status LookForFiles();
  // Reads the file of a kind, of which there is at most one, into memory.
  [[nodiscard]] Status ReadWhole(CloneFileKind kind, uint64_t max_bytes,
                                 const std::function<bool()>& cancelled,
                                 std::string* text);
  // Counts the units of the files before each.
  void CountUnits();
  // Counts a unit that came as other bytes: kDeadPeer as long as it may be got
  // again.
  [[nodiscard]] Status Distrust(const Part& unit, const std::string& what);
  // Says what becomes of a restore for which the object of a file is lost.
  [[nodiscard]] Status Lost(const ArchivedFile& file, const std::string& what);
  [[nodiscard]] Status FindOut(const std::string& key, const std::string& what);

  const std::shared_ptr<ObjectStore> store_;
  const std::shared_ptr<const SealKey> key_;  // may be null
  const Archive archive_;
  const ArchiveSet set_;
  ClonedFiles files_;
  std::vector<const ArchivedFile*> files_of_set_;  // by place in files_
  std::vector<uint32_t> first_units_;              // the same
  std::vector<SnapshotFamily> families_;  // names only
  std::string options_text_;
  std::vector<std::string> notes_;
  const std::string no_directory_;
  const Digest128 not_known_{};
  Counters counters_;

  std::mutex mu_;
  std::map<uint32_t, int> tries_;  // of units that came wrong; under mu_
  std::mutex lost_mu_;             // held while the archive is checked
  Status lost_;                    // the first; under lost_mu_
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
  notes_.push_back(
      "restores the set " + SetNameText(set_.name) +
      (set_.label.empty() ? "" : " (" + set_.label + ")") +
      (set_.host.empty() ? "" : ", which " + set_.host + " pushed"));
  if (cancelled()) {
    return Stopped();
  }
  CountUnits();
  RETURN_IF_ERROR(LookForFiles());
  if (!options.families.empty()) {
    RETURN_IF_ERROR(ChooseFamilies(options.families, cancelled));
  }
  // The release of the source's application is in it.
  return ReadWhole(CloneFileKind::kOptions, kMaxOptionsFileBytes, cancelled,
                   &options_text_);
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
  RETURN_IF_ERROR(ReadWhole(CloneFileKind::kManifest, kMaxManifestBytes,
                            cancelled, &manifest));
  LogFollower follower(LogKind::kManifest);
  ManifestReader reader;
  RETURN_IF_ERROR(WithContext(
      follower.Follow(SliceSource(manifest),
                      [&reader](const Slice& record, uint64_t /*end*/) {
                        return reader.Add(record);
                      }),
      EndState::kCorrupt, "MANIFEST"));
  ManifestState state = reader.state();
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

Status ArchiveSnapshot::LookForFiles() {
  ListedKeys present;
  RETURN_IF_ERROR(archive_.ListKeys(kArchiveFilesPrefix, &present));
  RETURN_IF_ERROR(archive_.ListKeys(
      kArchivePartsPrefix + ToHex(set_.name.id) + "/", &present));
  for (const ArchivedFile& file : set_.files) {
    const auto there = present.find(ArchiveKeyText(file.key));
    if (there == present.end()) {
      return Lost(file, "is not there");
    }
    const uint64_t bytes = set_.ObjectBytes(file);
    if (there->second != bytes) {
      return Lost(file, "expected " + std::to_string(bytes) +
                            " bytes, found " + std::to_string(there->second));
    }
  }
  return Status::OK();
}

Status ArchiveSnapshot::ReadWhole(CloneFileKind kind, uint64_t max_bytes,
                                  const std::function<bool()>& cancelled,
                                  std::string* text) {
  std::vector<Part> units;
  RETURN_IF_ERROR(CutIntoUnits(files_.files, set_.unit_bytes, &units));
  for (const Part& unit : units) {
    const CloneFile& file = files_.files[unit.file];
    if (file.kind != kind) {
      continue;
    }
    if (file.bytes > max_bytes) {
      return MakeStatus(EndState::kRefused,
                        CloneFileName(file) + ": expected at most " +
                            std::to_string(max_bytes) + " bytes, found " +
                            std::to_string(file.bytes));
    }
    const size_t before = text->size();
    Status status = MakeStatus(EndState::kDeadPeer, "");
    for (int tries = 0; tries < kTriesOfUnit &&
                        EndStateOf(status) == EndState::kDeadPeer;
         ++tries) {
      text->resize(before);
      status = Read(unit, cancelled, [text](const Slice& piece) {
        text->append(piece.data(), piece.size());
        return Status::OK();
      });
    }
    RETURN_IF_ERROR(status);
  }
  return Status::OK();
}

Status ArchiveSnapshot::Read(const Part& unit,
                             const std::function<bool()>& cancelled,
                             const std::function<Status(const Slice&)>& take) {
  const ArchivedFile& file = *files_of_set_[unit.file];
  Digest128Stream digest;
  const StoreResult got = archive_.ReadFile(
      set_, file, unit.offset, unit.bytes,
      [&](const Slice& piece) {
        if (cancelled && cancelled()) {
          return Stopped();
        }
        digest.Add(piece);
        return take(piece);
      });
  switch (got.code) {
    case StoreCode::kOk:
      return digest.Finish() == DigestOf(unit)
                 ? Status::OK()
                 : Distrust(unit, "its bytes are not those that were pushed");
    case StoreCode::kDamaged:
      return Distrust(unit, MessageOf(got.status));
    case StoreCode::kAbsent:
      return Lost(file, "is not there");
    default:
      return got.status;
  }
}

Status ArchiveSnapshot::Distrust(const Part& unit, const std::string& what) {
  const ArchivedFile& file = *files_of_set_[unit.file];
  int tries = 0;
  {
    const std::lock_guard<std::mutex> lock(mu_);
    tries = ++tries_[unit.id];
  }
  return tries < kTriesOfUnit
             ? MakeStatus(EndState::kDeadPeer,
                          store_->Describe(ArchiveKeyText(file.key)) + ": " +
                              what)
             : Lost(file, what);
}

Status ArchiveSnapshot::Lost(const ArchivedFile& file,
                             const std::string& what) {
  const std::lock_guard<std::mutex> lock(lost_mu_);
  if (lost_.ok()) {
    lost_ = FindOut(ArchiveKeyText(file.key), what);
  }
  return lost_;
}

// A prune takes `done` away from a set before it deletes a file of it: so a
// file that lacks while the set still counts was damaged.
Status ArchiveSnapshot::FindOut(const std::string& key,
                                const std::string& what) {
  std::vector<FoundSet> sets;
  RETURN_IF_ERROR(archive_.ListSets(&sets));
  const bool counts =
      std::any_of(sets.begin(), sets.end(), [this](const FoundSet& found) {
        return found.is_done && found.name == set_.name;
      });
  CheckOptions check;
  if (counts) {
    check.known.emplace(key, what);
  }
  CheckSummary summary;
  const Status status = CheckArchive(archive_, check, &summary);
  const EndState state = EndStateOf(status);
  if (state != EndState::kOk && state != EndState::kCorrupt) {
    return status;
  }
  const std::string name = SetNameText(set_.name);
  if (!counts) {
    return MakeStatus(EndState::kSnapshotGone,
                      store_->place() + ": a prune removed the set " + name +
                          " while it was restored; " + NextBest(summary));
  }
  std::string problem = store_->Describe(key) + ": " + what;
  for (const std::string& one : summary.problems) {
    if (one.starts_with(store_->Describe(key) + ": ")) {
      problem = one;  // it names the sets
    }
  }
  return MakeStatus(EndState::kCorrupt, "set " + name + ": " + problem + "; " +
                                            NextBest(summary));
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
    if (!options.as_files) {
      return RefuseAsChunks(EndState::kRefused,
                            store_->place() + ": an archive holds files, and "
                                              "only a clone is made of them");
    }
    const Archive archive(store_.get(), key_.get());
    ArchiveSet set;
    const Status chosen = ChooseSet(archive, which_, &set);
    if (EndStateOf(chosen) == EndState::kCorrupt) {
      CheckSummary summary;
      CheckArchive(archive, CheckOptions(), &summary).PermitUncheckedError();
      return MakeStatus(EndState::kCorrupt,
                        MessageOf(chosen) + "; " + NextBest(summary));
    }
    RETURN_IF_ERROR(chosen);
    RETURN_IF_ERROR(archive.CheckReadable(set));
    auto snapshot =
        std::make_unique<ArchiveSnapshot>(store_, key_, std::move(set));
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
