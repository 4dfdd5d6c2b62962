#include "pipeline/archive/restore.h"

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "format/end_state.h"
#include "format/limits.h"
#include "pipeline/archive/archive.h"
#include "pipeline/archive/choose_set.h"
#include "pipeline/archive/log_reader.h"
#include "pipeline/archive/open_store.h"
#include "pipeline/archive/range_snapshot.h"
#include "pipeline/archive/set_reader.h"
#include "pipeline/snapshot/file_snapshot.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Maximum payload bytes of a log that stay in memory after the log is checked.
// The restore does not read these bytes again.
constexpr uint64_t kMaxKeptPayloadBytes = 64u << 20;

// Presents a set as a snapshot, together with the log after it if a log is
// restored. The entries of families() have only names.
//
// Threads: like UnitSource.
class ArchiveSnapshot : public Snapshot, public UnitSource {
 public:
  explicit ArchiveSnapshot(std::shared_ptr<SetReader> reader)
      : reader_(std::move(reader)), set_(reader_->set()) {
    for (const ArchivedFile& file : set_.files) {
      files_.files.push_back(file.file);
      files_of_set_.push_back(&file);
    }
  }

  // Looks up every object that the set names, and fills the facts of the
  // snapshot. `path` is the log after the set, which is restored up to `point`;
  // null: no log.
  [[nodiscard]] Status Fill(const SnapshotOptions& options,
                            const LogPath* path, const LogPoint& point);

  rocksdb::DB* db() const override { return nullptr; }
  const ClonedFiles* files() const override { return &files_; }
  UnitSource* units() const override {
    return const_cast<ArchiveSnapshot*>(this);
  }

  [[nodiscard]] Status Read(
      const Part& unit, const std::function<bool()>& cancelled,
      const std::function<Status(const Slice&)>& take) override;
  [[nodiscard]] Status DigestOf(const Part& unit, DigestFrom from,
                                const std::function<bool()>& cancelled,
                                Digest128* digest) override;

 private:
  // Checks the MANIFEST. Removes files of unselected families from files_.
  [[nodiscard]] Status ReadManifest(const std::vector<std::string>& wanted,
                                    const std::function<bool()>& cancelled);
  // Computes for each file the index of its first unit.
  [[nodiscard]] Status CountUnits();
  // Adds the bytes of the log to the WALs in files_.
  [[nodiscard]] Status AddLog(const LogPath& path, const LogPoint& point,
                              const std::function<bool()>& cancelled);
  // Returns true if the unit belongs to a WAL of which the log has bytes.
  bool IsLogged(const Part& unit) const {
    const CloneFile& file = files_.files[unit.file];
    return tail_ != nullptr && file.kind == CloneFileKind::kWal &&
           tail_->wals().count(file.number) != 0;
  }
  [[nodiscard]] Status ReadLogged(
      const Part& unit, const std::function<bool()>& cancelled,
      const std::function<Status(const Slice&)>& take);
  // REQUIRES: !IsLogged(unit).
  const Digest128& KnownDigest(const Part& unit) const {
    return files_of_set_[unit.file]->units[unit.id - first_units_[unit.file]];
  }

  const std::shared_ptr<SetReader> reader_;
  const ArchiveSet& set_;
  ClonedFiles files_;
  // By index in files_. Null: only the log has this file.
  std::vector<const ArchivedFile*> files_of_set_;
  std::vector<uint32_t> first_units_;  // by index in files_
  std::unique_ptr<LogTail> tail_;      // null: no log
  std::mutex mu_;
  // Number of failed reads of each unit; guarded by mu_.
  std::map<uint32_t, int> tries_;
};

Status ArchiveSnapshot::Fill(const SnapshotOptions& options,
                             const LogPath* path, const LogPoint& point) {
  const auto cancelled = [&options] {
    return options.cancelled && options.cancelled();
  };
  SnapshotFacts* const facts = mutable_facts();
  facts->database_id = set_.database_id;
  facts->sequence = set_.sequence;
  facts->point_in_time_seconds = set_.name.seconds;
  facts->wal_holds_entries = true;
  files_.unit_bytes = set_.unit_bytes;
  files_.content = set_.content;
  RocksDbRelease needs;
  if (ParseRelease(set_.needs, &needs)) {
    files_.needs.Add(needs, set_.needs_because);
  } else if (!set_.needs.empty()) {
    // This sstferry cannot parse the name of that release. Assumes a release
    // that is later than all releases that sstferry knows.
    files_.needs.AddFormatVersion(std::numeric_limits<uint32_t>::max());
  }
  for (const std::string& name : set_.families) {
    if (options.families.empty() ||
        std::find(options.families.begin(), options.families.end(), name) !=
            options.families.end()) {
      facts->families.emplace_back().name = name;
    }
  }
  facts->notes = set_.notes;
  facts->notes.push_back(NoteOfSet(set_));
  RETURN_IF_ERROR(CountUnits());
  RETURN_IF_ERROR(reader_->LookFor(files_of_set_));
  RETURN_IF_ERROR(ReadManifest(options.families, cancelled));
  if (path != nullptr) {
    RETURN_IF_ERROR(AddLog(*path, point, cancelled));
  }
  // The text contains the RocksDB release of the source's application.
  return reader_->ReadText(CloneFileKind::kOptions, kMaxOptionsFileBytes,
                           cancelled, &facts->options_text);
}

Status ArchiveSnapshot::CountUnits() {
  std::vector<Part> units;
  RETURN_IF_ERROR(CutIntoUnits(files_.files, set_.unit_bytes, &units));
  first_units_.assign(files_.files.size(),
                      static_cast<uint32_t>(units.size()));
  for (size_t i = units.size(); i-- > 0;) {
    first_units_[units[i].file] = static_cast<uint32_t>(i);
  }
  return Status::OK();
}

// Adds the WALs of the log to files_, which stays sorted by kind and number.
Status ArchiveSnapshot::AddLog(const LogPath& path, const LogPoint& point,
                               const std::function<bool()>& cancelled) {
  RETURN_IF_ERROR(LogTail::Read(reader_->archive(), set_, path, point,
                                cancelled, &tail_));
  RETURN_IF_ERROR(tail_->CheckRecords(kMaxKeptPayloadBytes, cancelled));
  for (const auto& [number, wal] : tail_->wals()) {
    const CloneFile wanted{CloneFileKind::kWal, number, wal.end, wal.end};
    const auto place = std::lower_bound(
        files_.files.begin(), files_.files.end(), wanted,
        [](const CloneFile& a, const CloneFile& b) {
          return a.kind != b.kind ? a.kind < b.kind : a.number < b.number;
        });
    const bool is_there = place != files_.files.end() &&
                          place->kind == wanted.kind &&
                          place->number == number;
    if (is_there) {
      place->bytes = wanted.bytes;
      place->records_end = wanted.records_end;
    } else {
      files_of_set_.insert(
          files_of_set_.begin() + (place - files_.files.begin()), nullptr);
      files_.files.insert(place, wanted);
    }
  }
  // The digest in the record covers only the set, not the log.
  files_.content = Digest128();
  SnapshotFacts* const facts = mutable_facts();
  facts->sequence = std::max(set_.sequence, tail_->sequence());
  facts->point_in_time_seconds =
      point.micros.value_or(set_.log.moment_micros) / 1'000'000;
  facts->notes.push_back(
      "restores the log after that set up to " +
      (point.micros.has_value()
           ? LogTimeText(*point.micros)
           : "sequence " + std::to_string(*point.sequence)));
  return CountUnits();
}

Status ArchiveSnapshot::ReadManifest(const std::vector<std::string>& wanted,
                                     const std::function<bool()>& cancelled) {
  std::string manifest;
  ManifestState state;
  const Status read = reader_->ReadManifest(cancelled, &manifest, &state);
  if (wanted.empty()) {
    // This process cannot read a MANIFEST that is too large or too new. The
    // target checks it then.
    return EndStateOf(read) == EndState::kRefused ? Status::OK() : read;
  }
  RETURN_IF_ERROR(read);
  const bool leaves_out = wanted.size() < state.families.size();
  RETURN_IF_ERROR(KeepFamilies(wanted, &state, &files_.files));
  // files_of_set_ and files_.files are in the same order.
  auto kept = files_.files.begin();
  std::erase_if(files_of_set_, [&](const ArchivedFile* file) {
    const bool stays = kept != files_.files.end() && *kept == file->file;
    kept += stays ? 1 : 0;
    return !stays;
  });
  RETURN_IF_ERROR(CountUnits());
  // The digest in the record covers the files of all families.
  files_.content = Digest128();
  if (leaves_out) {
    mutable_facts()->notes.push_back(kWalsOfAllFamilies);
  }
  return Status::OK();
}

Status ArchiveSnapshot::DigestOf(const Part& unit, DigestFrom from,
                                 const std::function<bool()>& cancelled,
                                 Digest128* digest) {
  if (from == DigestFrom::kRecord && !IsLogged(unit)) {
    *digest = KnownDigest(unit);
    return Status::OK();
  }
  // If this read fails, a pull requests the unit again, but a verify ends. So
  // repeats the read for a verify (kBytes).
  int tries = from == DigestFrom::kBytes ? kTriesOfBytes : 1;
  Status status;
  do {
    Digest128Stream stream;
    status = Read(unit, cancelled, [&stream](const Slice& piece) {
      stream.Add(piece);
      return Status::OK();
    });
    *digest = stream.Finish();
  } while (EndStateOf(status) == EndState::kDeadPeer && --tries > 0);
  return status;
}

// Reads the bytes of a unit from the set, and then from the log. Reads complete
// units of the set, because the digests in its record cover whole units.
Status ArchiveSnapshot::ReadLogged(
    const Part& unit, const std::function<bool()>& cancelled,
    const std::function<Status(const Slice&)>& take) {
  const CloneFile& file = files_.files[unit.file];
  const uint64_t set_bytes = tail_->wals().at(file.number).set_bytes;
  const uint64_t end = unit.offset + unit.bytes;
  if (unit.offset < set_bytes) {
    const ArchivedFile& of_set = *files_of_set_[unit.file];
    Part whole = unit;
    whole.bytes =
        std::min(set_.unit_bytes, of_set.file.bytes - unit.offset);
    RETURN_IF_ERROR(reader_->ReadUnit(
        of_set, whole, of_set.units[unit.offset / set_.unit_bytes], cancelled,
        [&](uint64_t offset, const Slice& piece) {
          const uint64_t given = std::min<uint64_t>(
              piece.size(), set_bytes - std::min(offset, set_bytes));
          return given == 0 ? Status::OK() : take(Slice(piece.data(), given));
        }));
  }
  const uint64_t begin = std::max(unit.offset, set_bytes);
  if (begin >= end) {
    return Status::OK();
  }
  const StoreResult got = tail_->ReadBytes(
      file.number, begin, end - begin, [&](const Slice& piece) {
        return cancelled && cancelled()
                   ? MakeStatus(EndState::kCancelled,
                                "restore: stopped on request")
                   : take(piece);
      });
  if (got.code != StoreCode::kDamaged) {
    return got.code == StoreCode::kAbsent
               ? MakeStatus(EndState::kCorrupt, MessageOf(got.status))
               : got.status;
  }
  const std::lock_guard<std::mutex> lock(mu_);
  return MakeStatus(++tries_[unit.id] < kTriesOfBytes ? EndState::kDeadPeer
                                                      : EndState::kCorrupt,
                    MessageOf(got.status));
}

Status ArchiveSnapshot::Read(const Part& unit,
                             const std::function<bool()>& cancelled,
                             const std::function<Status(const Slice&)>& take) {
  if (IsLogged(unit)) {
    return ReadLogged(unit, cancelled, take);
  }
  return reader_->ReadUnit(
      *files_of_set_[unit.file], unit, KnownDigest(unit), cancelled,
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
      return MakeStatus(EndState::kRefused,
                        store_->place() +
                            ": an archive holds files, and a refresh in place "
                            "needs entries; only a swap can replace a replica "
                            "from an archive");
    }
    const Archive archive(store_.get(), key_.get(), /*init_command=*/"",
                          options.read_bytes);
    LogPoint point;
    std::optional<LogChoice> logged;
    if (ParseLogPoint(which_, &point)) {
      ArchiveHead head;
      RETURN_IF_ERROR(archive.ReadHead(&head));
      RETURN_IF_ERROR(ChooseLog(archive, point, &logged));
    }
    if (logged.has_value() && !options.as_files) {
      return MakeStatus(EndState::kRefused,
                        store_->place() +
                            ": a time or a sequence of a log can only be "
                            "restored without --begin and --end");
    }
    ArchiveSet set;
    const Status chosen = ChooseSet(
        archive, logged.has_value() ? SetNameText(logged->set) : which_, &set);
    if (EndStateOf(chosen) == EndState::kCorrupt) {
      return MakeStatus(EndState::kCorrupt,
                        MessageOf(chosen) + "; " +
                            NextBestSet(archive, which_));
    }
    RETURN_IF_ERROR(chosen);
    RETURN_IF_ERROR(archive.CheckReadable(set));
    auto reader = std::make_shared<SetReader>(store_, key_, std::move(set),
                                              options.read_bytes);
    if (!options.as_files) {
      return TakeRange(std::move(reader), options, result);
    }
    auto snapshot = std::make_unique<ArchiveSnapshot>(std::move(reader));
    RETURN_IF_ERROR(snapshot->Fill(
        options, logged.has_value() ? &logged->path : nullptr, point));
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
