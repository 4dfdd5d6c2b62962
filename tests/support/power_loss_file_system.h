// A file system over a real directory that can lose power.
//
// After a power cut, a file has the bytes of its last Sync() or Fsync();
// RangeSync() guarantees nothing. Later writes are lost, survive, or survive in
// part: cut at any byte, or at full length with zeros from some byte on. A
// MANIFEST never gets such zeros, because RocksDB cannot open a database whose
// MANIFEST has zeros after a part of a record.
//
// After a failed sync (FailSync()), the bytes that it should have written are
// lost, but as on Linux they stay in the page cache, and count as written: they
// can be read, and the next sync succeeds. A direct read, or an
// InvalidateCache() of the file, shows what the disk has instead: zeros, or the
// bytes of the last sync; so does a power cut.
//
// For names see durable_names.h. Nothing is really synced.
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

// How much of the unsynced changes survives a power cut.
enum class Survival { kNothing, kRandom };

// The file system. Calls outside the root go to the base file system and are
// not tracked.
//
// Threads: any; calls exclude each other.
class PowerLossFileSystem : public RenamingFileSystem {
 public:
  // `root` is absolute and exists; its contents count as durable. During this
  // object's lifetime, ROOT.limbo keeps files that lost their names.
  explicit PowerLossFileSystem(const std::string& root);
  ~PowerLossFileSystem() override;
  const char* Name() const override { return "sstferry.PowerLoss"; }

  // Brings the directory into a state in which a power cut could leave it; the
  // same seed and history give the same state. Every later call fails. Returns
  // a line for each thing lost.
  std::vector<std::string> LosePower(Survival survival, uint64_t seed);
  // Calls LosePower(), writes the lines to stderr and calls _exit(code), so
  // that no thread sees a file system without power.
  [[noreturn]] void LosePowerAndExit(Survival survival, uint64_t seed,
                                     int code);
  // Makes the nth sync from now on (1: the next) of a file whose path contains
  // `part` fail with `status`, once. Ignores ".sstferry", the end of a
  // workspace's name, in the path, because it contains ".sst".
  void FailSync(const std::string& part, uint64_t nth,
                const rocksdb::IOStatus& status);
  // Returns the changes below the root that bypassed this object: names that
  // appeared, vanished or changed, and files whose size changed.
  std::vector<std::string> Strangers() const;
  // Return the number of changes of names, or files, that a power cut may undo.
  size_t unsynced_names() const;
  size_t unsynced_files() const;

  using Id = DurableNames::Id;
  // For the files that this object makes: calls `change`, which changes the
  // file's bytes from `offset` to `end`, or none if `offset` is kNowhere.
  static constexpr uint64_t kNowhere = UINT64_MAX;
  rocksdb::IOStatus Change(Id file, uint64_t offset, uint64_t end,
                           const std::function<rocksdb::IOStatus()>& change);
  rocksdb::IOStatus SyncFile(Id file);
  rocksdb::IOStatus SyncNames(Id dir);
  // Empties the page cache of the file: shows the bytes that the disk has.
  void DropCache(Id file);

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
  using Pieces = std::vector<std::pair<uint64_t, std::string>>;  // by offset
  struct Contents {
    std::string path;          // under which the file was last opened to write
    uint64_t size = 0;         // on disk now
    uint64_t synced_size = 0;
    bool is_manifest = false;
    // Synced bytes that were overwritten or truncated since, oldest first.
    Pieces overwritten;
    // Bytes that the disk has instead of those in the page cache. Where two
    // pieces overlap, the later one applies.
    Pieces lost;
    bool is_synced() const {
      return size == synced_size && overwritten.empty();
    }
  };

  // All of these require mu_.
  rocksdb::IOStatus Check(const std::string& path, Place* place) const;
  Id Adopt(const Place& place);  // returns the id of a file that may be new
  void KeepSynced(Id file, uint64_t offset, uint64_t end);
  static void LoseUnsynced(Contents* contents);
  void ShowLost(Id file);  // writes the lost pieces into the file
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
  std::string failing_;         // the failing sync: part of the path
  uint64_t syncs_to_fail_ = 0;  // 0: none fails
  rocksdb::IOStatus failure_;
  bool lost_ = false;
};

}  // namespace sstferry
