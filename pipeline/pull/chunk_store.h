// Defines the interface through which lanes store received chunks. Each kind of
// target implements the interface.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/journal.h"
#include "pipeline/base/stage_clock.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// A received chunk whose file is complete and checked. The file is also synced,
// except with --durability none and in a clone (UnitStore syncs units).
struct StagedChunk {
  uint32_t family = 0;
  std::string path;
  JournalChunk record;
  uint64_t deletions = 0;  // deletions in a delta
};

// Records received chunks in the journal and stores them.
// Threads:  any.
// Crash:   a chunk's record is durable before the chunk is stored.
// Errors:  every later call returns the first failure.
class ChunkStore {
 public:
  virtual ~ChunkStore() = default;

  // Adds a chunk, and adds the time that this takes to *clock. After OK, the
  // journal has the chunk's record, so the chunk survives a crash of the
  // process. The record and the chunk's file may still be unsynced. May block
  // until other chunks are stored.
  [[nodiscard]] virtual rocksdb::Status Add(StagedChunk chunk,
                                            StageClock* clock) = 0;
  // Blocks until every added chunk is stored.
  [[nodiscard]] virtual rocksdb::Status Flush(StageClock* clock) = 0;
  // Records that all chunks of a part were added.
  [[nodiscard]] virtual rocksdb::Status EndPart(
      const JournalPartDone& done) = 0;
  // Stores chunks whose records are already durable.
  [[nodiscard]] virtual rocksdb::Status AddRecorded(
      const std::vector<StagedChunk>& chunks, StageClock* clock) = 0;
  // Stops storing. Chunks that are added later are only recorded in the
  // journal. Callers get kCancelled instead of waiting.
  virtual void Stop() = 0;
  virtual void FillSummary(Summary* summary) const = 0;
};

}  // namespace sstferry
