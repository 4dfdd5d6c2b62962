// A file system over a real directory that can lose power.
//
// Of a file survives what it held at its last Sync() or Fsync(); RangeSync()
// promises nothing. Of what came later a power cut leaves nothing, all of it,
// or a part: torn at any byte, or as long as it was with zeros behind a byte
// (but for a MANIFEST: RocksDB opens no database where zeros follow a part of
// a record there, whoever wrote it).
// Of names see durable_names.h. Nothing is really synced.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "pipeline/disk/durable.h"
#include "rocksdb/file_system.h"
#include "tests/support/durable_names.h"

namespace sstferry {

// What of all that is not synced a power cut leaves.
enum class Survival { kNothing, kRandom };

// Paths outside the root go to the base, unwatched.
//
// Threads: any; one call at a time works.
class PowerLossFileSystem : public RenamingFileSystem {
 public:
  // `root` is absolute and exists; what is in it counts as durable. While
  // this lives, ROOT.limbo beside it keeps what lost its name.
  explicit PowerLossFileSystem(const std::string& root);
  ~PowerLossFileSystem() override;
  const char* Name() const override { return "sstferry.PowerLoss"; }

  // Brings the directory into a state that a power cut could leave it in; the
  // same one for the same seed and history. Every later call fails. Returns a
  // line for each thing lost.
  std::vector<std::string> LosePower(Survival survival, uint64_t seed);
  // LosePower(), its lines written to stderr, _exit(code): no thread meets a
  // file system without power.
  [[noreturn]] void LosePowerAndExit(Survival survival, uint64_t seed,
                                     int code);
  // What was done below the root by other ways than this: names that appeared,
  // vanished or changed, files of another size. Empty: nothing.
  std::vector<std::string> Strangers() const;
  // Changes of names, and files, that a power cut would take back.
  size_t unsynced_names() const;
  size_t unsynced_files() const;

  using Id = DurableNames::Id;
  // For the files this makes: `change` is made to the file; it touches the
  // bytes from `offset` on (up to `end`), or none when offset is kNowhere.
  static constexpr uint64_t kNowhere = UINT64_MAX;
  rocksdb::IOStatus Change(Id file, uint64_t offset, uint64_t end,
                           const std::function<rocksdb::IOStatus()>& change);
  rocksdb::IOStatus SyncFile(Id file);
  rocksdb::IOStatus SyncNames(Id dir);

  rocksdb::IOStatus NewWritableFile(
      const std::string& name, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSWritableFile>* file,
      rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus ReopenWritableFile(
      const std::string& name, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSWritableFile>* file,
      rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus ReuseWritableFile(
      const std::string& name, const std::string& old_name,
      const rocksdb::FileOptions& options,
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
  rocksdb::IOStatus CreateDir(const std::string& name,
                              const rocksdb::IOOptions& options,
                              rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus CreateDirIfMissing(const std::string& name,
                                       const rocksdb::IOOptions& options,
                                       rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus DeleteFile(const std::string& name,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus DeleteDir(const std::string& name,
                              const rocksdb::IOOptions& options,
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
  rocksdb::IOStatus LockFile(const std::string& name,
                             const rocksdb::IOOptions& options,
                             rocksdb::FileLock** lock,
                             rocksdb::IODebugContext* dbg) override;
  rocksdb::IOStatus ExchangeNames(const std::string& a,
                                  const std::string& b) override;
  rocksdb::IOStatus RenameToNew(const std::string& from,
                                const std::string& to) override;
  rocksdb::IOStatus LinkSymbolically(const std::string& to,
                                     const std::string& path) override;

 private:
  using Place = DurableNames::Place;
  struct Contents {
    uint64_t size = 0;         // on disk now
    uint64_t synced_size = 0;
    bool is_manifest = false;
    // Synced bytes that were written over or cut since, oldest first.
    std::vector<std::pair<uint64_t, std::string>> overwritten;
    bool is_synced() const {
      return size == synced_size && overwritten.empty();
    }
  };

  // Under mu_, all of them.
  rocksdb::IOStatus Check(const std::string& path, Place* place) const;
  Id Adopt(const Place& place);  // the id of a file that may be new
  void KeepSynced(Id file, uint64_t offset, uint64_t end);
  rocksdb::IOStatus OpenForWriting(
      const std::string& name, const rocksdb::FileOptions& options,
      bool truncate, std::unique_ptr<rocksdb::FSWritableFile>* file,
      rocksdb::IODebugContext* dbg);
  rocksdb::IOStatus MakeDir(const std::string& name, bool may_exist,
                            const rocksdb::IOOptions& options,
                            rocksdb::IODebugContext* dbg);
  rocksdb::IOStatus Rename(
      const std::string& from, const std::string& to,
      const std::function<rocksdb::IOStatus()>& rename);
  std::vector<std::string> Lose(Survival survival, uint64_t seed);
  std::string LoseContents(Id file, Survival survival,
                           std::mt19937_64* random);

  mutable std::mutex mu_;
  DurableNames names_;
  std::map<Id, Contents> contents_;
  bool lost_ = false;
};

}  // namespace sstferry
