// Rebuilt chunks of one plan that several targets ask for: each is built once,
// into a file without a name, and sent to all from there.
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
#include "rocksdb/status.h"

namespace sstferry {

class ChunkCache;

// Counts what the caches of one server take together. A target chooses how
// large chunks are and how many plans there are, so neither bytes nor
// descriptors may be counted by cache.
//
// Ownership: shared by the caches and their files. Threads: any.
class ChunkBudget {
 public:
  ChunkBudget(uint64_t max_bytes, uint64_t max_files)
      : max_bytes_(max_bytes), max_files_(max_files) {}

  uint64_t max_bytes() const { return max_bytes_; }
  bool HasRoom(uint64_t bytes) const;
  // Counts a file that will have so many bytes, if there is room.
  bool Reserve(uint64_t bytes);
  // Counts more bytes of a file than were reserved, or fewer, or one file less.
  void Change(int64_t bytes, int64_t files);
  uint64_t bytes() const;
  uint64_t files() const;

  void Join(ChunkCache* cache);
  // Waits for those who free something in it.
  void Leave(ChunkCache* cache);
  // Frees a chunk in a cache that has more than `wanting`. False: there is
  // none.
  bool FreeElsewhere(const ChunkCache* wanting, uint64_t bytes);

 private:
  bool HasRoomLocked(uint64_t bytes) const;
  bool LacksFiles() const;

  const uint64_t max_bytes_;
  const uint64_t max_files_;
  mutable std::mutex mu_;
  uint64_t bytes_ = 0;  // under mu_
  uint64_t files_ = 0;  // under mu_
  std::mutex caches_mu_;  // taken with a cache's mu_ held, not the other way
  std::vector<ChunkCache*> caches_;  // under caches_mu_
};

struct ChunkCacheOptions {
  std::string directory;   // the files take space on its file system
  std::shared_ptr<ChunkBudget> budget;
  uint64_t chunk_bytes = 64'000'000;
  // Bytes that may be taken there. Null: enough.
  std::function<uint64_t()> free_bytes;
  // A chunk that the disk does not take may keep so much in memory; a longer
  // one is given up.
  uint64_t max_memory_bytes = 64u << 20;
  int max_builders = 16;
};

// Builds the chunks that `from` asks for into `sink`, until `cancelled` returns
// true. Called on a thread of the cache; must be valid as long as the cache.
using BuildChunks = std::function<rocksdb::Status(
    const PartRequest& from, const std::function<bool()>& cancelled,
    ChunkSink* sink)>;

// One reader's request, and what is left of it.
struct CachedRead {
  PartRequest request;  // on return: asks for what is still to be sent
  bool complete = false; // on return: nothing is
  BuildChunks build;
  std::function<bool()> cancelled;  // polled while waiting
  // The newest bytes may stay in memory, too, for readers that keep up: so many
  // for this one.
  uint64_t newest_bytes = 0;
  std::function<void(const ChunkEnd&)> on_chunk;  // after each one; may be null
};

// Nobody waits for a slow reader: a builder is ahead of the reader that is
// furthest, and a reader whose next chunk is gone builds it for itself. If
// there is no room, chunks that nobody reads at this time go first.
//
// Ownership: owns its threads and files.
// Threads:   any. The destructor waits for builders; no reader may be left.
class ChunkCache {
 public:
  explicit ChunkCache(ChunkCacheOptions options);
  ~ChunkCache();
  ChunkCache(const ChunkCache&) = delete;
  ChunkCache& operator=(const ChunkCache&) = delete;

  // Sends the chunks of a part, from those that the request asks for on, as
  // far as the cache has or gets them. Errors of the sink; those of building as
  // ChunkBuilder::Build(). The sink's chunk is whole when this returns OK.
  //   kDeadPeer  the chunk that was begun is given up: the reader's target has
  //              to ask for it again.
  [[nodiscard]] rocksdb::Status Send(CachedRead* read, ChunkSink* sink);

  uint64_t bytes() const { return usage_->bytes; }
  uint64_t files() const { return usage_->files; }
  // Chunks that were built, and those that were sent.
  uint64_t built() const { return built_; }
  uint64_t sent() const { return sent_; }

 private:
  class File;
  struct Chunk;
  struct Part;
  class Builder;
  using ChunkPtr = std::shared_ptr<Chunk>;
  // Counts this cache's files, which may outlive it.
  struct Usage {
    std::atomic<uint64_t> bytes{0};
    std::atomic<uint64_t> files{0};
  };
  friend class ChunkBudget;

  // All under mu_.
  Part* Join(const CachedRead& read);
  [[nodiscard]] rocksdb::Status Start(const CachedRead& read, Part* part);
  // True if there is room for one more chunk, which `reserve` counts.
  bool MakeRoom(bool reserve);
  // Drops the chunk that was read longest ago, and that nobody reads.
  bool FreeOldest();
  ChunkPtr Find(Part* part, const PartRequest& request) const;
  [[nodiscard]] rocksdb::Status SendNext(CachedRead* read, Part* part,
                                         std::unique_lock<std::mutex>* lock,
                                         ChunkSink* sink);

  [[nodiscard]] rocksdb::Status SendChunk(const CachedRead& read, Part* part,
                                          const ChunkPtr& chunk,
                                          ChunkSink* sink);

  const ChunkCacheOptions options_;
  const std::shared_ptr<Usage> usage_;
  std::atomic<uint64_t> built_{0};
  std::atomic<uint64_t> sent_{0};

  std::mutex mu_;
  std::map<uint32_t, std::unique_ptr<Part>> parts_;  // under mu_, all below
  int builders_ = 0;   // that run
  uint64_t uses_ = 0;  // of chunks, which orders them
  bool stopping_ = false;
  bool gave_up_ = false;  // a chunk was lost: all readers build for themselves
};

}  // namespace sstferry
