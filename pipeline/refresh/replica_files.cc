#include "pipeline/refresh/replica_files.h"

#include <atomic>
#include <mutex>
#include <set>
#include <vector>

#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/env.h"

namespace sstferry {
namespace {

using rocksdb::FileOptions;
using rocksdb::FSDirectory;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

constexpr char kOptionsPrefix[] = "OPTIONS-";
constexpr char kTemporarySuffix[] = ".dbtmp";
constexpr char kWalSuffix[] = ".log";

// Refuses every call that would change a file or directory.
class ReadOnlyFileSystem : public rocksdb::FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "sstferry.ReadOnly"; }

  IOStatus NewWritableFile(const std::string& name, const FileOptions&,
                           std::unique_ptr<FSWritableFile>*,
                           IODebugContext*) override {
    return No(name);
  }
  IOStatus ReopenWritableFile(const std::string& name, const FileOptions&,
                              std::unique_ptr<FSWritableFile>*,
                              IODebugContext*) override {
    return No(name);
  }
  IOStatus ReuseWritableFile(const std::string& name, const std::string&,
                             const FileOptions&,
                             std::unique_ptr<FSWritableFile>*,
                             IODebugContext*) override {
    return No(name);
  }
  IOStatus NewRandomRWFile(const std::string& name, const FileOptions&,
                           std::unique_ptr<rocksdb::FSRandomRWFile>*,
                           IODebugContext*) override {
    return No(name);
  }
  IOStatus DeleteFile(const std::string& name, const IOOptions&,
                      IODebugContext*) override {
    return No(name);
  }
  IOStatus Truncate(const std::string& name, size_t, const IOOptions&,
                    IODebugContext*) override {
    return No(name);
  }
  IOStatus CreateDir(const std::string& name, const IOOptions&,
                     IODebugContext*) override {
    return No(name);
  }
  IOStatus CreateDirIfMissing(const std::string& name, const IOOptions&,
                              IODebugContext*) override {
    return No(name);
  }
  IOStatus DeleteDir(const std::string& name, const IOOptions&,
                     IODebugContext*) override {
    return No(name);
  }
  IOStatus RenameFile(const std::string& name, const std::string&,
                      const IOOptions&, IODebugContext*) override {
    return No(name);
  }
  IOStatus LinkFile(const std::string& name, const std::string&,
                    const IOOptions&, IODebugContext*) override {
    return No(name);
  }
  IOStatus LockFile(const std::string& name, const IOOptions&,
                    rocksdb::FileLock**, IODebugContext*) override {
    return No(name);
  }

 private:
  static IOStatus No(const std::string& name) {
    return IOStatus::IOError(name, "is open for reading only");
  }
};

// Remembers if any call has failed. Threads: any.
class Failures {
 public:
  IOStatus Note(IOStatus status) {
    if (!status.ok()) {
      failed_ = true;
    }
    return status;
  }
  bool any() const { return failed_; }

 private:
  std::atomic<bool> failed_{false};
};

// A file that reports its failures to a Failures object.
class ReplicaFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  ReplicaFile(std::unique_ptr<FSWritableFile> file,
              std::shared_ptr<Failures> failures)
      : FSWritableFileOwnerWrapper(std::move(file)),
        failures_(std::move(failures)) {}

  IOStatus Append(const Slice& data, const IOOptions& options,
                  IODebugContext* dbg) override {
    return failures_->Note(target()->Append(data, options, dbg));
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& info,
                  IODebugContext* dbg) override {
    return failures_->Note(target()->Append(data, options, info, dbg));
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset,
                            const IOOptions& options,
                            IODebugContext* dbg) override {
    return failures_->Note(
        target()->PositionedAppend(data, offset, options, dbg));
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset,
                            const IOOptions& options,
                            const rocksdb::DataVerificationInfo& info,
                            IODebugContext* dbg) override {
    return failures_->Note(
        target()->PositionedAppend(data, offset, options, info, dbg));
  }
  IOStatus Truncate(uint64_t size, const IOOptions& options,
                    IODebugContext* dbg) override {
    return failures_->Note(target()->Truncate(size, options, dbg));
  }
  IOStatus Flush(const IOOptions& options, IODebugContext* dbg) override {
    return failures_->Note(target()->Flush(options, dbg));
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
    return failures_->Note(target()->Sync(options, dbg));
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
    return failures_->Note(target()->Fsync(options, dbg));
  }
  IOStatus RangeSync(uint64_t offset, uint64_t bytes, const IOOptions& options,
                     IODebugContext* dbg) override {
    return failures_->Note(target()->RangeSync(offset, bytes, options, dbg));
  }
  IOStatus Close(const IOOptions& options, IODebugContext* dbg) override {
    return failures_->Note(target()->Close(options, dbg));
  }

 private:
  const std::shared_ptr<Failures> failures_;
};

// A directory that reports its failures to a Failures object.
class ReplicaDirectory : public FSDirectory {
 public:
  ReplicaDirectory(std::unique_ptr<FSDirectory> base,
                   std::shared_ptr<Failures> failures)
      : base_(std::move(base)), failures_(std::move(failures)) {}
  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
    return failures_->Note(base_->Fsync(options, dbg));
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* dbg,
                               const rocksdb::DirFsyncOptions& how) override {
    return failures_->Note(base_->FsyncWithDirOptions(options, dbg, how));
  }
  IOStatus Close(const IOOptions& options, IODebugContext* dbg) override {
    return base_->Close(options, dbg);
  }
  size_t GetUniqueId(char* id, size_t max_size) const override {
    return base_->GetUniqueId(id, max_size);
  }

 private:
  const std::unique_ptr<FSDirectory> base_;
  const std::shared_ptr<Failures> failures_;
};

// The file system of MakeReplicaFileSystem().
//
// Threads: any.
class ReplicaFileSystem : public SyncWatchingFileSystem {
 public:
  ReplicaFileSystem(std::shared_ptr<rocksdb::FileSystem> base,
                    const std::string& dir, std::string options_text,
                    std::shared_ptr<const std::string> offered)
      : SyncWatchingFileSystem(std::move(base)),
        inside_(dir + "/"),
        offered_(std::move(offered)),
        options_text_(std::move(options_text)) {}
  const char* Name() const override { return "sstferry.Replica"; }

  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* file,
                           IODebugContext* dbg) override {
    return Watch(target()->NewWritableFile(name, options, file, dbg), file);
  }
  IOStatus ReopenWritableFile(const std::string& name,
                              const FileOptions& options,
                              std::unique_ptr<FSWritableFile>* file,
                              IODebugContext* dbg) override {
    // Do not let recovery truncate a WAL to remove its preallocated space. The
    // file may be a hard link to the WAL of an open database.
    return name.ends_with(kWalSuffix)
               ? IOStatus::NotSupported(name, "is no longer written")
               : Watch(target()->ReopenWritableFile(name, options, file, dbg),
                       file);
  }
  IOStatus ReuseWritableFile(const std::string& name, const std::string& old,
                             const FileOptions& options,
                             std::unique_ptr<FSWritableFile>* file,
                             IODebugContext* dbg) override {
    return Watch(target()->ReuseWritableFile(name, old, options, file, dbg),
                 file);
  }
  IOStatus NewDirectory(const std::string& name, const IOOptions& options,
                        std::unique_ptr<FSDirectory>* directory,
                        IODebugContext* dbg) override {
    const IOStatus status =
        failures_->Note(target()->NewDirectory(name, options, directory, dbg));
    if (status.ok()) {
      *directory = std::make_unique<ReplicaDirectory>(std::move(*directory),
                                                      failures_);
    }
    return status;
  }
  IOStatus LinkFile(const std::string& from, const std::string& to,
                    const IOOptions& options, IODebugContext* dbg) override {
    return failures_->Note(target()->LinkFile(from, to, options, dbg));
  }
  IOStatus Truncate(const std::string& name, size_t size,
                    const IOOptions& options, IODebugContext* dbg) override {
    return failures_->Note(target()->Truncate(name, size, options, dbg));
  }
  IOStatus RenameFile(const std::string& from, const std::string& to,
                      const IOOptions& options, IODebugContext* dbg) override {
    IOStatus status;
    std::string text;
    if (to.rfind(inside_ + kOptionsPrefix, 0) == 0) {
      status = KeepOptions(from, options, dbg, &text);
    }
    if (status.ok()) {
      status = target()->RenameFile(from, to, options, dbg);
    }
    if (status.ok() && !text.empty()) {
      std::lock_guard<std::mutex> lock(mu_);
      options_text_ = text;
    }
    return failures_->Note(status);
  }
  IOStatus DeleteFile(const std::string& name, const IOOptions& options,
                      IODebugContext* dbg) override {
    if (failures_->any() && name.rfind(inside_, 0) == 0 &&
        !name.ends_with(kTemporarySuffix)) {
      return IOStatus::IOError(name, "is kept after a failure");
    }
    return target()->DeleteFile(name, options, dbg);
  }

 private:
  IOStatus Watch(IOStatus status, std::unique_ptr<FSWritableFile>* file) {
    if (status.ok()) {
      *file = std::make_unique<ReplicaFile>(std::move(*file), failures_);
    }
    return failures_->Note(std::move(status));
  }

  // Replaces the text of a temporary OPTIONS file, before RocksDB renames the
  // file to its final name.
  IOStatus KeepOptions(const std::string& path, const IOOptions& options,
                       IODebugContext* dbg, std::string* text) {
    std::string written;
    const rocksdb::Status read =
        rocksdb::ReadFileToString(target(), path, &written);
    if (!read.ok()) {
      return IOStatus::IOError(path, read.ToString());
    }
    {
      std::lock_guard<std::mutex> lock(mu_);
      *text = MergeOptionsTexts(options_text_,
                                MergeOptionsTexts(*offered_, written));
    }
    std::unique_ptr<FSWritableFile> file;
    IOStatus status =
        target()->NewWritableFile(path, FileOptions(), &file, dbg);
    if (status.ok()) {
      status = file->Append(*text, options, dbg);
    }
    if (status.ok()) {
      status = file->Fsync(options, dbg);
    }
    if (file != nullptr) {
      const IOStatus closed = file->Close(options, dbg);
      status = status.ok() ? closed : status;
    }
    return status;
  }

  const std::string inside_;
  const std::shared_ptr<const std::string> offered_;
  const std::shared_ptr<Failures> failures_ = std::make_shared<Failures>();
  std::mutex mu_;
  std::string options_text_;  // guarded by mu_
};

// One section of an OPTIONS file.
struct OptionsSection {
  std::string family;  // quoted name; empty: database options
  bool is_family = false;
  std::string text;  // includes the title line
};

std::vector<OptionsSection> SectionsOf(const std::string& text) {
  std::vector<OptionsSection> sections(1);
  size_t at = 0;
  while (at < text.size()) {
    size_t end = text.find('\n', at);
    end = end == std::string::npos ? text.size() : end + 1;
    const std::string line = text.substr(at, end - at);
    const size_t begin = line.find_first_not_of(" \t");
    if (begin != std::string::npos && line[begin] == '[') {
      sections.emplace_back();
      const size_t open = line.find('"');
      const size_t close = line.rfind('"');
      if (open != std::string::npos && close > open) {
        sections.back().is_family = true;
        sections.back().family = line.substr(open + 1, close - open - 1);
      }
    }
    sections.back().text += line;
    at = end;
  }
  return sections;
}

std::set<std::string> FamiliesOf(const std::vector<OptionsSection>& sections) {
  std::set<std::string> families;
  for (const OptionsSection& section : sections) {
    if (section.is_family) {
      families.insert(section.family);
    }
  }
  return families;
}

}  // namespace

std::string MergeOptionsTexts(const std::string& kept,
                              const std::string& written) {
  const std::vector<OptionsSection> ours = SectionsOf(kept);
  const std::vector<OptionsSection> theirs = SectionsOf(written);
  const std::set<std::string> known = FamiliesOf(ours);
  const std::set<std::string> live = FamiliesOf(theirs);
  std::string text;
  for (const OptionsSection& section : ours) {
    if (!section.is_family || live.count(section.family) != 0) {
      text += section.text;
    }
  }
  for (const OptionsSection& section : theirs) {
    if (section.is_family && known.count(section.family) == 0) {
      text += (text.empty() || text.back() == '\n' ? "" : "\n") + section.text;
    }
  }
  return text;
}

std::shared_ptr<rocksdb::FileSystem> MakeReadOnlyFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base) {
  return std::make_shared<ReadOnlyFileSystem>(std::move(base));
}

std::shared_ptr<rocksdb::FileSystem> MakeReplicaFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base, const std::string& dir,
    const std::string& options_text,
    std::shared_ptr<const std::string> offered) {
  return std::make_shared<ReplicaFileSystem>(std::move(base), dir,
                                             options_text, std::move(offered));
}

}  // namespace sstferry
