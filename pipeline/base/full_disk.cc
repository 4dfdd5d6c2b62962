#include "pipeline/base/full_disk.h"

#include <sys/statvfs.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "format/end_state.h"

namespace sstferry {
namespace {

using rocksdb::FileOptions;
using rocksdb::FSRandomRWFile;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

// Calls a function of RocksDB's file system. Returns NoSpace if the call failed
// and the errno means a lack of room.
template <typename Call>
IOStatus Judged(const Call& call) {
  errno = 0;
  const IOStatus status = call();
  return !status.ok() && !status.IsNoSpace() && IsOutOfRoom(errno)
             ? IOStatus::NoSpace(MessageOf(status))
             : status;
}

// Does the same as Judged() for a call that creates a file or directory. Adds
// the InodeNote() to the error.
template <typename Call>
IOStatus JudgedName(const std::string& name, const Call& call) {
  const IOStatus status = Judged(call);
  const std::string note = status.IsNoSpace() ? InodeNote(name) : "";
  return note.empty()
             ? status
             : rocksdb::status_to_io_status(
                   MakeStatus(EndState::kNoSpace, MessageOf(status) + note));
}

class FullDiskFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  explicit FullDiskFile(std::unique_ptr<FSWritableFile> file)
      : FSWritableFileOwnerWrapper(std::move(file)) {}
  IOStatus Append(const Slice& data, const IOOptions& options,
                  IODebugContext* dbg) override {
    return Judged([&] {
      return FSWritableFileOwnerWrapper::Append(data, options, dbg);
    });
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& info,
                  IODebugContext* dbg) override {
    return Judged([&] {
      return FSWritableFileOwnerWrapper::Append(data, options, info, dbg);
    });
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset,
                            const IOOptions& options,
                            IODebugContext* dbg) override {
    return Judged([&] {
      return FSWritableFileOwnerWrapper::PositionedAppend(data, offset,
                                                          options, dbg);
    });
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset,
                            const IOOptions& options,
                            const rocksdb::DataVerificationInfo& info,
                            IODebugContext* dbg) override {
    return Judged([&] {
      return FSWritableFileOwnerWrapper::PositionedAppend(data, offset,
                                                          options, info, dbg);
    });
  }
  // Syncs. Some file systems allocate the blocks only when the file is synced.
  IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
    return Judged([&] {
      return FSWritableFileOwnerWrapper::Sync(options, dbg);
    });
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
    return Judged([&] {
      return FSWritableFileOwnerWrapper::Fsync(options, dbg);
    });
  }
  IOStatus Close(const IOOptions& options, IODebugContext* dbg) override {
    return Judged([&] {
      return FSWritableFileOwnerWrapper::Close(options, dbg);
    });
  }
};

class FullDiskRandomFile : public rocksdb::FSRandomRWFileOwnerWrapper {
 public:
  explicit FullDiskRandomFile(std::unique_ptr<FSRandomRWFile> file)
      : FSRandomRWFileOwnerWrapper(std::move(file)) {}
  IOStatus Write(uint64_t offset, const Slice& data, const IOOptions& options,
                 IODebugContext* dbg) override {
    return Judged([&] {
      return FSRandomRWFileOwnerWrapper::Write(offset, data, options, dbg);
    });
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
    return Judged([&] {
      return FSRandomRWFileOwnerWrapper::Sync(options, dbg);
    });
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
    return Judged([&] {
      return FSRandomRWFileOwnerWrapper::Fsync(options, dbg);
    });
  }
  IOStatus Close(const IOOptions& options, IODebugContext* dbg) override {
    return Judged([&] {
      return FSRandomRWFileOwnerWrapper::Close(options, dbg);
    });
  }
};

class FullDiskFileSystem : public rocksdb::FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "sstferry.FullDisk"; }

  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* file,
                           IODebugContext* dbg) override {
    return Watched<FullDiskFile>(name, file, [&] {
      return FileSystemWrapper::NewWritableFile(name, options, file, dbg);
    });
  }
  IOStatus ReopenWritableFile(const std::string& name,
                              const FileOptions& options,
                              std::unique_ptr<FSWritableFile>* file,
                              IODebugContext* dbg) override {
    return Watched<FullDiskFile>(name, file, [&] {
      return FileSystemWrapper::ReopenWritableFile(name, options, file, dbg);
    });
  }
  IOStatus ReuseWritableFile(const std::string& name, const std::string& old,
                             const FileOptions& options,
                             std::unique_ptr<FSWritableFile>* file,
                             IODebugContext* dbg) override {
    return Watched<FullDiskFile>(name, file, [&] {
      return FileSystemWrapper::ReuseWritableFile(name, old, options, file,
                                                  dbg);
    });
  }
  IOStatus NewRandomRWFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSRandomRWFile>* file,
                           IODebugContext* dbg) override {
    return Watched<FullDiskRandomFile>(name, file, [&] {
      return FileSystemWrapper::NewRandomRWFile(name, options, file, dbg);
    });
  }
  IOStatus CreateDir(const std::string& name, const IOOptions& options,
                     IODebugContext* dbg) override {
    return JudgedName(name, [&] {
      return FileSystemWrapper::CreateDir(name, options, dbg);
    });
  }
  IOStatus CreateDirIfMissing(const std::string& name,
                              const IOOptions& options,
                              IODebugContext* dbg) override {
    return JudgedName(name, [&] {
      return FileSystemWrapper::CreateDirIfMissing(name, options, dbg);
    });
  }
  IOStatus LinkFile(const std::string& from, const std::string& to,
                    const IOOptions& options, IODebugContext* dbg) override {
    return JudgedName(to, [&] {
      return FileSystemWrapper::LinkFile(from, to, options, dbg);
    });
  }
  IOStatus RenameFile(const std::string& from, const std::string& to,
                      const IOOptions& options, IODebugContext* dbg) override {
    return Judged([&] {
      return FileSystemWrapper::RenameFile(from, to, options, dbg);
    });
  }

 private:
  template <typename Wrapper, typename File, typename Call>
  static IOStatus Watched(const std::string& name, std::unique_ptr<File>* file,
                          const Call& call) {
    const IOStatus status = JudgedName(name, call);
    if (status.ok()) {
      *file = std::make_unique<Wrapper>(std::move(*file));
    }
    return status;
  }
};

}  // namespace

bool IsOutOfRoom(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

std::string InodeNote(const std::string& path) {
  std::error_code error;
  std::filesystem::path at = std::filesystem::absolute(path, error);
  while (!error && at.has_relative_path() &&
         !std::filesystem::exists(at, error)) {
    at = at.parent_path();
  }
  struct statvfs info;
  return !error && statvfs(at.c_str(), &info) == 0 && info.f_files > 0 &&
                 info.f_favail == 0 && info.f_bavail > 0
             ? ": no inode is free, so no file can be made (df -i) until files "
               "are removed there"
             : "";
}

std::shared_ptr<rocksdb::FileSystem> MakeFullDiskFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base) {
  return std::make_shared<FullDiskFileSystem>(std::move(base));
}

}  // namespace sstferry
