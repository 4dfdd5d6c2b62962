// File systems that skip syncs, for callers that sync later.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Returns a file system whose Sync, Fsync and RangeSync do nothing, for
// --durability none. The caller must call SyncTree() on the written directory
// before it reports the data as durable.
std::shared_ptr<rocksdb::FileSystem> MakeDeferredSyncFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base);

// A file system that only remembers which files and directories to sync. Run()
// then syncs them in any order. Suitable if no file is used before all of them
// are durable.
//
// Threads: one.
class SyncBatch : public SyncWatchingFileSystem {
 public:
  using SyncWatchingFileSystem::SyncWatchingFileSystem;
  const char* Name() const override { return "sstferry.SyncBatch"; }

  // Syncs the files that were opened for writing since the last call, by their
  // current names. Also syncs the directories whose sync was requested.
  [[nodiscard]] rocksdb::Status Run();

  rocksdb::IOStatus NewWritableFile(
      const std::string& name, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSWritableFile>* file,
      rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus NewRandomRWFile(
      const std::string& name, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSRandomRWFile>* file,
      rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus NewDirectory(
      const std::string& name, const rocksdb::IOOptions& options,
      std::unique_ptr<rocksdb::FSDirectory>* directory,
      rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* dbg) override;

 private:
  std::set<std::string> files_;
  std::set<std::string> dirs_;
};

}  // namespace sstferry
