// Supplies the bytes of a plan's parts to the lanes that send them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "format/messages.h"
#include "pipeline/parts/chunk_builder.h"
#include "pipeline/parts/unit_sender.h"
#include "rocksdb/status.h"

namespace sstferry {

class PartStore;

// Limits the bytes and files in the spools of all stores of one server. A
// target chooses the chunk size and the number of plans, so a limit per store
// would not limit the sum.
//
// Ownership: shared by the stores and their files. Threads: any.
class SpoolBudget {
 public:
  SpoolBudget(uint64_t max_bytes, uint64_t max_files)
      : max_bytes_(max_bytes), max_files_(max_files) {}

  uint64_t max_bytes() const { return max_bytes_; }
  bool HasRoom(uint64_t bytes) const;
  // Reserves room for a file of `bytes` bytes. Returns false if the room is too
  // small.
  bool Reserve(uint64_t bytes);
  // Adds to the counts after a file got more or fewer bytes than were reserved,
  // or was removed.
  void Change(int64_t bytes, int64_t files);
  uint64_t bytes() const;
  uint64_t files() const;

  // Count chunks that were built (spooled or not) and chunks that were sent
  // from a spool.
  void CountBuilt() { ++built_; }
  void CountSent() { ++sent_; }
  uint64_t built() const { return built_; }
  uint64_t sent() const { return sent_; }

  void Join(PartStore* store);
  // Removes the store. Blocks while another store is freeing one of its chunks.
  void Leave(PartStore* store);
  // Frees a chunk of another store, which must use at least as much of the
  // budget as `wanting` would use after adding `bytes`. Returns false if no
  // such chunk was found.
  bool FreeElsewhere(const PartStore* wanting, uint64_t bytes);

 private:
  bool HasRoomLocked(uint64_t bytes) const;
  bool LacksFiles() const;

  const uint64_t max_bytes_;
  const uint64_t max_files_;
  mutable std::mutex mu_;
  uint64_t bytes_ = 0;  // under mu_
  uint64_t files_ = 0;  // under mu_
  std::atomic<uint64_t> built_{0};
  std::atomic<uint64_t> sent_{0};
  // A thread that holds a store's mu_ may lock stores_mu_, but not vice versa.
  std::mutex stores_mu_;
  std::vector<PartStore*> stores_;  // under stores_mu_
};

struct PartStoreOptions {
  std::string directory;   // the files use this directory's file system
  std::shared_ptr<SpoolBudget> budget;
  uint64_t chunk_bytes = 64'000'000;
  // Returns the free bytes of the directory's file system. Null: space is not
  // checked.
  std::function<uint64_t()> free_bytes;
  // Maximum number of bytes of a chunk that may be in memory if the disk is
  // full. A longer chunk is abandoned.
  uint64_t max_memory_bytes = 64u << 20;
  // Number of the newest bytes of each unfinished chunk that stay in memory, so
  // that readers that keep up need not read the file.
  uint64_t newest_bytes = 1u << 20;
  int max_builders = 16;
};

// Receives the number of entries that were built since the last call; may be
// null.
using OnProgress = std::function<void(uint64_t entries)>;

// Builds the chunks that `from` asks for and passes them to `sink`, until
// `cancelled` returns true.
using BuildChunks = std::function<rocksdb::Status(
    const PartRequest& from, const std::function<bool()>& cancelled,
    const OnProgress& on_progress, ChunkSink* sink)>;

// The request of one lane, and the means to answer it.
struct PartRead {
  PartRequest request;
  const Part* part = nullptr;
  UnitPlace unit;
  BuildChunks build;      // builds on the caller's thread; unused for a unit
  // Builds on a thread of the store, for all targets; must stay valid as long
  // as the store. Null: no other target requests the same bytes.
  BuildChunks build_for_all;
  // Polled while this thread builds or sends.
  std::function<bool()> cancelled;
  // Polled after each wait for a builder.
  std::function<bool()> cancelled_in_wait;
  OnProgress on_progress;
  std::vector<char>* buffer = nullptr;  // for units; reused
};

// Sends the bytes of parts to lanes, in one of three ways:
//
//   unit            read from the file itself, starting at any byte
//   chunk or delta  built by the lane that requests it, and sent at once. If
//                   the lane's connection breaks, nothing is kept; the next
//                   request starts the chunk over
//   shared chunk    built once for all targets of a plan, on a thread of the
//                   store, into a spool (a file without a name). Each lane
//                   reads it at its own pace, and may request it again
//
// Chunks are shared while the plan has at least two targets: with one target, a
// spool would cost a copy that no other target reads. A lane that builds for
// itself when the second target arrives switches at its next chunk.
//
// A slow reader does not delay others: a builder stays ahead of the fastest
// reader, and a reader whose next chunk was removed builds it for itself. If
// the budget is used up, spooled chunks without readers are removed first.
//
// Ownership: owns its threads and spools.
// Threads:   any. The destructor waits for builders. All calls of Send() must
//            have returned before.
class PartStore {
 public:
  explicit PartStore(PartStoreOptions options);
  ~PartStore();
  PartStore(const PartStore&) = delete;
  PartStore& operator=(const PartStore&) = delete;

  // Count the targets that use the plan of this store.
  void AddTarget() { ++targets_; }
  void RemoveTarget() { --targets_; }

  // Sends everything that the request asks for, up to the end of the part.
  // Errors are those of the sink, of ChunkBuilder::Build() and of SendUnit().
  //   kDeadPeer  the spool had no room for the rest of a chunk whose start was
  //              already sent: the target must request the chunk again.
  [[nodiscard]] rocksdb::Status Send(PartRead read, ChunkSink* sink);

  uint64_t bytes() const { return usage_->bytes; }
  uint64_t files() const { return usage_->files; }
  // Number of spooled chunks that were built, and number that were sent.
  uint64_t built() const { return built_; }
  uint64_t sent() const { return sent_; }

 private:
  class File;
  struct Chunk;
  struct Spool;
  class Builder;
  class OwnLane;
  using ChunkPtr = std::shared_ptr<Chunk>;
  // Bytes and number of this store's files. A file may outlive the store.
  struct Usage {
    std::atomic<uint64_t> bytes{0};
    std::atomic<uint64_t> files{0};
  };
  friend class SpoolBudget;

  bool is_shared() const { return targets_ >= 2; }
  // Sends spooled chunks from the requested one on, as long as the next chunk
  // is in the store or being built. Updates the request to ask for the chunks
  // that were not sent. Sets *complete if all were sent.
  [[nodiscard]] rocksdb::Status SendSpooled(PartRead* read, bool* complete,
                                            ChunkSink* sink);
  // The functions below require mu_, except SendChunk(), which locks it.
  Spool* Join(const PartRead& read);
  [[nodiscard]] rocksdb::Status Start(const PartRead& read, Spool* part);
  // Returns true if there is room for one more chunk. If `reserve` is true,
  // also reserves this room.
  bool MakeRoom(bool reserve);
  // Drops the least recently used chunk without readers.
  bool FreeOldest();
  ChunkPtr Find(Spool* part, const PartRequest& request) const;
  [[nodiscard]] rocksdb::Status SendNext(PartRead* read, Spool* part,
                                         bool* complete,
                                         std::unique_lock<std::mutex>* lock,
                                         ChunkSink* sink);

  [[nodiscard]] rocksdb::Status SendChunk(const PartRead& read, Spool* part,
                                          const ChunkPtr& chunk,
                                          ChunkSink* sink);

  const PartStoreOptions options_;
  const std::shared_ptr<Usage> usage_;
  std::atomic<uint64_t> built_{0};
  std::atomic<uint64_t> sent_{0};
  std::atomic<int> targets_{0};

  std::mutex mu_;
  std::map<uint32_t, std::unique_ptr<Spool>> parts_;  // under mu_, all below
  int builders_ = 0;   // running builders
  uint64_t uses_ = 0;  // number of uses of chunks; orders chunks by use
  bool stopping_ = false;
  // The disk was full and a chunk was too large for memory. From then on, all
  // readers build for themselves.
  bool gave_up_ = false;
};

}  // namespace sstferry
