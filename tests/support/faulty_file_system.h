// A file system that fails on request and remembers what it was asked for.
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
  kRead,  // of a file that is read at any place
  kTruncate,
  kClose,  // of a file that was written; it is closed nevertheless
};

// All that write.
inline constexpr FileStep kWritingSteps[] = {
    FileStep::kCreate, FileStep::kAppend,  FileStep::kSync,
    FileStep::kRename, FileStep::kLink,    FileStep::kSyncDir,
    FileStep::kTruncate, FileStep::kClose};

// What a full and what a broken disk say.
rocksdb::IOStatus DiskFull();
rocksdb::IOStatus DiskBroken();

// Threads: any.
class FaultyFileSystem : public SyncWatchingFileSystem {
 public:
  explicit FaultyFileSystem(
      std::shared_ptr<rocksdb::FileSystem> base =
          rocksdb::FileSystem::Default());
  const char* Name() const override { return "sstferry.Faulty"; }

  // The nth step of that kind from now on (1 is the next), whose path holds
  // `part`, fails with `status`, and all later ones too when `for_good`.
  void FailAt(FileStep step, uint64_t nth, const rocksdb::IOStatus& status,
              const std::string& part = "", bool for_good = false);
  // Nothing fails any more.
  void Heal();
  // Called before each step, on its thread; set before the first one.
  void OnStep(std::function<void(FileStep, const std::string& path)> hook);
  // What GetFreeSpace() says from now on, whatever the disk has.
  void SetFreeSpace(uint64_t bytes);
  // Steps of that kind so far on paths that hold `part`.
  uint64_t count(FileStep step, const std::string& part = "") const;
  // "sync /path" and so on, without appends, reads, truncations and closes.
  std::vector<std::string> log() const;

  // For the files this makes.
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
