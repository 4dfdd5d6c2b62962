#include "pipeline/archive/snapshot_source.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "format/end_state.h"
#include "format/limits.h"
#include "format/options_line.h"
#include "format/part.h"
#include "format/release.h"
#include "pipeline/base/file_source.h"
#include "pipeline/parts/unit_sender.h"
#include "rocksdb/file_system.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr size_t kReadBytes = 1u << 20;

}  // namespace

Status SnapshotSource::Take(SnapshotOptions options,
                            std::unique_ptr<SnapshotSource>* source) {
  options.as_files = true;
  const std::function<bool()> cancelled = options.cancelled;
  std::unique_ptr<Snapshot> snapshot;
  RETURN_IF_ERROR(Snapshot::Create(options, &snapshot));
  source->reset(new SnapshotSource(std::move(snapshot), cancelled));
  return (*source)->Describe();
}

Status SnapshotSource::Describe() {
  const ClonedFiles& files = *snapshot_->files();
  if (files.files.size() > kMaxParts ||
      snapshot_->families().size() > kMaxFamilies ||
      snapshot_->database_id().size() > kMaxIdentifierBytes) {
    return MakeStatus(EndState::kRefused,
                      "push: expected at most " + std::to_string(kMaxParts) +
                          " files and " + std::to_string(kMaxFamilies) +
                          " column families, found " +
                          std::to_string(files.files.size()) + " and " +
                          std::to_string(snapshot_->families().size()) +
                          ", or an id of the database that is too long");
  }
  set_.database_id = snapshot_->database_id();
  set_.sequence = snapshot_->sequence();
  set_.content = files.content;
  set_.application = ReleaseName(ReleaseOfOptions(snapshot_->options_text()));
  set_.needs = ReleaseName(files.needs.release());
  set_.needs_because = files.needs.what();
  for (const SnapshotFamily& family : snapshot_->families()) {
    if (family.name.size() > kMaxFamilyNameBytes) {
      return MakeStatus(EndState::kRefused,
                        "push: expected names of column families of at most " +
                            std::to_string(kMaxFamilyNameBytes) +
                            " bytes, found " +
                            std::to_string(family.name.size()));
    }
    set_.families.push_back(family.name);
  }
  set_.notes = snapshot_->notes();
  set_.notes.resize(std::min<size_t>(set_.notes.size(), kMaxNotes));
  for (const CloneFile& file : files.files) {
    set_.files.emplace_back().file = file;
  }
  std::vector<Part> units;
  Status cut = CutIntoUnits(files.files, set_.unit_bytes, &units);
  while (!cut.ok() && set_.unit_bytes < kMaxChunkBytes) {
    set_.unit_bytes = std::min(2 * set_.unit_bytes, kMaxChunkBytes);
    cut = CutIntoUnits(files.files, set_.unit_bytes, &units);
  }
  return cut;
}

std::string SnapshotSource::PathOf(size_t file) const {
  return snapshot_->own_path() + "/db/" + CloneFileName(set_.files[file].file);
}

Status SnapshotSource::Open(size_t file, std::unique_ptr<ByteSource>* bytes) {
  std::unique_ptr<FileSource> opened;
  RETURN_IF_ERROR(FileSource::Open(rocksdb::FileSystem::Default().get(),
                                   PathOf(file), &opened,
                                   EndState::kSourceError));
  if (opened->size() < set_.files[file].file.bytes) {
    return MakeStatus(EndState::kSourceError,
                      CloneFileName(set_.files[file].file) + ": expected " +
                          std::to_string(set_.files[file].file.bytes) +
                          " bytes, found " + std::to_string(opened->size()));
  }
  // A MANIFEST or a WAL may have grown, where it is the source's own.
  *bytes = std::make_unique<SourcePiece>(std::move(opened), 0,
                                         set_.files[file].file.bytes);
  return Status::OK();
}

Status SnapshotSource::Digest(size_t file, FileDigests* digests) {
  const CloneFile& known = set_.files[file].file;
  const std::string where = CloneFileName(known);
  const auto on_read = [this](uint64_t) {
    return !cancelled_ || !cancelled_();
  };
  RETURN_IF_ERROR(CheckUnitFile(PathOf(file), known, on_read));
  std::unique_ptr<ByteSource> bytes;
  RETURN_IF_ERROR(Open(file, &bytes));
  FileDigester digester(known, set_.unit_bytes);
  std::string scratch;
  for (uint64_t at = 0; at < known.bytes;) {
    if (!on_read(0)) {
      return MakeStatus(EndState::kCancelled, "push: stopped on request");
    }
    const auto count = static_cast<size_t>(
        std::min<uint64_t>(kReadBytes, known.bytes - at));
    Slice piece;
    RETURN_IF_ERROR(WithContext(bytes->Read(at, count, &scratch, &piece),
                                EndState::kSourceError, where));
    digester.Add(piece);
    at += count;
  }
  *digests = digester.Finish();
  return Status::OK();
}

}  // namespace sstferry
