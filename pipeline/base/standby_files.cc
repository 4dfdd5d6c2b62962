#include "pipeline/base/standby_files.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>

#include "format/digest.h"
#include "format/end_state.h"
#include "format/file_name.h"
#include "format/rocksdb/manifest_reader.h"
#include "pipeline/base/file_source.h"
#include "pipeline/base/known_fault.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/base/standby_record.h"
#include "sstferry/options.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Checks the size of the file at `path`. If `or_more` is true, the file may be
// larger. `names` is the file that records the size, for messages.
Status CheckSize(const std::string& path, const std::string& names,
                 uint64_t bytes, bool or_more) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) {
    const bool is_missing = errno == ENOENT;
    return MakeStatus(
        is_missing ? EndState::kCorrupt : EndState::kDenied,
        path + ": " +
            (is_missing ? names + " names it, but it is missing"
                        : "cannot be looked at: " +
                              std::string(std::strerror(errno))));
  }
  const auto found = static_cast<uint64_t>(info.st_size);
  const bool is_right = found == bytes || (or_more && found > bytes);
  if (S_ISREG(info.st_mode) && is_right) {
    return Status::OK();
  }
  return MakeStatus(
      EndState::kCorrupt,
      path + ": expected " + (or_more ? "at least " : "") +
          std::to_string(bytes) + " bytes, as " + names + " says, found " +
          (S_ISREG(info.st_mode) ? std::to_string(found)
                                 : "something that is not a file"));
}

// Reads the MANIFEST, and checks that it begins with the bytes of the last cut.
Status ReadManifestOf(rocksdb::FileSystem* file_system,
                      const std::string& path, const FollowFile& record,
                      ManifestReader* reader) {
  RETURN_IF_ERROR(CheckSize(path, kFollowFileName, record.manifest_bytes,
                            /*or_more=*/true));
  std::unique_ptr<FileSource> source;
  RETURN_IF_ERROR(FileSource::Open(file_system, path, &source));
  Digest128Stream digest;
  RETURN_IF_ERROR(AddToDigest(*source, 0, record.manifest_bytes, &digest));
  if (!(digest.Finish() == record.manifest_digest)) {
    return MakeStatus(EndState::kCorrupt,
                      path + ": its first " +
                          std::to_string(record.manifest_bytes) +
                          " bytes changed since the last cut");
  }
  const Status status = reader->Follow(*source);
  return WithContext(status, EndStateOf(status), path);
}

}  // namespace

Status CheckStandbyFiles(rocksdb::FileSystem* file_system,
                         const std::string& dir, const FollowFile& record) {
  const std::string manifest = ManifestNameOf(record);
  ManifestReader reader;
  RETURN_IF_ERROR(
      ReadManifestOf(file_system, dir + "/" + manifest, record, &reader));
  const ManifestState& state = reader.state();
  for (const auto& [id, family] : state.families) {
    for (const auto& [number, file] : family.files) {
      RETURN_IF_ERROR(CheckSize(dir + "/" + NumberedName(number, ".sst"),
                                manifest, file.bytes, /*or_more=*/false));
    }
    for (const auto& [number, blob] : family.blobs) {
      RETURN_IF_ERROR(CheckSize(dir + "/" + NumberedName(number, ".blob"),
                                manifest, blob.file_bytes(),
                                /*or_more=*/false));
    }
  }
  for (const auto& [number, bytes] : state.wals) {
    if (number >= state.min_log_number_to_keep) {
      RETURN_IF_ERROR(CheckSize(dir + "/" + NumberedName(number, ".log"),
                                manifest,
                                bytes == kUnknownWalBytes ? 0 : bytes,
                                /*or_more=*/true));
    }
  }
  const FollowMark mark = ReadFollowMark(dir);
  if (mark.wal_number != 0) {
    RETURN_IF_ERROR(CheckSize(dir + "/" + NumberedName(mark.wal_number, ".log"),
                              kFollowMarkName, mark.wal_bytes,
                              /*or_more=*/true));
  }
  for (const CutWal& wal : record.wals) {
    RETURN_IF_ERROR(CheckSize(dir + "/" + NumberedName(wal.number, ".log"),
                              kFollowFileName, wal.bytes, /*or_more=*/true));
  }
  struct stat info;
  const std::string path = dir + "/" + kLastTransferName;
  return lstat(path.c_str(), &info) == 0 || errno != ENOENT
             ? Status::OK()
             : MakeStatus(EndState::kCorrupt,
                          path + ": expected this file, which each cut writes, "
                                 "found none: sstferry removes it if it finds "
                                 "a fault of the standby and cannot record it");
}

Status FindStandbyFault(rocksdb::FileSystem* file_system,
                        const std::string& dir, HealthFile* fault,
                        const std::function<Status(const FollowFile&)>&
                            check_more) {
  bool found = false;
  FollowFile record;
  FollowFile after;
  RETURN_IF_ERROR(ReadStandbyRecord(dir, &found, &after));
  Status status;
  do {
    record = after;
    RETURN_IF_ERROR(ReadKnownFault(dir, fault));
    status = fault->fault == ReplicaFault::kNone
                 ? CheckStandbyFiles(file_system, dir, record)
                 : Status::OK();
    if (status.ok() && fault->fault == ReplicaFault::kNone && check_more) {
      status = check_more(record);
    }
    // Check again if a follower has written a new record meanwhile.
    RETURN_IF_ERROR(ReadStandbyRecord(dir, &found, &after));
  } while (!(after == record));
  if (EndStateOf(status) != EndState::kCorrupt) {
    return status;  // OK, or the files cannot be read
  }
  fault->fault = ReplicaFault::kDamaged;
  fault->what = MessageOf(status);
  return Status::OK();
}

std::string MendStandbyCommand(const std::string& source,
                               const std::string& dir) {
  return "sstferry follow " + ShellWord(source) + " " + ShellWord(dir);
}

}  // namespace sstferry
