// The bytes of a plan's parts, for the lanes that send them.
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

// Counts what the stores of one server spool together. A target chooses how
// large chunks are and how many plans there are, so neither bytes nor
// descriptors may be counted by store.
//
// Ownership: shared by the stores and their files. Threads: any.
class SpoolBudget {
 public:
  SpoolBudget(uint64_t max_bytes, uint64_t max_files)
      : max_bytes_(max_bytes), max_files_(max_files) {}

  uint64_t max_bytes() const { return max_bytes_; }
  bool HasRoom(uint64_t bytes) const;
  // Counts a file that will have so many bytes, if there is room.
  bool Reserve(uint64_t bytes);
  // Counts more bytes of a file than were reserved, or fewer, or one file less.
  void Change(int64_t bytes, int64_t files);
  uint64_t bytes() const;
  uint64_t files() const;

  // Count chunks that were built, spooled or not, and those that were sent
  // from a spool.
  void CountBuilt() { ++built_; }
  void CountSent() { ++sent_; }
  uint64_t built() const { return built_; }
  uint64_t sent() const { return sent_; }

  void Join(PartStore* store);
  // Waits for those who free something in it.
  void Leave(PartStore* store);
  // Frees a chunk in a store that has more than `wanting`. False: there is
  // none.
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
  std::mutex stores_mu_;  // taken with a store's mu_ held, not the other way
  std::vector<PartStore*> stores_;  // under stores_mu_
};

struct PartStoreOptions {
  std::string directory;   // the files take space on its file system
  std::shared_ptr<SpoolBudget> budget;
  uint64_t chunk_bytes = 64'000'000;
  // Bytes that may be taken there. Null: enough.
  std::function<uint64_t()> free_bytes;
  // A chunk that the disk does not take may keep so much in memory; a longer
  // one is given up.
  uint64_t max_memory_bytes = 64u << 20;
  // The store keeps so many of the newest bytes of each chunk that is being
  // built in memory, for readers that keep up.
  uint64_t newest_bytes = 1u << 20;
  int max_builders = 16;
};

// Counts entries as they are built; may be null.
using OnProgress = std::function<void(uint64_t entries)>;

// Builds the chunks that `from` asks for into `sink`, until `cancelled` returns
// true.
using BuildChunks = std::function<rocksdb::Status(
    const PartRequest& from, const std::function<bool()>& cancelled,
    const OnProgress& on_progress, ChunkSink* sink)>;

// The request of one lane, and what answers it.
struct PartRead {
  PartRequest request;
  const Part* part = nullptr;
  UnitPlace unit;
  BuildChunks build;      // makes the other kinds, on the reader's thread
  // The same on a thread of the store: must be valid as long as the store. Null:
  // nobody else asks for the same bytes.
  BuildChunks build_for_all;
  // Polled while this thread builds or sends.
  std::function<bool()> cancelled;
  // Polled after each wait for a builder.
  std::function<bool()> cancelled_in_wait;
  OnProgress on_progress;
  std::vector<char>* buffer = nullptr;  // for a unit; used again
};

// A part has one stream of bytes, and there are three ways to it:
//
//   a unit           the file where it lies, read from any byte on
//   a chunk, a delta built straight into the lane that asks. A lane that breaks
//                    ends the builder, and the next one begins the chunk anew:
//                    nothing is kept for it
//   a shared chunk   built once for all targets of a plan, on a thread of the
//                    store, into a spool: a file without a name. Each lane
//                    follows the builder at its own pace, and may ask again
//
// Chunks are shared while the plan has two targets: for a single one, a spool
// would cost a copy that nobody reads. A lane that builds for itself when the
// second target arrives changes over at its next chunk.
//
// Nobody waits for a slow reader: a builder is ahead of the reader that is
// furthest, and a reader whose next chunk is gone builds it for itself. If
// there is no room, spooled chunks that nobody reads at this time go first.
//
// Ownership: owns its threads and spools.
// Threads:   any. The destructor waits for builders; no reader may be left.
class PartStore {
 public:
  explicit PartStore(PartStoreOptions options);
  ~PartStore();
  PartStore(const PartStore&) = delete;
  PartStore& operator=(const PartStore&) = delete;

  // Count the targets that have the plan of this store.
  void AddTarget() { ++targets_; }
  void RemoveTarget() { --targets_; }

  // Sends what the request asks for to the end of the part. Errors of the sink;
  // those of building as ChunkBuilder::Build(), of a unit as SendUnit().
  //   kDeadPeer  the spool of the chunk that was begun had no room for it: the
  //              reader's target has to ask for it again.
  [[nodiscard]] rocksdb::Status Send(PartRead read, ChunkSink* sink);

  uint64_t bytes() const { return usage_->bytes; }
  uint64_t files() const { return usage_->files; }
  // Count the spooled chunks that were built, and those that were sent.
  uint64_t built() const { return built_; }
  uint64_t sent() const { return sent_; }

 private:
  class File;
  struct Chunk;
  struct Spool;
  class Builder;
  class OwnLane;
  using ChunkPtr = std::shared_ptr<Chunk>;
  // Counts this store's files, which may outlive it.
  struct Usage {
    std::atomic<uint64_t> bytes{0};
    std::atomic<uint64_t> files{0};
  };
  friend class SpoolBudget;

  bool is_shared() const { return targets_ >= 2; }
  // Sends spooled chunks, from the one that the request asks for on, as far as
  // the store has or gets them; the request then asks for the rest. *complete:
  // there is none.
  [[nodiscard]] rocksdb::Status SendSpooled(PartRead* read, bool* complete,
                                            ChunkSink* sink);
  // All under mu_.
  Spool* Join(const PartRead& read);
  [[nodiscard]] rocksdb::Status Start(const PartRead& read, Spool* part);
  // True if there is room for one more chunk, which `reserve` counts.
  bool MakeRoom(bool reserve);
  // Drops the chunk that was read longest ago, and that nobody reads.
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
  int builders_ = 0;   // that run
  uint64_t uses_ = 0;  // of chunks, which orders them
  bool stopping_ = false;
  bool gave_up_ = false;  // a chunk was lost: all readers build for themselves
};

}  // namespace sstferry
