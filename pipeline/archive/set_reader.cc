#include "pipeline/archive/set_reader.h"

#include <algorithm>

#include "format/byte_source.h"
#include "format/end_state.h"
#include "format/printable.h"
#include "format/rocksdb/manifest_reader.h"
#include "pipeline/archive/check.h"
#include "sstferry/options.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Maximum size of a MANIFEST that is read to find the column family of each
// file. A table takes about 100 bytes in a MANIFEST.
constexpr uint64_t kMaxManifestBytes = 64u << 20;

Status CheckStopped(const SetReader::Cancelled& cancelled) {
  return cancelled && cancelled()
             ? MakeStatus(EndState::kCancelled, "restore: stopped on request")
             : Status::OK();
}

// Returns a text that names the newest restorable set and its address. If
// `which` is the label of restorable sets, names the newest of them.
std::string NextBest(const CheckSummary& summary,
                     const std::string& which = "") {
  std::string whole;
  std::string labelled;
  for (const ListedSet& set : summary.sets) {
    if (IsRestorable(set.state)) {
      whole = SetNameText(set.name);
      labelled = !which.empty() && set.label == which ? whole : labelled;
    }
  }
  if (!labelled.empty()) {
    return "the newest set with the label '" + Printable(which) +
           "' that is whole and can be read is @" + labelled;
  }
  return whole.empty() ? "no set is whole"
                       : "the newest set that is whole is @" + whole;
}

}  // namespace

Status ReadManifestText(const std::string& text, ManifestState* state,
                        uint64_t* end) {
  ManifestReader reader;
  RETURN_IF_ERROR(reader.Follow(SliceSource(text)));
  *state = reader.state();
  *end = reader.end();
  return Status::OK();
}

std::string NoteOfSet(const ArchiveSet& set) {
  return "restores the set " + SetNameText(set.name) +
         (set.label.empty() ? "" : " (" + set.label + ")") +
         (set.host.empty() ? "" : ", pushed by " + set.host);
}

std::string NextBestSet(const Archive& archive, const std::string& which) {
  CheckSummary summary;
  CheckArchive(archive, CheckOptions(), &summary).PermitUncheckedError();
  return NextBest(summary, which);
}

SetReader::SetReader(std::shared_ptr<ObjectStore> store,
                     std::shared_ptr<const SealKey> key, ArchiveSet set,
                     std::atomic<uint64_t>* read_bytes)
    : store_(std::move(store)),
      key_(std::move(key)),
      archive_(store_.get(), key_.get(), /*init_command=*/"", read_bytes),
      set_(std::move(set)) {}

Status SetReader::LookFor(const std::vector<const ArchivedFile*>& files) {
  ListedKeys present;
  RETURN_IF_ERROR(archive_.ListKeys(kArchiveFilesPrefix, &present));
  RETURN_IF_ERROR(archive_.ListKeys(
      kArchivePartsPrefix + ToHex(set_.name.id) + "/", &present));
  for (const ArchivedFile* const file : files) {
    const std::string key = ArchiveKeyText(file->key);
    // Ignores that the list shows an object as cold. It may have been restored
    // inside the store, and a later read will show this.
    const auto there = present.find(key);
    if (there != present.end()) {
      there->second.is_cold = false;
    }
    const std::string fault =
        ListedFault(present, key, set_.ObjectBytes(*file));
    if (!fault.empty()) {
      return Lost(*file, fault);
    }
  }
  return Status::OK();
}

Status SetReader::ReadUnit(const ArchivedFile& file, const Part& unit,
                           const Digest128& digest, const Cancelled& cancelled,
                           const Take& take) {
  Digest128Stream found;
  uint64_t at = unit.offset;
  const StoreResult got = archive_.ReadFile(
      set_, file, unit.offset, unit.bytes, [&](const Slice& piece) {
        RETURN_IF_ERROR(CheckStopped(cancelled));
        found.Add(piece);
        at += piece.size();
        return take(at - piece.size(), piece);
      });
  switch (got.code) {
    case StoreCode::kOk:
      return found.Finish() == digest
                 ? Status::OK()
                 : Distrust(file, unit.offset,
                            "its bytes differ from those that were pushed");
    case StoreCode::kDamaged:
      return Distrust(file, unit.offset, MessageOf(got.status));
    case StoreCode::kAbsent:
      return Lost(file, "is missing");
    default:
      return got.status;
  }
}

Status SetReader::ReadWhole(const ArchivedFile& file,
                            const Cancelled& cancelled, const Take& take) {
  std::vector<Part> units;
  RETURN_IF_ERROR(CutIntoUnits({file.file}, set_.unit_bytes, &units));
  for (const Part& unit : units) {
    Status status = MakeStatus(EndState::kDeadPeer, "");
    for (int tries = 0; tries < kTriesOfBytes &&
                        EndStateOf(status) == EndState::kDeadPeer;
         ++tries) {
      status = ReadUnit(file, unit, file.units[unit.id], cancelled, take);
    }
    RETURN_IF_ERROR(status);
  }
  return Status::OK();
}

Status SetReader::ReadText(CloneFileKind kind, uint64_t max_bytes,
                           const Cancelled& cancelled, std::string* text) {
  for (const ArchivedFile& file : set_.files) {
    if (file.file.kind != kind) {
      continue;
    }
    if (file.file.bytes > max_bytes) {
      return MakeStatus(EndState::kRefused,
                        CloneFileName(file.file) + ": expected at most " +
                            std::to_string(max_bytes) + " bytes, found " +
                            std::to_string(file.file.bytes));
    }
    RETURN_IF_ERROR(ReadWhole(file, cancelled,
                              [text](uint64_t offset, const Slice& piece) {
                                text->resize(static_cast<size_t>(offset));
                                text->append(piece.data(), piece.size());
                                return Status::OK();
                              }));
  }
  return Status::OK();
}

Status SetReader::ReadManifest(const Cancelled& cancelled, std::string* text,
                               ManifestState* state) {
  RETURN_IF_ERROR(
      ReadText(CloneFileKind::kManifest, kMaxManifestBytes, cancelled, text));
  uint64_t end = 0;
  const Status read = ReadManifestText(*text, state, &end);
  if (EndStateOf(read) == EndState::kCorrupt) {
    return BadManifest(read);
  }
  text->resize(static_cast<size_t>(end));
  return read;
}

// Returns the error for a damaged MANIFEST whose object has the right digest.
// It was already damaged when it was pushed.
Status SetReader::BadManifest(const Status& why) {
  Status status = why;
  for (const ArchivedFile& file : set_.files) {
    if (file.file.kind == CloneFileKind::kManifest) {
      status = Lost(file, MessageOf(why));
    }
  }
  return EndStateOf(status) == EndState::kCorrupt
             ? MakeStatus(EndState::kCorrupt, SentenceOf(status),
                          "sstferry archive list " +
                              ShellWord(store_->place()))
             : status;
}

Status SetReader::ReadChecked(const ArchivedFile& file, uint64_t offset,
                              uint64_t bytes, const Cancelled& cancelled,
                              const Check& check, std::string* out) {
  std::string what;
  for (int tries = 0; tries < kTriesOfBytes; ++tries) {
    out->clear();
    out->reserve(static_cast<size_t>(bytes));
    const StoreResult got = archive_.ReadFile(
        set_, file, offset, bytes, [&](const Slice& piece) {
          RETURN_IF_ERROR(CheckStopped(cancelled));
          out->append(piece.data(), piece.size());
          return Status::OK();
        });
    if (got.code == StoreCode::kAbsent) {
      return Lost(file, "is missing");
    }
    if (!got.ok() && got.code != StoreCode::kDamaged) {
      return got.status;
    }
    const Status status = got.ok() ? check(*out) : got.status;
    if (status.ok()) {
      return status;
    }
    what = MessageOf(status);
  }
  return Lost(file, what);
}

Status SetReader::Distrust(const ArchivedFile& file, uint64_t offset,
                           const std::string& what) {
  int tries = 0;
  {
    const std::lock_guard<std::mutex> lock(mu_);
    tries = ++tries_[{&file, offset}];
  }
  return tries < kTriesOfBytes
             ? MakeStatus(EndState::kDeadPeer,
                          store_->Describe(ArchiveKeyText(file.key)) +
                              ": wrong bytes, reading them again: " + what)
             : Lost(file, what);
}

Status SetReader::Lost(const ArchivedFile& file, const std::string& what) {
  const std::lock_guard<std::mutex> lock(lost_mu_);
  if (lost_.ok()) {
    lost_ = FindOut(ArchiveKeyText(file.key), what);
  }
  return lost_;
}

// Finds out why a file is lost. A prune deletes the `done` of a set before its
// files. So if the set is still committed, the missing file is damage.
Status SetReader::FindOut(const std::string& key, const std::string& what) {
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
  if (!summary.is_complete) {
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
      problem = one;  // this text also names the sets that use it
    }
  }
  return MakeStatus(EndState::kCorrupt, "set " + name + ": " + problem + "; " +
                                            NextBest(summary));
}

}  // namespace sstferry
