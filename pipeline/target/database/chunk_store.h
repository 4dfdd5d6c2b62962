// Where finished chunks go: what a lane and a pull know of the target's data,
// whatever it is made of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/record/journal.h"
#include "pipeline/base/stage_clock.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// A chunk in staging: whole, checked and, where durability asks, synced.
struct StagedChunk {
  uint32_t family = 0;
  std::string path;
  JournalChunk record;
};

// Threads: any.
// Crash:   a chunk's record is durable before the chunk is stored.
// Errors:  the first failure is kept and returned to every later caller.
class ChunkStore {
 public:
  virtual ~ChunkStore() = default;

  // Hands a chunk over; *clock books what this thread does for it. The journal
  // has its record when this returns (a process that dies then loses nothing),
  // but need not be synced, nor the chunk be stored. May wait.
  [[nodiscard]] virtual rocksdb::Status Add(StagedChunk chunk,
                                            StageClock* clock) = 0;
  // Waits until everything handed over is stored.
  [[nodiscard]] virtual rocksdb::Status Flush(StageClock* clock) = 0;
  // Records that all chunks of a range were handed over.
  [[nodiscard]] virtual rocksdb::Status EndRange(
      const JournalRangeDone& done) = 0;
  // Stores chunks whose records are durable already.
  [[nodiscard]] virtual rocksdb::Status AddRecorded(
      const std::vector<StagedChunk>& chunks, StageClock* clock) = 0;
  // From now on chunks are recorded and not stored, and callers get kCancelled
  // instead of waiting.
  virtual void Stop() = 0;
  virtual void FillSummary(Summary* summary) const = 0;
};

}  // namespace sstferry
