#include "pipeline/pull/clone_finish.h"

#include <algorithm>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>

#include "format/end_state.h"
#include "format/rocksdb/manifest_append.h"
#include "format/rocksdb/manifest_reader.h"
#include "pipeline/base/file_source.h"
#include "pipeline/disk/durable.h"
#include "pipeline/options/replica_options.h"
#include "pipeline/pull/file_check.h"
#include "rocksdb/env.h"

namespace sstferry {
namespace {

using rocksdb::IOOptions;
using rocksdb::Slice;
using rocksdb::Status;

constexpr size_t kPieceBytes = 1u << 20;

Status Bad(const std::string& what) {
  return MakeStatus(EndState::kCorrupt, "files of the clone: " + what);
}

// Does the work of one call of FinishClone().
class Finisher {
 public:
  Finisher(const CloneLayout& layout, const std::optional<std::string>& new_id,
           const RocksDbRelease& application,
           const std::vector<std::string>& families,
           rocksdb::FileSystem* file_system, FinishedClone* finished)
      : layout_(layout),
        new_id_(new_id),
        application_(application),
        families_(families),
        file_system_(file_system),
        finished_(finished) {
    for (const CloneFile& file : layout_.files()) {
      if (IsDataFile(file)) by_number_[file.number] = &file;
    }
  }

  [[nodiscard]] Status Run() {
    Status status = ReadManifest();
    if (status.ok()) status = CheckFiles();
    if (status.ok()) status = MoveReused();
    if (status.ok()) status = SetTimes();
    FaultPoint("FinishClone:ReusedMoved");
    if (status.ok()) status = WriteOptions();
    FaultPoint("FinishClone:OptionsWritten");
    if (status.ok()) status = WriteIdentity();
    if (status.ok()) status = WriteManifest();
    FaultPoint("FinishClone:ManifestWritten");
    return status.ok() ? SyncDirectory(file_system_, layout_.db_dir())
                       : status;
  }

 private:
  [[nodiscard]] Status ReadManifest();
  [[nodiscard]] Status CheckFiles();
  [[nodiscard]] Status CheckFamily(const ManifestFamily& family,
                                   std::set<uint64_t>* named);
  [[nodiscard]] Status CheckWhole(const ManifestFile& file);
  [[nodiscard]] Status MoveReused();
  [[nodiscard]] Status SetTimes();
  // Writes a file into db/, and adds it to finished_->written.
  [[nodiscard]] Status WriteText(const std::string& name,
                                 const std::string& text);
  [[nodiscard]] Status WriteOptions();
  [[nodiscard]] Status WriteIdentity();
  std::string Edits(uint64_t bytes) const;
  [[nodiscard]] Status WriteManifest();
  [[nodiscard]] Status Expect(CloneFileKind kind, uint64_t number,
                              uint64_t bytes, std::set<uint64_t>* named) const;
  bool IsKept(const ManifestFamily& family) const {
    return families_.empty() ||
           std::find(families_.begin(), families_.end(), family.name) !=
               families_.end();
  }
  bool takes_new_id() const {
    return new_id_.has_value() &&
           (!manifest_.state().database_id.empty() ||
            layout_.Find(CloneFileKind::kIdentity) != nullptr);
  }

  const CloneLayout& layout_;
  const std::optional<std::string>& new_id_;
  const RocksDbRelease application_;
  const std::vector<std::string>& families_;
  rocksdb::FileSystem* const file_system_;
  FinishedClone* const finished_;
  std::unordered_map<uint64_t, const CloneFile*> by_number_;  // data files
  ManifestReader manifest_;
};

Status Finisher::ReadManifest() {
  const CloneFile& file = *layout_.Find(CloneFileKind::kManifest);
  finished_->manifest = CloneFileName(file);
  std::unique_ptr<FileSource> source;
  RETURN_IF_ERROR(
      FileSource::Open(file_system_, layout_.PathOf(file), &source));
  Status status = manifest_.Follow(*source);
  if (status.IsNotSupported()) {
    status = MakeStatus(EndState::kIncompatible, MessageOf(status));
  }
  if (status.ok() && manifest_.end() != file.records_end) {
    status = Bad("expected complete records up to byte " +
                 std::to_string(file.records_end) + ", found " +
                 std::to_string(manifest_.end()));
  }
  return WithContext(status, EndState::kCorrupt,
                     finished_->manifest + " of the source");
}

Status Finisher::Expect(CloneFileKind kind, uint64_t number, uint64_t bytes,
                        std::set<uint64_t>* named) const {
  named->insert(number);
  const CloneFile wanted{kind, number, bytes, 0};
  const auto found = by_number_.find(number);
  if (found == by_number_.end() || found->second->kind != kind) {
    return Bad(CloneFileName(wanted) +
               ", which the MANIFEST names, is missing");
  }
  return found->second->bytes == bytes
             ? Status::OK()
             : Bad("expected " + std::to_string(bytes) + " bytes of " +
                   CloneFileName(wanted) + " as the MANIFEST says, found " +
                   std::to_string(found->second->bytes));
}

Status Finisher::CheckFamily(const ManifestFamily& family,
                             std::set<uint64_t>* named) {
  Status status;
  finished_->families.push_back(family.name);
  for (const auto& [number, file] : family.files) {
    if (status.ok()) {
      status = Expect(CloneFileKind::kTable, number, file.bytes, named);
    }
    if (status.ok() && file.path_id != 0) {
      status = Bad("expected all files in one directory, found one with path "
                   "id " + std::to_string(file.path_id));
    }
    if (status.ok()) status = CheckWhole(file);
    finished_->levels[file.level]++;
  }
  for (const auto& [number, blob] : family.blobs) {
    if (status.ok()) {
      status = Expect(CloneFileKind::kBlob, number,
                      blob.file_bytes(), named);
    }
  }
  return status;
}

// Compares a file with its checksum in the MANIFEST. Skips a file whose own
// checksums cover every byte, because such a file is already checked.
Status Finisher::CheckWhole(const ManifestFile& file) {
  const CloneFile& mine = *by_number_.at(file.number);
  if (!layout_.IsUnchecked(mine)) {
    return Status::OK();
  }
  bool compared = false;
  const Status status =
      CompareWithManifest(file_system_, layout_.PathOf(mine),
                          file.checksum_function, file.checksum, &compared);
  finished_->checked_whole += compared ? 1 : 0;
  return status;
}

Status Finisher::CheckFiles() {
  std::set<uint64_t> named;
  Status status;
  for (const auto& [id, family] : manifest_.state().families) {
    if (status.ok() && IsKept(family)) status = CheckFamily(family, &named);
  }
  for (const CloneFile& file : layout_.files()) {
    if (status.ok() && IsDataFile(file) && named.count(file.number) == 0) {
      status = Bad("found " + CloneFileName(file) +
                   ", which the MANIFEST does not name");
    }
  }
  return status;
}

// Moves the links from staging/ into db/. After this, no existing file in db/
// is written, so nothing is written through a link. An earlier run may have
// moved some of the links.
Status Finisher::MoveReused() {
  Status status;
  for (const CloneFile& file : layout_.files()) {
    std::string path;
    if (!status.ok() || !layout_.IsReused(file)) {
      continue;
    }
    if (!layout_.FindLink(file, &path)) {
      return Bad("the link to " + CloneFileName(file) + " with its " +
                 std::to_string(file.bytes) + " bytes is missing");
    }
    if (path != layout_.PathOf(file)) {
      status = WithContext(
          file_system_->RenameFile(path, layout_.PathOf(file), IOOptions(),
                                   nullptr),
          EndState::kInternal, "move " + path);
    }
  }
  return status;
}

// Sets the modification times of blob files. The next clone identifies a blob
// file by its time. If a power failure loses the time, the next clone receives
// the file again.
Status Finisher::SetTimes() {
  Status status;
  for (const CloneFile& file : layout_.files()) {
    if (status.ok() && file.kind == CloneFileKind::kBlob &&
        file.modified_ns != 0 && !layout_.IsReused(file)) {
      status = SetModifiedTime(layout_.PathOf(file), file.modified_ns);
    }
  }
  return status;
}

Status Finisher::WriteText(const std::string& name, const std::string& text) {
  finished_->written.push_back({name, text.size(), DigestOf(text)});
  return WriteDurably(file_system_, layout_.db_dir() + "/" + name, text);
}

Status Finisher::WriteOptions() {
  const CloneFile* const file = layout_.Find(CloneFileKind::kOptions);
  if (file == nullptr) {
    return Status::OK();
  }
  std::string text;
  const Status status =
      rocksdb::ReadFileToString(file_system_, layout_.PathOf(*file), &text);
  if (!status.ok()) {
    return WithContext(status, EndState::kInternal,
                       "read " + layout_.PathOf(*file));
  }
  return WriteText(CloneFileName(*file),
                   ReplicaOptionsText(text, application_, families_));
}

Status Finisher::WriteIdentity() {
  const CloneFile* const file = layout_.Find(CloneFileKind::kIdentity);
  std::string& id = finished_->database_id;
  if (takes_new_id()) {
    id = *new_id_;
  } else if (file != nullptr) {
    const Status status =
        rocksdb::ReadFileToString(file_system_, layout_.PathOf(*file), &id);
    if (!status.ok()) {
      return WithContext(status, EndState::kInternal,
                         "read " + layout_.PathOf(*file));
    }
  }
  while (!id.empty() && (id.back() == '\n' || id.back() == '\0')) {
    id.pop_back();
  }
  const Status status = id.empty() ? Status::OK() : WriteText("IDENTITY", id);
  if (!takes_new_id() && !manifest_.state().database_id.empty()) {
    id = manifest_.state().database_id;
  }
  return status;
}

// Returns the edits to append to a MANIFEST of `bytes` bytes: the drop of each
// family that is not selected, and the new database id. If the source's last
// sequence is 0, another edit sets it to 1 (pipeline/pull/first_sequence.h).
std::string Finisher::Edits(uint64_t bytes) const {
  const ManifestState& state = manifest_.state();
  std::string edits;
  for (const auto& [id, family] : state.families) {
    if (!IsKept(family)) {
      AppendDroppedFamily(bytes + edits.size(), id, &edits);
    }
  }
  if (takes_new_id() && !state.database_id.empty()) {
    AppendDatabaseId(bytes + edits.size(), finished_->database_id, &edits);
  }
  if (state.last_sequence == 0 && !finished_->levels.empty()) {
    AppendLastSequence(bytes + edits.size(), 1, &edits);
  }
  return edits;
}

// Writes the source's MANIFEST and the edits. Edits follow the last complete
// record, and replace an incomplete record at the end, which RocksDB would
// ignore. Without edits, the MANIFEST stays unchanged.
Status Finisher::WriteManifest() {
  const CloneFile& file = *layout_.Find(CloneFileKind::kManifest);
  const std::string edits = Edits(manifest_.end());
  std::unique_ptr<FileSource> source;
  Status status =
      FileSource::Open(file_system_, layout_.PathOf(file), &source);
  const std::string path = layout_.db_dir() + "/" + finished_->manifest;
  std::unique_ptr<rocksdb::FSWritableFile> out;
  if (status.ok()) {
    status = file_system_->NewWritableFile(path, rocksdb::FileOptions(), &out,
                                           nullptr);
  }
  if (!status.ok()) {
    return WithContext(status, EndStateOf(status), "write " + path);
  }
  const uint64_t bytes = edits.empty() ? file.bytes : manifest_.end();
  Digest128Stream content;
  std::string scratch;
  for (uint64_t at = 0; at < bytes && status.ok();) {
    const size_t n =
        static_cast<size_t>(std::min<uint64_t>(kPieceBytes, bytes - at));
    Slice piece;
    status = source->Read(at, n, &scratch, &piece);
    if (status.ok()) {
      content.Add(piece);
      status = out->Append(piece, IOOptions(), nullptr);
    }
    at += n;
  }
  if (status.ok() && !edits.empty()) {
    content.Add(edits);
    status = out->Append(edits, IOOptions(), nullptr);
  }
  finished_->written.push_back(
      {finished_->manifest, bytes + edits.size(), content.Finish()});
  if (status.ok()) status = out->Fsync(IOOptions(), nullptr);
  if (status.ok()) status = out->Close(IOOptions(), nullptr);
  return WithContext(status, EndStateOf(status), "write " + path);
}

}  // namespace

Status FinishClone(const CloneLayout& layout,
                   const std::optional<std::string>& new_id,
                   const RocksDbRelease& application,
                   const std::vector<std::string>& families,
                   rocksdb::FileSystem* file_system,
                   FinishedClone* finished) {
  *finished = FinishedClone();
  return Finisher(layout, new_id, application, families, file_system,
                  finished)
      .Run();
}

}  // namespace sstferry
