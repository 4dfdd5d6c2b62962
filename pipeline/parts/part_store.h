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

// Limits the bytes and files that all stores of one server spool. A target
// chooses the size of chunks and the number of plans, so a limit per store
// would limit neither.
//
// Ownership: shared by the stores and their files. Threads: any.
class SpoolBudget {
 public:
  SpoolBudget(uint64_t max_bytes, uint64_t max_files)
      : max_bytes_(max_bytes), max_files_(max_files) {}

  uint64_t max_bytes() const { return max_bytes_; }
  bool HasRoom(uint64_t bytes) const;
  // Reserves room for a file of `bytes` bytes. Returns false if there is none.
  bool Reserve(uint64_t bytes);
  // Adjusts the counts: a file has more or fewer bytes than were reserved, or
  // was removed.
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
  // Removes the store. Blocks while another store is freeing a chunk of it.
  void Leave(PartStore* store);
  // Frees a chunk in a store that uses more than `wanting` would. Returns false
  // if there is no such chunk.
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
  // May be taken while a store's mu_ is held, not the other way round.
  std::mutex stores_mu_;
  std::vector<PartStore*> stores_;  // under stores_mu_
};

struct PartStoreOptions {
  std::string directory;   // file system on which the files take space
  std::shared_ptr<SpoolBudget> budget;
  uint64_t chunk_bytes = 64'000'000;
  // Returns the free bytes of that file system. Null: there are always enough.
  std::function<uint64_t()> free_bytes;
  // Maximum of bytes of a chunk that may be in memory if the disk is full. A
  // longer chunk is abandoned.
  uint64_t max_memory_bytes = 64u << 20;
  // Number of bytes that stay in memory, the newest ones of each chunk that is
  // being built, for readers that keep up.
  uint64_t newest_bytes = 1u << 20;
  int max_builders = 16;
};

// Counts entries as they are built; may be null.
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
  BuildChunks build;      // other kinds: builds on the reader's thread
  // Does the same on a thread of the store; must stay valid as long as the
  // store. Null: no other target asks for the same bytes.
  BuildChunks build_for_all;
  // Polled while this thread builds or sends.
  std::function<bool()> cancelled;
  // Polled after each wait for a builder.
  std::function<bool()> cancelled_in_wait;
  OnProgress on_progress;
  std::vector<char>* buffer = nullptr;  // for units; reused
};

// Sends the bytes of parts to lanes. There are three ways:
//
//   unit            the file itself, read from any byte on
//   chunk or delta  built directly into the lane that asks. If the lane breaks,
//                   the builder ends and nothing is kept; the next lane starts
//                   the chunk over
//   shared chunk    built once for all targets of a plan, on a thread of the
//                   store, into a spool (a file without a name). Each lane
//                   follows the builder at its own pace and may ask again
//
// Chunks are shared while the plan has at least two targets: with one target, a
// spool would cost a copy that nobody reads. If a lane builds for itself when
// the second target arrives, it changes over at its next chunk.
//
// A slow reader does not delay others: a builder stays ahead of the fastest
// reader, and a reader whose next chunk is gone builds it for itself. If there
// is no room, spooled chunks that nobody is reading are removed first.
//
// Ownership: owns its threads and spools.
// Threads:   any. The destructor waits for builders; no reader may be left.
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
  //              sent already: the target must ask for the chunk again.
  [[nodiscard]] rocksdb::Status Send(PartRead read, ChunkSink* sink);

  uint64_t bytes() const { return usage_->bytes; }
  uint64_t files() const { return usage_->files; }
  // Number of spooled chunks that were built, and of those that were sent.
  uint64_t built() const { return built_; }
  uint64_t sent() const { return sent_; }

 private:
  class File;
  struct Chunk;
  struct Spool;
  class Builder;
  class OwnLane;
  using ChunkPtr = std::shared_ptr<Chunk>;
  // Counts this store's files, some of which may outlive it.
  struct Usage {
    std::atomic<uint64_t> bytes{0};
    std::atomic<uint64_t> files{0};
  };
  friend class SpoolBudget;

  bool is_shared() const { return targets_ >= 2; }
  // Sends spooled chunks, starting with the one that the request asks for, as
  // long as the store has or builds the next one. The request is updated to ask
  // for the rest. *complete: nothing is left.
  [[nodiscard]] rocksdb::Status SendSpooled(PartRead* read, bool* complete,
                                            ChunkSink* sink);
  // The next functions require mu_.
  Spool* Join(const PartRead& read);
  [[nodiscard]] rocksdb::Status Start(const PartRead& read, Spool* part);
  // Returns true if there is room for one more chunk. `reserve`: reserves it.
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
  uint64_t uses_ = 0;  // number of uses of chunks; orders them
  bool stopping_ = false;
  // A chunk did not fit: all readers build for themselves.
  bool gave_up_ = false;
};

}  // namespace sstferry
