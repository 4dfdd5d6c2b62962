// A file system that fails on request and records the steps it was asked for.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/file_system.h"

namespace sstferry {

enum class FileStep {
  kCreate,
  kAppend,
  kSync,
  kRename,
  kLink,
  kSyncDir,
  kRead,  // only in files that are read at random offsets
  kTruncate,
  kClose,  // only written files; a failure closes the file nevertheless
};

// All steps that write.
inline constexpr FileStep kWritingSteps[] = {
    FileStep::kCreate, FileStep::kAppend,  FileStep::kSync,
    FileStep::kRename, FileStep::kLink,    FileStep::kSyncDir,
    FileStep::kTruncate, FileStep::kClose};

// Return the errors of a full disk and of a broken disk.
rocksdb::IOStatus DiskFull();
rocksdb::IOStatus DiskBroken();

// The file system. Threads: any.
class FaultyFileSystem : public SyncWatchingFileSystem {
 public:
  explicit FaultyFileSystem(
      std::shared_ptr<rocksdb::FileSystem> base =
          rocksdb::FileSystem::Default());
  const char* Name() const override { return "sstferry.Faulty"; }

  // Makes the nth step of that kind from now on (1: the next) fail with
  // `status`. Counts only paths that contain `part`. `for_good`: all later
  // steps fail, too.
  void FailAt(FileStep step, uint64_t nth, const rocksdb::IOStatus& status,
              const std::string& part = "", bool for_good = false);
  // Ends all failures.
  void Heal();
  // Called before each step, on its thread; set before the first one.
  void OnStep(std::function<void(FileStep, const std::string& path)> hook);
  // Sets what GetFreeSpace() returns from now on, whatever the disk has.
  void SetFreeSpace(uint64_t bytes);
  // Returns the number of steps of that kind so far on paths with `part`.
  uint64_t count(FileStep step, const std::string& part = "") const;
  // Returns "sync /path" and so on, without appends, reads, truncations,
  // closes.
  std::vector<std::string> log() const;

  // Called before each step, also by the files that this object makes.
  rocksdb::IOStatus Meet(FileStep step, const std::string& path);

  rocksdb::IOStatus NewWritableFile(
      const std::string& name, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSWritableFile>* file,
      rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus ReopenWritableFile(
      const std::string& name, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSWritableFile>* file,
      rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus NewRandomAccessFile(
      const std::string& name, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
      rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus NewRandomRWFile(
      const std::string& name, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSRandomRWFile>* file,
      rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus NewDirectory(
      const std::string& name, const rocksdb::IOOptions& options,
      std::unique_ptr<rocksdb::FSDirectory>* directory,
      rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus Truncate(const std::string& name, size_t size,
                             const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus LinkFile(const std::string& from, const std::string& to,
                             const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus GetFreeSpace(const std::string& path,
                                 const rocksdb::IOOptions& options,
                                 uint64_t* free_bytes,
                                 rocksdb::IODebugContext* dbg) override;

 private:
  struct Fault {
    FileStep step;
    uint64_t left;
    rocksdb::IOStatus status;
    std::string part;
    bool for_good;
  };

  std::function<void(FileStep, const std::string&)> on_step_;
  mutable std::mutex mu_;
  std::vector<Fault> faults_;                          // under mu_
  std::vector<std::pair<FileStep, std::string>> met_;  // under mu_
  std::optional<uint64_t> free_bytes_;                 // under mu_
};

}  // namespace sstferry
