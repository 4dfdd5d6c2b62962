#include "pipeline/archive/range_snapshot.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "format/end_state.h"
#include "format/rocksdb/manifest_append.h"
#include "format/rocksdb/sst_reader.h"
#include "pipeline/archive/partial_file.h"
#include "pipeline/archive/set_source.h"
#include "pipeline/base/file_source.h"
#include "pipeline/base/key_interval.h"
#include "pipeline/disk/free_space.h"
#include "pipeline/options/operators.h"
#include "pipeline/snapshot/file_snapshot.h"
#include "pipeline/snapshot/posix_files.h"
#include "pipeline/snapshot/private_dir.h"
#include "pipeline/snapshot/retained_snapshots.h"
#include "pipeline/snapshot/snapshot_copy.h"
#include "rocksdb/metadata.h"

namespace sstferry {

using rocksdb::Comparator;
using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Number of tables whose tails are fetched at once. Each tail takes two short
// requests.
constexpr int kTailLanes = 8;
// Readers of an interval may seek keys after the interval, because of range
// deletions. This is the maximum number of such keys. A restore with more of
// them is refused.
constexpr size_t kMaxSought = 4096;
constexpr char kDirectoryName[] = "archive";

// The part of a column family that belongs to the interval.
struct FamilyRange {
  const Comparator* order = nullptr;
  // Sorted by level, then by largest key.
  std::vector<std::unique_ptr<PartialTable>> tables;
  // For each table that recovery of the WALs wrote: its range deletions.
  std::vector<std::vector<KeySpan>> flushed_deletions;
};

// Statistics of the bytes that a snapshot fetches.
struct RangeBytes {
  // Fetched before any part is read: MANIFEST, WALs and similar files.
  uint64_t first = 0;
  std::atomic<uint64_t> blocks{0};
  size_t tables = 0;
  bool has_blobs = false;
};

bool MeetsTable(const KeyInterval& interval, const Comparator* order,
                const ManifestFile& file) {
  return MeetsSpan(interval, order, UserKeyOf(file.smallest),
                   UserKeyOf(file.largest));
}

// Looks at the keys of *keys from index `first` on. If a range deletion covers
// such a key, a RocksDB iterator that seeks the key continues at the end of the
// deletion's fragment, and this function adds that end to *keys. RocksDB splits
// the range deletions of a table into fragments, at the bounds of all deletions
// and at the bounds of the table.
void AddEnds(const std::vector<KeySpan>& deletions, const Comparator* order,
             const std::string* largest, size_t first,
             std::vector<std::string>* keys) {
  const size_t count = keys->size();
  for (size_t at = first; at < count; ++at) {
    const std::string key = (*keys)[at];
    const std::string* end = nullptr;
    bool is_held = false;
    const auto look = [&](const std::string& bound) {
      if (order->Compare(bound, key) > 0 &&
          (end == nullptr || order->Compare(bound, *end) < 0)) {
        end = &bound;
      }
    };
    for (const auto& [from, to] : deletions) {
      is_held |= order->Compare(from, key) <= 0 && order->Compare(key, to) < 0;
      look(from);
      look(to);
    }
    if (is_held && largest != nullptr) {
      look(*largest);
    }
    if (is_held && end != nullptr &&
        std::find(keys->begin(), keys->end(), *end) == keys->end()) {
      keys->push_back(*end);
    }
  }
}

// A snapshot of some keys of a set. It is a copy of the partial local database.
class RangeSnapshot : public SnapshotCopy {
 public:
  RangeSnapshot(std::shared_ptr<SetReader> reader,
                std::unique_ptr<PrivateDir> dir)
      : SnapshotCopy(std::move(dir)), reader_(std::move(reader)) {}

  // Makes the partial database in a private directory in `parent`, and copies
  // it.
  [[nodiscard]] Status Take(const SnapshotOptions& options,
                            const std::string& parent);

  [[nodiscard]] Status Fetch(
      const std::string& family, const KeyInterval& interval,
      const std::function<bool()>& cancelled) const override;

 private:
  // Chooses the tables with keys of the interval. Appends edits to manifest_
  // that delete all other tables.
  [[nodiscard]] Status Choose(const SnapshotOptions& options);
  [[nodiscard]] Status AddTables(const ManifestFamily& family,
                                 const Comparator* order);
  [[nodiscard]] Status AddBlobs(const ManifestState& kept);
  // Makes the files of the partial database.
  [[nodiscard]] Status MakeFiles(const SetReader::Cancelled& cancelled);
  [[nodiscard]] Status FetchTails(const SetReader::Cancelled& cancelled);
  [[nodiscard]] Status CheckRoom() const;
  [[nodiscard]] Status TakeCopy(const SnapshotOptions& options);
  [[nodiscard]] Status ReadFlushedTables();
  // Replaces the facts about the partial database by the facts about the set.
  void DescribeSet();
  // Finds the keys that readers of the interval may seek.
  [[nodiscard]] Status FindSought(const FamilyRange& family,
                                  const KeyInterval& interval,
                                  std::vector<std::string>* keys) const;
  const ArchivedFile* Find(CloneFileKind kind, uint64_t number) const;

  const std::shared_ptr<SetReader> reader_;
  KeyInterval interval_;
  std::string manifest_;
  ManifestState state_;  // the set's MANIFEST, without the appended edits
  // Files that are fetched completely.
  std::vector<const ArchivedFile*> whole_;
  std::map<std::string, FamilyRange> families_;
  // By the number of the blob file.
  std::map<uint64_t, std::unique_ptr<PartialBlobFile>> blobs_;
  PartialFiles files_;
  RangeBytes bytes_;
};

const ArchivedFile* RangeSnapshot::Find(CloneFileKind kind,
                                        uint64_t number) const {
  const std::vector<ArchivedFile>& files = reader_->set().files;
  const auto found = std::find_if(
      files.begin(), files.end(), [&](const ArchivedFile& file) {
        return file.file.kind == kind && file.file.number == number;
      });
  return found == files.end() ? nullptr : &*found;
}

Status RangeSnapshot::AddTables(const ManifestFamily& family,
                                const Comparator* order) {
  FamilyRange& range = families_[family.name];
  range.order = order;
  std::vector<std::pair<int, uint64_t>> others;
  for (const auto& [number, known] : family.files) {
    if (order == nullptr || !MeetsTable(interval_, order, known)) {
      others.emplace_back(known.level, number);
      continue;
    }
    const ArchivedFile* const file = Find(CloneFileKind::kTable, number);
    if (file == nullptr || file->file.bytes != known.bytes) {
      return MakeStatus(EndState::kCorrupt,
                        "set " + SetNameText(reader_->set().name) +
                            ": its MANIFEST names a table " +
                            std::to_string(number) + " of " +
                            std::to_string(known.bytes) +
                            " bytes, but the set's record has no such file");
    }
    bytes_.has_blobs |= known.oldest_blob_file != 0;
    range.tables.push_back(
        std::make_unique<PartialTable>(&files_, file, &known, order));
  }
  bytes_.tables += range.tables.size();
  if (!others.empty()) {
    AppendRemovedTables(manifest_.size(), family.id, others, &manifest_);
  }
  if (order == nullptr) {
    families_.erase(family.name);
    return Status::OK();
  }
  std::sort(range.tables.begin(), range.tables.end(),
            [order](const auto& a, const auto& b) {
              if (a->known().level != b->known().level) {
                return a->known().level < b->known().level;
              }
              // If two tables end with the same key, the table with newer
              // entries comes first.
              const int compared = order->Compare(a->largest(), b->largest());
              return compared != 0 ? compared < 0
                                   : a->known().largest_sequence >
                                         b->known().largest_sequence;
            });
  return Status::OK();
}

Status RangeSnapshot::AddBlobs(const ManifestState& kept) {
  for (const auto& [id, family] : kept.families) {
    for (const auto& [number, known] : family.blobs) {
      const ArchivedFile* const file = Find(CloneFileKind::kBlob, number);
      if (file == nullptr) {
        return MakeStatus(EndState::kCorrupt,
                          "set " + SetNameText(reader_->set().name) +
                              ": its MANIFEST names a blob file " +
                              std::to_string(number) +
                              ", but the set's record has no such file");
      }
      blobs_.emplace(number, std::make_unique<PartialBlobFile>(&files_, file));
    }
  }
  return Status::OK();
}

Status RangeSnapshot::Choose(const SnapshotOptions& options) {
  ManifestState wanted = state_;
  std::vector<CloneFile> unused;
  RETURN_IF_ERROR(KeepFamilies(options.families, &wanted, &unused));
  for (const auto& [id, family] : state_.families) {
    const Comparator* order = nullptr;
    if (wanted.families.count(id) != 0) {
      RETURN_IF_ERROR(FindComparator(
          family.name,
          family.comparator.empty() ? rocksdb::BytewiseComparator()->Name()
                                    : family.comparator,
          options.registry, &order));
    }
    RETURN_IF_ERROR(AddTables(family, order));
  }
  ManifestState kept;
  uint64_t end = 0;
  RETURN_IF_ERROR(ReadManifestText(manifest_, &kept, &end));
  RETURN_IF_ERROR(AddBlobs(kept));
  std::vector<const ArchivedFile*> needed;
  for (const ArchivedFile& file : reader_->set().files) {
    switch (file.file.kind) {
      case CloneFileKind::kTable:
      case CloneFileKind::kBlob:
        break;
      case CloneFileKind::kManifest:
        bytes_.first += file.file.bytes;
        break;
      default:
        bytes_.first += file.file.bytes;
        whole_.push_back(&file);
    }
  }
  needed = whole_;
  for (const auto& [name, family] : families_) {
    for (const auto& table : family.tables) {
      needed.push_back(&table->file());
    }
  }
  for (const auto& [number, blob] : blobs_) {
    needed.push_back(&blob->file());
  }
  return reader_->LookFor(needed);
}

Status RangeSnapshot::MakeFiles(const SetReader::Cancelled& cancelled) {
  const std::string& directory = files_.directory;
  std::string name;
  for (const ArchivedFile& file : reader_->set().files) {
    if (file.file.kind == CloneFileKind::kManifest) {
      name = CloneFileName(file.file);
    }
  }
  RETURN_IF_ERROR(WriteSmallFile(directory + "/" + name, manifest_));
  RETURN_IF_ERROR(WriteSmallFile(directory + "/CURRENT", name + "\n"));
  for (const ArchivedFile* const file : whole_) {
    PartialFile local(&files_, file);
    RETURN_IF_ERROR(local.Make());
    RETURN_IF_ERROR(reader_->ReadWhole(
        *file, cancelled, [&local](uint64_t offset, const Slice& piece) {
          return local.Write(offset, piece);
        }));
  }
  for (const auto& [number, blob] : blobs_) {
    RETURN_IF_ERROR(blob->Make());
  }
  for (const auto& [family, range] : families_) {
    for (const auto& table : range.tables) {
      RETURN_IF_ERROR(table->Make());
    }
  }
  return Status::OK();
}

Status RangeSnapshot::FetchTails(const SetReader::Cancelled& cancelled) {
  std::vector<PartialTable*> tables;
  for (const auto& [name, family] : families_) {
    for (const auto& table : family.tables) {
      tables.push_back(table.get());
    }
  }
  return ForEachInLanes(kTailLanes, tables.size(), [&](size_t at) {
    uint64_t bytes = 0;
    const Status status = tables[at]->FetchTail(interval_, cancelled, &bytes);
    bytes_.blocks += bytes;
    return status;
  });
}

// Checks that there is enough free space for the fetched blocks and the WALs.
// The blocks stay until the snapshot is removed, and the copy has its own WALs.
// Does not count the blobs, because their size is still unknown.
Status RangeSnapshot::CheckRoom() const {
  const uint64_t need = bytes_.blocks + bytes_.first;
  const uint64_t free = FreeBytesAbove(files_.directory);
  return free >= need
             ? Status::OK()
             : MakeStatus(EndState::kNoSpace,
                          "for the blocks of the restored keys: "
                          "expected " + SpaceText(need) + " free in " +
                              ShownPath(files_.directory) + ", found " +
                              SpaceText(free) +
                              ": name another directory by --snapshot-dir");
}

Status RangeSnapshot::TakeCopy(const SnapshotOptions& options) {
  SnapshotOptions own = options;
  own.database_dir = files_.directory;
  own.wal_dir = files_.directory;
  own.table_dirs.clear();
  RETURN_IF_ERROR(Fill(own, /*pinned=*/nullptr));
  files_.directory = own_path() + "/db";
  if (wal_not_flushed()) {
    // The WALs may contain range deletions, which are unknown here. So the keys
    // that readers seek would be unknown, too.
    return OnlyAsFiles(
        EndState::kRefused,
        "this set cannot be restored in part, because a column family that was "
        "not selected cannot be opened here: " + read_only_reason());
  }
  return ReadFlushedTables();
}

Status RangeSnapshot::ReadFlushedTables() {
  for (const SnapshotFamily& family : families()) {
    FamilyRange& range = families_[family.name];
    rocksdb::ColumnFamilyMetaData metadata;
    db()->GetColumnFamilyMetaData(family.handle, &metadata);
    for (const rocksdb::LevelMetaData& level : metadata.levels) {
      for (const rocksdb::SstFileMetaData& table : level.files) {
        CloneFile file;
        const std::string name =
            table.relative_filename.substr(table.relative_filename[0] == '/');
        if (!ParseCloneFileName(name, &file) ||
            Find(CloneFileKind::kTable, file.number) != nullptr) {
          continue;
        }
        std::unique_ptr<FileSource> source;
        SstReader reader;
        RETURN_IF_ERROR(FileSource::Open(rocksdb::FileSystem::Default().get(),
                                         files_.directory + "/" + name,
                                         &source, EndState::kSourceError));
        RETURN_IF_ERROR(reader.Open(source.get()));
        range.flushed_deletions.emplace_back();
        RETURN_IF_ERROR(reader.ForEachRangeDeletion(
            [&range](const Slice& begin, const Slice& end) {
              range.flushed_deletions.back().emplace_back(
                  UserKeyOf(begin).ToString(), end.ToString());
              return Status::OK();
            }));
      }
    }
  }
  return Status::OK();
}

void RangeSnapshot::DescribeSet() {
  const ArchiveSet& set = reader_->set();
  SnapshotFacts* const facts = mutable_facts();
  facts->point_in_time_seconds = set.name.seconds;
  facts->database_id = set.database_id;
  std::vector<std::string> notes = set.notes;
  notes.push_back(NoteOfSet(set));
  notes.push_back(
      "reads of the archive: about " + SpaceText(bytes_.blocks) +
      " of blocks" + (bytes_.has_blobs ? " and the blobs of their keys" : "") +
      " in " + std::to_string(bytes_.tables) +
      (bytes_.tables == 1 ? " table" : " tables") + ", with the indexes, " +
      SpaceText(bytes_.first) + " of WALs, MANIFEST and OPTIONS");
  // Adds the notes about the copy. Leaves out notes that the set already has,
  // for example about the OPTIONS file.
  for (const std::string& note : facts->notes) {
    if (std::find(notes.begin(), notes.end(), note) == notes.end()) {
      notes.push_back(note);
    }
  }
  facts->notes = std::move(notes);
}

Status RangeSnapshot::Take(const SnapshotOptions& options,
                           const std::string& parent) {
  const SetReader::Cancelled& cancelled = options.cancelled;
  interval_ = *options.interval;
  RETURN_IF_ERROR(reader_->ReadManifest(cancelled, &manifest_, &state_));
  RETURN_IF_ERROR(Choose(options));
  std::unique_ptr<PrivateDir> dir;
  RETURN_IF_ERROR(PrivateDir::Create(parent, kDirectoryName, &dir));
  files_.reader = reader_.get();
  files_.directory = dir->path() + "/db";
  RETURN_IF_ERROR(dir->Clear());
  RETURN_IF_ERROR(MakeFiles(cancelled));
  RETURN_IF_ERROR(FetchTails(cancelled));
  RETURN_IF_ERROR(CheckRoom());
  RETURN_IF_ERROR(TakeCopy(options));
  DescribeSet();
  manifest_ = std::string();
  return Status::OK();
}

// Finds the keys that readers of the interval may seek. Of the keys in the
// interval, adds only the begin. If a table has no key of the interval, a seek
// of any key in the interval reads the same block, which is that of the begin
// or that of the end. There are two such cases:
//   - The table is before the interval. RocksDB reads such a table only in
//     level 0, and only if its last separator is above its largest key.
//   - The table is after the interval. RocksDB checks the end of the interval
//     only after it has read the first block.
// If a reader meets a range deletion, it seeks the end of the deletion before
// it checks the end of the interval. At this key, a range deletion in an older
// table may make the reader skip further. This can happen once for each sorted
// run.
Status RangeSnapshot::FindSought(const FamilyRange& family,
                                 const KeyInterval& interval,
                                 std::vector<std::string>* keys) const {
  size_t first = 0;
  if (interval.end.has_value()) {
    keys->push_back(*interval.end);
  }
  size_t runs = family.flushed_deletions.size();
  for (const auto& table : family.tables) {
    runs += table->deletions().empty() ? 0 : 1;
  }
  for (size_t run = 0; run < runs && first < keys->size(); ++run) {
    const size_t behind = keys->size();
    for (const auto& table : family.tables) {
      AddEnds(table->deletions(), family.order, &table->largest(), first,
              keys);
    }
    for (const std::vector<KeySpan>& deletions : family.flushed_deletions) {
      AddEnds(deletions, family.order, nullptr, first, keys);
    }
    first = behind;
    if (keys->size() > kMaxSought) {
      return MakeStatus(EndState::kRefused,
                        "expected at most " + std::to_string(kMaxSought) +
                            " consecutive range deletions after the restored "
                            "keys, found more; restore the set without --begin "
                            "and --end");
    }
  }
  if (interval.begin.has_value()) {
    keys->push_back(*interval.begin);
  }
  return Status::OK();
}

Status RangeSnapshot::Fetch(const std::string& family,
                            const KeyInterval& interval,
                            const std::function<bool()>& cancelled) const {
  const auto found = families_.find(family);
  if (found == families_.end()) {
    return Status::OK();  // no table of the family is in the interval
  }
  const FamilyRange& range = found->second;
  if (!IsInside(interval, interval_, range.order)) {
    return MakeStatus(EndState::kCorrupt,
                      "request: expected keys inside the restored interval of "
                      "column family '" + family +
                          "', found keys outside of it");
  }
  std::vector<std::string> sought;
  RETURN_IF_ERROR(FindSought(range, interval, &sought));
  std::vector<PartialBlob> blobs;
  const PartialTable* before = nullptr;
  for (const auto& table : range.tables) {
    const int level = table->known().level;
    const bool follows =
        level != 0 && before != nullptr && before->known().level == level;
    const bool is_read =
        MeetsSpan(interval, range.order, table->smallest(), table->largest()) ||
        std::any_of(sought.begin(), sought.end(), [&](const std::string& key) {
          // RocksDB seeks in each table of level 0. In another level, it seeks
          // in the first table that does not end before the key.
          return (!follows ||
                  range.order->Compare(before->largest(), key) <= 0) &&
                 table->MayLack(key);
        });
    if (is_read) {
      RETURN_IF_ERROR(table->FetchBlocks(interval, sought, cancelled, &blobs));
    }
    before = table.get();
  }
  std::map<uint64_t, std::vector<PartialBlob>> by_file;
  for (PartialBlob& blob : blobs) {
    by_file[blob.reference.file].push_back(std::move(blob));
  }
  for (auto& [number, of_file] : by_file) {
    if (number == 0) {
      return MakeStatus(
          EndState::kRefused,
          "column family '" + family +
              "': an entry has a blob in its own table, or may have blobs that "
              "this sstferry cannot find; restore the set without --begin and "
              "--end, and without --method ingest");
    }
    const auto file = blobs_.find(number);
    if (file == blobs_.end()) {
      return MakeStatus(EndState::kCorrupt,
                        "column family '" + family +
                            "': a table refers to blob file " +
                            std::to_string(number) + ", which is missing");
    }
    RETURN_IF_ERROR(file->second->Fetch(std::move(of_file), cancelled));
  }
  return Status::OK();
}

// Takes the snapshot. The caller adds the address of the archive to messages.
Status Take(std::shared_ptr<SetReader> reader, const SnapshotOptions& options,
            std::unique_ptr<Snapshot>* result) {
  std::error_code error;
  const std::string parent = RealPath(
      options.snapshot_dir.empty()
          ? std::filesystem::temp_directory_path(error).string()
          : options.snapshot_dir);
  RemoveLeftovers(parent, options.log);
  std::unique_ptr<PrivateDir> dir;
  RETURN_IF_ERROR(PrivateDir::Create(parent, kDirectoryName, &dir));
  dir->set_log([log = options.log](const std::string& line) {
    if (log) log(LogLevel::kWarning, line);
  });
  RETURN_IF_ERROR(dir->Clear());
  auto snapshot =
      std::make_unique<RangeSnapshot>(std::move(reader), std::move(dir));
  RETURN_IF_ERROR(snapshot->Take(options, parent));
  *result = std::move(snapshot);
  return Status::OK();
}

}  // namespace

Status TakeRange(std::shared_ptr<SetReader> reader,
                 const SnapshotOptions& options,
                 std::unique_ptr<Snapshot>* result) {
  const std::string place = reader->place();
  return WithContext(Take(std::move(reader), options, result),
                     EndState::kSourceError, place);
}

}  // namespace sstferry
