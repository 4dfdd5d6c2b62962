#include "pipeline/snapshot/snapshot_manifest.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "format/end_state.h"
#include "format/limits.h"
#include "pipeline/base/database_open.h"
#include "pipeline/base/standby_record.h"

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr char kManifestPrefix[] = "MANIFEST-";
// Maximum time to wait for an owner that is replacing its MANIFEST. The owner
// normally needs less time.
constexpr std::chrono::milliseconds kMostWait{2'000};
constexpr std::chrono::milliseconds kReadPause{5};
// If a record was found damaged in this number of reads and no process has the
// database open, the record is really damaged.
constexpr int kManifestLooks = 4;

// Sets *manifest to the name of a standby's MANIFEST. The standby's own record
// has this name, because its CURRENT does not.
Status ReadStandby(const std::string& directory, std::string* manifest) {
  bool found = false;
  FollowFile record;
  RETURN_IF_ERROR(ReadStandbyRecord(directory, &found, &record));
  if (!found) {
    return MakeStatus(EndState::kSourceError,
                      "no CURRENT file in " + directory +
                          ": this is not a RocksDB database");
  }
  *manifest = ManifestNameOf(record);
  return Status::OK();
}

Status ReadCurrent(const std::string& directory, std::string* manifest) {
  bool found = false;
  std::string text;
  RETURN_IF_ERROR(ReadForeign(directory + "/CURRENT", kMaxIdentityBytes,
                              &found, &text));
  if (!found || text == kStandbyCurrent) {
    return ReadStandby(directory, manifest);
  }
  const size_t prefix = sizeof(kManifestPrefix) - 1;
  if (text.size() < prefix + 2 || text.back() != '\n' ||
      text.rfind(kManifestPrefix, 0) != 0 ||
      text.find_first_not_of("0123456789", prefix) != text.size() - 1) {
    return MakeStatus(EndState::kCorrupt,
                      directory + "/CURRENT: expected the name of a MANIFEST "
                      "and a line end, found something else");
  }
  text.pop_back();
  *manifest = text;
  return Status::OK();
}

}  // namespace

Status ManifestTail::Begin(const std::string& name, const FileId& file) {
  name_ = name;
  identity_ = FileId();
  generation_++;
  reader_ = std::make_unique<ManifestReader>(
      watch_ ? [this](const VersionEdit& edit, const ManifestState& before) {
        watch_(edit, before, reader_->end());
      } : ManifestReader::Watch());
  end_ = 0;
  bytes_ = 0;
  tail_age_ = 0;
  const std::string path = directory_ + "/" + name;
  FileId opened;
  RETURN_IF_ERROR(OpenForeign(path, &file_));
  if (file_.is_open()) {
    RETURN_IF_ERROR(FileIdOf(file_.get(), path, &opened));
  }
  if (!opened.IsSameFile(file)) {
    return Status::NotFound(path + " is missing");
  }
  identity_ = opened;
  return Status::OK();
}

Status ManifestTail::Follow(bool* changed) {
  *changed = false;
  // A damaged record is read again. On a network file system, the pages of one
  // append may become visible in another order than they were written.
  const auto end = std::chrono::steady_clock::now() + kMostWait;
  for (int looks = 1;; ++looks) {
    bool changed_now = false;
    const Status status = Look(&changed_now);
    *changed = *changed || changed_now;
    const bool is_damaged = reader_ != nullptr && reader_->is_damaged();
    if (status.ok() || !is_damaged) {
      return status;
    }
    if (looks >= kManifestLooks &&
        (IsDatabaseClosed(directory_) ||
         std::chrono::steady_clock::now() >= end)) {
      return status;
    }
    std::this_thread::sleep_for(kReadPause);
  }
}

Status ManifestTail::Look(bool* changed) {
  *changed = false;
  std::string name;
  RETURN_IF_ERROR(ReadCurrent(directory_, &name));
  const std::string path = directory_ + "/" + name;
  FileId named;
  RETURN_IF_ERROR(FileIdOf(path, &named));
  if (name != name_ || !named.IsSameFile(identity_)) {
    *changed = true;
    RETURN_IF_ERROR(Begin(name, named));
  }
  const uint64_t before = end_;
  const uint64_t bytes = named.bytes;
  const Status status =
      reader_->Follow(DescriptorSource(file_.get(), path, bytes));
  end_ = reader_->end();
  if (status.IsTryAgain()) {
    return status;
  }
  tail_age_ = end_ == before && bytes == bytes_ ? tail_age_ + 1 : 0;
  bytes_ = std::max(bytes, end_);
  *changed = *changed || end_ != before;
  return WithContext(status, EndState::kSourceError, path);
}

uint64_t ManifestTail::number() const {
  return name_.empty() ? 0
                       : strtoull(name_.c_str() + sizeof(kManifestPrefix) - 1,
                                  nullptr, 10);
}

Status ManifestTail::Read() {
  const auto end = std::chrono::steady_clock::now() + kMostWait;
  for (;;) {
    bool unused = false;
    const Status status = Follow(&unused);
    const bool may_pass = status.IsNotFound() || status.IsTryAgain();
    if (!may_pass || std::chrono::steady_clock::now() >= end) {
      return may_pass ? MakeStatus(EndState::kSourceError, MessageOf(status))
                      : status;
    }
    std::this_thread::sleep_for(kReadPause);
  }
}

Status ManifestTail::CopyInto(const std::string& directory) const {
  uint64_t copied = 0;
  Status status = CopyPrefix(file_.get(), directory_ + "/" + name_,
                             directory + "/" + name_, bytes_, &copied);
  if (status.ok() && copied != bytes_) {
    status = Status::TryAgain(name_ + " was truncated during the copy");
  }
  return status.ok() ? WriteSmallFile(directory + "/CURRENT", name_ + "\n")
                     : status;
}

Status ManifestTail::Digest(uint64_t begin, uint64_t end,
                            Digest128Stream* digest) const {
  return AddToDigest(
      DescriptorSource(file_.get(), directory_ + "/" + name_, end), begin, end,
      digest);
}

Status ManifestTail::DigestOfBegin(uint64_t bytes, Digest128* digest) const {
  Digest128Stream stream;
  RETURN_IF_ERROR(Digest(0, bytes, &stream));
  *digest = stream.Finish();
  return Status::OK();
}

Status DigestOfFileBegin(const std::string& path, uint64_t bytes,
                         Digest128* digest) {
  Descriptor file;
  RETURN_IF_ERROR(OpenPrivate(path, &file));
  Digest128Stream stream;
  RETURN_IF_ERROR(AddToDigest(DescriptorSource(file.get(), path, bytes), 0,
                              bytes, &stream));
  *digest = stream.Finish();
  return Status::OK();
}

Status ReadDatabaseId(const std::string& directory, const ManifestState& state,
                      std::string* id) {
  *id = state.database_id;
  if (!id->empty()) {
    return Status::OK();
  }
  bool found = false;
  const Status status = ReadForeign(directory + "/IDENTITY",
                                      kMaxIdentityBytes, &found, id);
  if (!id->empty() && id->back() == '\n') {
    id->pop_back();
  }
  return status;
}

Status ReadDatabaseId(const std::string& directory, std::string* id) {
  std::string real;
  RETURN_IF_ERROR(ResolveDatabase(directory, &real));
  ManifestTail manifest(real);
  const Status read = manifest.Read();
  RETURN_IF_ERROR(ReadDatabaseId(
      real, read.ok() ? manifest.state() : ManifestState(), id));
  if (!id->empty()) {
    return Status::OK();
  }
  RETURN_IF_ERROR(read);
  return manifest.has_tail()
             ? MakeStatus(EndState::kCorrupt,
                          real + "/" + manifest.name() +
                              ": expected whole records only, found other "
                              "bytes after the last one")
             : Status::OK();
}

}  // namespace sstferry
