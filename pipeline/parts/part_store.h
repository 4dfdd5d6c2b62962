// Supplies lanes with the bytes of a plan's parts. A lane is a connection that
// carries data to a target.
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

// Limits the bytes and files that all stores of one server keep in spools. A
// spool is a part's chunks in files without names. A target chooses the chunk
// size and the number of plans, so a limit for each store would not limit the
// server.
//
// Ownership: shared by the stores and their files. Threads: any.
class SpoolBudget {
 public:
  SpoolBudget(uint64_t max_bytes, uint64_t max_files)
      : max_bytes_(max_bytes), max_files_(max_files) {}

  uint64_t max_bytes() const { return max_bytes_; }
  bool HasRoom(uint64_t bytes) const;
  // Reserves `bytes` bytes and one file. Returns false, and reserves nothing,
  // if that would exceed a limit.
  bool Reserve(uint64_t bytes);
  // Adds `bytes` and `files` to the reserved numbers. They are negative after a
  // file was removed, or needed fewer bytes than were reserved.
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
  // Removes a store. Blocks while another store is freeing a chunk of this
  // store.
  void Leave(PartStore* store);
  // Removes a chunk of another store to make room for `bytes` more bytes in the
  // store `wanting`. Chooses only a store that uses at least as much of the
  // budget as `wanting` will use. Returns false if no chunk can be removed.
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
  // Lock order: a thread may lock stores_mu_ while it holds the mu_ of a store,
  // but must not wait for the mu_ of a store while it holds stores_mu_.
  std::mutex stores_mu_;
  std::vector<PartStore*> stores_;  // under stores_mu_
};

struct PartStoreOptions {
  std::string directory;   // directory with the files
  std::shared_ptr<SpoolBudget> budget;
  uint64_t chunk_bytes = 64'000'000;
  // Returns the free bytes of the directory's file system. If null, free bytes
  // are not checked.
  std::function<uint64_t()> free_bytes;
  // Maximum number of bytes of one chunk that stay in memory if the disk is
  // full. If a chunk needs more, the store gives up the chunk.
  uint64_t max_memory_bytes = 64u << 20;
  // Number of bytes at the end of an unfinished chunk that stay in memory, too.
  // A reader that keeps up with the builder then does not read the file.
  uint64_t newest_bytes = 1u << 20;
  int max_builders = 16;
};

// Receives the number of entries that were built since the last call. May be
// null.
using OnProgress = std::function<void(uint64_t entries)>;

// Builds the chunks that `from` asks for, and passes them to `sink`. Stops with
// an error when `cancelled` returns true.
using BuildChunks = std::function<rocksdb::Status(
    const PartRequest& from, const std::function<bool()>& cancelled,
    const OnProgress& on_progress, ChunkSink* sink)>;

// The request of one lane, and the functions that build the requested bytes.
struct PartRead {
  PartRequest request;
  const Part* part = nullptr;
  UnitPlace unit;
  BuildChunks build;      // on the caller's thread; not for units
  // Builds chunks for all targets, on a thread of the store. Must stay valid as
  // long as the store. Null if no other target requests the same bytes.
  BuildChunks build_for_all;
  // Is called from time to time while this thread builds or sends; returns true
  // to stop.
  std::function<bool()> cancelled;
  // Is called each time this thread has waited for a builder; returns true to
  // stop.
  std::function<bool()> cancelled_in_wait;
  OnProgress on_progress;
  std::vector<char>* buffer = nullptr;  // for units; reused
};

// Sends the bytes of parts to lanes, in one of three ways:
//
//   unit            The store reads a unit from its file, from any byte on.
//   chunk or delta  The lane that requests a chunk builds it and sends it at
//                   once. Nothing is kept: if the connection breaks, the next
//                   request builds the chunk again.
//   shared chunk    A thread of the store builds the chunk once for all targets
//                   of a plan. It writes the chunk into a spool (a file without
//                   a name). Each lane reads the spool at its own pace, and may
//                   request the chunk again.
//
// The store shares chunks while the plan has at least two targets. With one
// target, a spool would cost a copy that no other target reads. When a second
// target arrives, a lane that builds for itself changes over at its next chunk.
//
// A slow lane does not delay others. A builder stays ahead of the fastest lane.
// A slow lane may find that its next chunk was removed from the spool, and then
// builds the chunk for itself. If the budget is used up, the store first
// removes chunks that no lane is reading.
//
// Ownership: owns its threads and spools.
// Threads:   any. The destructor waits for builders. REQUIRES: all calls of
//            Send() have returned before the destructor runs.
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
  // Returns errors of the sink, of ChunkBuilder::Build() and of SendUnit(), or:
  //   kDeadPeer  the start of a chunk was sent, but the spool has no room for
  //              the rest of the chunk: the target must request the chunk again
  [[nodiscard]] rocksdb::Status Send(PartRead read, ChunkSink* sink);

  uint64_t bytes() const { return usage_->bytes; }
  uint64_t files() const { return usage_->files; }
  // Return how many spooled chunks were built, and how many were sent.
  uint64_t built() const { return built_; }
  uint64_t sent() const { return sent_; }

 private:
  class File;
  struct Chunk;
  struct Spool;
  class Builder;
  class OwnLane;
  using ChunkPtr = std::shared_ptr<Chunk>;
  // The bytes and the number of this store's files. Is shared with the files,
  // because a file may exist longer than the store.
  struct Usage {
    std::atomic<uint64_t> bytes{0};
    std::atomic<uint64_t> files{0};
  };
  friend class SpoolBudget;

  bool is_shared() const { return targets_ >= 2; }
  // Sends spooled chunks, beginning with the requested chunk, as long as the
  // spool has the next chunk or a builder makes it. Then changes the request so
  // that it asks only for the chunks that were not sent. Sets *complete to true
  // if all were sent.
  [[nodiscard]] rocksdb::Status SendSpooled(PartRead* read, bool* complete,
                                            ChunkSink* sink);
  // REQUIRES for all functions below except SendChunk(): mu_ is locked.
  // SendChunk() locks mu_ itself.
  Spool* Join(const PartRead& read);
  [[nodiscard]] rocksdb::Status Start(const PartRead& read, Spool* part);
  // Removes chunks until there is room for one more chunk. Returns false if
  // there is still no room. If `reserve` is true, also reserves the room.
  bool MakeRoom(bool reserve);
  // Removes the least recently used chunk that no lane is reading.
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
  std::map<uint32_t, std::unique_ptr<Spool>> parts_;  // all below: under mu_
  int builders_ = 0;   // running builders
  uint64_t uses_ = 0;  // counts uses of chunks; orders them
  bool stopping_ = false;
  // True after the disk was full and a chunk was too large for memory. From
  // then on, every lane builds for itself.
  bool gave_up_ = false;
};

}  // namespace sstferry
