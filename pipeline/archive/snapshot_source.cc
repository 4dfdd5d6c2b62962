#include "pipeline/archive/snapshot_source.h"

#include <utility>
#include <vector>

#include "format/end_state.h"
#include "pipeline/base/file_source.h"
#include "pipeline/base/known_fault.h"
#include "pipeline/parts/unit_sender.h"
#include "pipeline/serve/clone_planner.h"
#include "pipeline/snapshot/posix_files.h"
#include "rocksdb/file_system.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

class SnapshotFile : public SetFile {
 public:
  // For `own`, see InDatabaseNames().
  SnapshotFile(const std::string& own, const std::string& directory,
               const CloneFile& file, uint64_t unit_bytes,
               std::function<bool()> cancelled)
      : own_(own),
        directory_(directory),
        path_(own + CloneFileName(file)),
        file_(file),
        unit_bytes_(unit_bytes),
        cancelled_(std::move(cancelled)) {}

  [[nodiscard]] Status Open() {
    RETURN_IF_ERROR(Named(FileSource::Open(rocksdb::FileSystem::Default().get(),
                                           path_, &opened_,
                                           EndState::kSourceError)));
    return opened_->size() >= file_.bytes
               ? Status::OK()
               : MakeStatus(EndState::kSourceError,
                            directory_ + "/" + CloneFileName(file_) +
                                ": expected " + std::to_string(file_.bytes) +
                                " bytes, found " +
                                std::to_string(opened_->size()));
  }

  // Returns the size in the snapshot. The file itself may be larger, because a
  // MANIFEST or WAL of an open database grows.
  uint64_t size() const override { return file_.bytes; }
  [[nodiscard]] Status Read(uint64_t offset, size_t n, std::string* scratch,
                            Slice* out) const override {
    return Named(opened_->Read(offset, n, scratch, out));
  }
  [[nodiscard]] Status Digest(uint64_t offset, uint64_t bytes,
                              FileDigests* digests) override {
    FileDigestReply reply;
    RETURN_IF_ERROR(Named(DigestPiece(
        path_, file_, unit_bytes_, {0, offset, bytes},
        [this](uint64_t) { return !cancelled_ || !cancelled_(); }, &buffer_,
        &reply)));
    digests->Add(reply);
    return Status::OK();
  }

 private:
  Status Named(const Status& status) const {
    return InDatabaseNames(status, own_, directory_);
  }

  const std::string own_;
  const std::string directory_;
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
  RETURN_IF_ERROR(CheckNoKnownFault(options.database_dir));
  const std::function<bool()> cancelled = options.cancelled;
  std::unique_ptr<Snapshot> snapshot;
  RETURN_IF_ERROR(Snapshot::Create(options, &snapshot));
  source->reset(new SnapshotSource(options.database_dir, std::move(snapshot),
                                   cancelled));
  return (*source)->Describe();
}

// Fills set_ from the plan that a server makes for a push. So a local push and
// a push from a server describe a database in the same way.
Status SnapshotSource::Describe() {
  OpenRequest request;
  request.chunk_bytes = kSetChunkBytes;
  TransferPlan plan;
  RETURN_IF_ERROR(PlanClone(*snapshot_, request, &plan));
  DescribeSource(*snapshot_, plan, &plan.opened);
  set_ = SetOfPlan(plan);
  return Status::OK();
}

Status SnapshotSource::Open(size_t file, std::unique_ptr<SetFile>* opened) {
  const CloneFile& known = set_.files[file].file;
  auto bytes = std::make_unique<SnapshotFile>(
      snapshot_->own_path() + "/db/", directory_, known, set_.unit_bytes,
      cancelled_);
  RETURN_IF_ERROR(bytes->Open());
  *opened = std::move(bytes);
  return Status::OK();
}

Status SnapshotSource::Finish() {
  return CheckLinkedFiles(snapshot_->own_path() + "/db");
}

}  // namespace sstferry
