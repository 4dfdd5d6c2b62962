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

class SnapshotFile : public SetFile {
 public:
  SnapshotFile(std::string path, const CloneFile& file, uint64_t unit_bytes,
               std::function<bool()> cancelled)
      : path_(std::move(path)),
        file_(file),
        unit_bytes_(unit_bytes),
        cancelled_(std::move(cancelled)) {}

  [[nodiscard]] Status Open() {
    RETURN_IF_ERROR(FileSource::Open(rocksdb::FileSystem::Default().get(),
                                     path_, &opened_,
                                     EndState::kSourceError));
    return opened_->size() >= file_.bytes
               ? Status::OK()
               : MakeStatus(EndState::kSourceError,
                            CloneFileName(file_) + ": expected " +
                                std::to_string(file_.bytes) +
                                " bytes, found " +
                                std::to_string(opened_->size()));
  }

  // The opened file may be larger: a live MANIFEST or WAL grows.
  uint64_t size() const override { return file_.bytes; }
  [[nodiscard]] Status Read(uint64_t offset, size_t n, std::string* scratch,
                            Slice* out) const override {
    return opened_->Read(offset, n, scratch, out);
  }
  [[nodiscard]] Status Digest(uint64_t offset, uint64_t bytes,
                              FileDigests* digests) override {
    FileDigestReply reply;
    RETURN_IF_ERROR(DigestPiece(
        path_, file_, unit_bytes_, {0, offset, bytes},
        [this](uint64_t) { return !cancelled_ || !cancelled_(); }, &buffer_,
        &reply));
    digests->Add(reply);
    return Status::OK();
  }

 private:
  const std::string path_;
  const CloneFile& file_;
  const uint64_t unit_bytes_;
  const std::function<bool()> cancelled_;
  std::unique_ptr<FileSource> opened_;
  std::vector<char> buffer_;
};

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

Status SnapshotSource::Open(size_t file, std::unique_ptr<SetFile>* opened) {
  const CloneFile& known = set_.files[file].file;
  auto bytes = std::make_unique<SnapshotFile>(
      snapshot_->own_path() + "/db/" + CloneFileName(known), known,
      set_.unit_bytes, cancelled_);
  RETURN_IF_ERROR(bytes->Open());
  *opened = std::move(bytes);
  return Status::OK();
}

}  // namespace sstferry
