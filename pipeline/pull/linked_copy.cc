#include "pipeline/pull/linked_copy.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "format/clone_file.h"
#include "format/end_state.h"
#include "format/options_line.h"
#include "pipeline/disk/durable.h"
#include "pipeline/options/replica_options.h"
#include "pipeline/snapshot/posix_files.h"
#include "pipeline/snapshot/snapshot_files.h"
#include "sstferry/descriptor.h"

namespace sstferry {
namespace {

using rocksdb::FileOptions;
using rocksdb::IOOptions;
using rocksdb::Status;

constexpr size_t kCopyBytes = 1u << 20;

class Copier {
 public:
  Copier(const LinkedCopyOptions& options, rocksdb::FileSystem* file_system,
         LinkedCopy* copy)
      : options_(options),
        file_system_(file_system),
        pinned_(options.scratch_dir + "/held"),
        files_(options.scratch_dir + "/db"),
        copy_(copy) {}

  Status Run() {
    RETURN_IF_ERROR(ResolveDatabase(options_.database_dir, &real_));
    if (options_.end) {
      RETURN_IF_ERROR(TakeStandby(*options_.end));
      return SyncDirectory(file_system_, options_.copy_dir);
    }
    for (const std::string& dir : {options_.scratch_dir, pinned_, files_}) {
      if (mkdir(dir.c_str(), 0700) != 0) {
        return ErrnoStatus(EndState::kInternal, "cannot create", dir, errno);
      }
    }
    RETURN_IF_ERROR(TakeFiles());
    std::error_code error;
    std::filesystem::remove_all(options_.scratch_dir, error);
    if (error) {
      return MakeStatus(EndState::kInternal, "remove " + options_.scratch_dir +
                                                 ": " + error.message());
    }
    return SyncDirectory(file_system_, options_.copy_dir);
  }

 private:
  // Lets the snapshot code link and copy a consistent set of files into the
  // scratch directory. Then links or copies each of these files into the copy
  // through the pull's file system.
  Status TakeFiles() {
    SnapshotOptions options;
    options.database_dir = real_;
    options.deadline = kOwnerPause;
    options.cancelled = options_.cancelled;
    SnapshotFiles files(options, pinned_, files_);
    RETURN_IF_ERROR(files.Take());
    std::vector<std::string> names;
    RETURN_IF_ERROR(ListDirectory(files_, &names));
    for (const std::string& name : names) {
      CloneFile file;
      const bool known = ParseCloneFileName(name, &file);
      RETURN_IF_ERROR(known && IsDataFile(file) ? TakeData(name)
                      : known && file.kind == CloneFileKind::kOptions
                          ? TakeOptions(name, files.options_text())
                          : CopyFile(files_ + "/" + name, name));
    }
    return Status::OK();
  }

  // Links or copies the files of a standby at the point in time `end`. The WAL
  // at that point is copied. Earlier WALs are linked, because they are durable
  // and never change. Later WALs are left out, because they have no records.
  Status TakeStandby(const StandbyEnd& end) {
    std::vector<std::string> names;
    RETURN_IF_ERROR(ListDirectory(real_, &names));
    for (const std::string& name : names) {
      CloneFile file;
      if (!ParseCloneFileName(name, &file)) {
        continue;
      }
      const std::string path = real_ + "/" + name;
      const bool is_wal = file.kind == CloneFileKind::kWal;
      if (IsDataFile(file) || (is_wal && file.number < end.wal_number)) {
        RETURN_IF_ERROR(Link(path, name));
      } else if (is_wal && file.number == end.wal_number) {
        RETURN_IF_ERROR(CopyFile(path, name, end.wal_bytes));
      } else if (name == end.manifest) {
        RETURN_IF_ERROR(CopyFile(path, name, end.manifest_bytes));
      } else if (file.kind == CloneFileKind::kOptions ||
                 file.kind == CloneFileKind::kIdentity) {
        RETURN_IF_ERROR(CopyFile(path, name));
      }
    }
    const std::string current = options_.copy_dir + "/CURRENT";
    RETURN_IF_ERROR(
        WriteDurably(file_system_, current, end.manifest + "\n"));
    return SetAccess(current, options_.file_access);
  }

  Status Link(const std::string& path, const std::string& name) {
    struct stat info;
    if (lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
      return MakeStatus(EndState::kCorrupt,
                        path + ": expected a file of the standby, found none");
    }
    copy_->files_linked++;
    copy_->bytes_linked += static_cast<uint64_t>(info.st_size);
    const rocksdb::IOStatus linked = file_system_->LinkFile(
        path, options_.copy_dir + "/" + name, IOOptions(), nullptr);
    return WithContext(linked, EndStateOf(linked), "link " + name);
  }

  Status TakeData(const std::string& name) {
    const std::string from = files_ + "/" + name;
    struct stat info;
    if (lstat(from.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
      return MakeStatus(EndState::kSourceError,
                        "cannot link " + options_.database_dir + "/" + name +
                            ": it is on a read-only file system");
    }
    if (!HasAccess(info, options_.file_access)) {
      copy_->files_copied++;
      return CopyFile(from, name);
    }
    copy_->files_linked++;
    copy_->bytes_linked += static_cast<uint64_t>(info.st_size);
    // Link the file by its name in the database as long as this name exists. A
    // file system that tracks names knows the file only by this name. The
    // application may delete the name at any time.
    const std::string to = options_.copy_dir + "/" + name;
    const std::string own = real_ + "/" + name;
    FileId wanted;
    FileId named;
    RETURN_IF_ERROR(FileIdOf(from, &wanted));
    RETURN_IF_ERROR(FileIdOfName(own, &named));
    if (wanted.IsSameFile(named) &&
        file_system_->LinkFile(own, to, IOOptions(), nullptr).ok()) {
      FileId made;
      RETURN_IF_ERROR(FileIdOfName(to, &made));
      if (wanted.IsSameFile(made)) {
        return Status::OK();
      }
      RETURN_IF_ERROR(RemoveTree(file_system_, to));
    }
    const rocksdb::IOStatus linked =
        file_system_->LinkFile(from, to, IOOptions(), nullptr);
    return WithContext(linked, EndStateOf(linked), "link " + name);
  }

  // Writes OPTIONS without the paths of directories, because the copy has its
  // WALs in its own directory.
  Status TakeOptions(const std::string& name, const std::string& text) {
    return WriteDurably(file_system_, options_.copy_dir + "/" + name,
                        ReplicaOptionsText(text, ReleaseOfOptions(text)));
  }

  // Copies the first `most_bytes` of a file; kCorrupt: the file is shorter.
  Status CopyFile(const std::string& path, const std::string& name,
                  std::optional<uint64_t> most_bytes = std::nullopt) {
    Descriptor from;
    RETURN_IF_ERROR(OpenPrivate(path, &from));
    if (!from.is_open()) {
      return MakeStatus(EndState::kInternal, path + " no longer exists");
    }
    FileId opened;
    RETURN_IF_ERROR(FileIdOf(from.get(), path, &opened));
    const DescriptorSource source(from.get(), path, opened.bytes);
    std::unique_ptr<rocksdb::FSWritableFile> file;
    const std::string to = options_.copy_dir + "/" + name;
    Status status =
        file_system_->NewWritableFile(to, FileOptions(), &file, nullptr);
    if (status.ok() && options_.end) {
      status = SetAccess(to, options_.file_access);
    }
    std::string scratch;
    const uint64_t bytes = most_bytes.value_or(source.size());
    if (status.ok() && bytes > source.size()) {
      status = MakeStatus(EndState::kCorrupt,
                          path + ": expected at least " +
                              std::to_string(bytes) + " bytes, found " +
                              std::to_string(source.size()));
    }
    for (uint64_t offset = 0; status.ok() && offset < bytes;) {
      const size_t n = static_cast<size_t>(
          std::min<uint64_t>(kCopyBytes, bytes - offset));
      rocksdb::Slice piece;
      status = source.Read(offset, n, &scratch, &piece);
      if (status.ok()) status = file->Append(piece, IOOptions(), nullptr);
      if (status.ok() && options_.cancelled && options_.cancelled()) {
        status = MakeStatus(EndState::kCancelled,
                            "stopped while copying a database");
      }
      offset += n;
    }
    if (status.ok()) status = file->Fsync(IOOptions(), nullptr);
    if (file != nullptr) {
      const rocksdb::IOStatus closed = file->Close(IOOptions(), nullptr);
      if (status.ok()) status = closed;
    }
    return WithContext(status, EndStateOf(status), "copy " + name);
  }

  const LinkedCopyOptions& options_;
  rocksdb::FileSystem* const file_system_;
  const std::string pinned_;
  const std::string files_;
  LinkedCopy* const copy_;
  std::string real_;
};

}  // namespace

Status MakeLinkedCopy(const LinkedCopyOptions& options,
                      rocksdb::FileSystem* file_system, LinkedCopy* copy) {
  *copy = LinkedCopy();
  const Status status = Copier(options, file_system, copy).Run();
  return WithContext(status, EndStateOf(status),
                     "copy " + options.database_dir + " with hard links");
}

LinkedCopy CountLinks(const std::string& database_dir,
                      const std::string& copy_dir) {
  LinkedCopy found;
  std::vector<std::string> names;
  ListDirectory(copy_dir, &names).PermitUncheckedError();  // error: no links
  for (const std::string& name : names) {
    CloneFile file;
    struct stat ours;
    struct stat theirs;
    if (ParseCloneFileName(name, &file) && IsDataFile(file) &&
        lstat((copy_dir + "/" + name).c_str(), &ours) == 0 &&
        lstat((database_dir + "/" + name).c_str(), &theirs) == 0 &&
        ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev) {
      found.files_linked++;
      found.bytes_linked += static_cast<uint64_t>(ours.st_size);
    }
  }
  return found;
}

}  // namespace sstferry
