// Tells what the WALs of a database hold, without replaying them: how much,
// which keys, which transactions, and whose rules for sequence numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

#include "format/rocksdb/write_batch_reader.h"

namespace sstferry {

// Keys of all families that are kept, and names of open transactions.
inline constexpr size_t kMaxWalKeyBytes = 64u << 20;
inline constexpr size_t kMaxPreparedNameBytes = 16u << 20;

// A key, or with `is_range` the keys from `key` on and before `end`. Raw user
// keys as written, with their timestamp if the family has them.
struct WalKey {
  std::string key;
  std::string end;
  bool is_range = false;
};

// What the WALs write to one column family.
struct WalFamily {
  uint64_t entries = 0;
  // In the order of the WALs, prepared transactions included whatever became
  // of them. Empty when `unbounded`.
  std::vector<WalKey> keys;
  // More than kMaxWalKeyBytes: every key may be among them.
  bool unbounded = false;
};

// Fed with the records of all WALs that recovery reads, oldest WAL first.
//
// Owner:   borrows nothing.
// Threads: one at a time.
// Memory:  kMaxWalKeyBytes plus kMaxPreparedNameBytes, with their overhead.
class WalFacts {
 public:
  // One record of WAL `log_number`, which messages name. Corruption and
  // NotSupported as ReadWriteBatch, and NotSupported for too many open
  // transactions. A record that fails may have been counted in part.
  [[nodiscard]] rocksdb::Status Add(uint64_t log_number,
                                    const rocksdb::Slice& record);

  uint64_t batches() const { return batches_; }
  uint64_t entries() const { return entries_; }
  // The first batch's. 0 without a batch.
  uint64_t first_sequence() const { return first_sequence_; }

  // By column family id.
  const std::map<uint32_t, WalFamily>& families() const { return families_; }

  // Names of the transactions that were prepared and neither committed nor
  // rolled back.
  const std::set<std::string>& prepared() const { return prepared_; }
  // Of write-unprepared transactions that were written to the WAL, but neither
  // prepared nor committed nor rolled back.
  const std::set<std::string>& unprepared() const { return unprepared_; }

  // A section of any write policy that begins a prepared transaction: only a
  // recovery with allow_2pc understands it.
  bool has_prepare_sections() const { return has_prepare_sections_; }

  // Written with WRITE_PREPARED or WRITE_UNPREPARED: a sequence number belongs
  // to a batch and not to an entry, so that a plain open recovers other
  // sequence numbers than were written. Shown by a marker of theirs, or by a
  // batch that begins behind the first and before the last of the sequence
  // numbers that the entries of the batch before it would have. (Without
  // either, both ways of counting agree.)
  bool counts_batches() const { return counts_batches_; }

 private:
  class Handler;

  void Keep(WalFamily* family, WalKey key);
  rocksdb::Status Open(const rocksdb::Slice& name,
                       std::set<std::string>* names);
  void Close(const rocksdb::Slice& name, std::set<std::string>* names);

  uint64_t batches_ = 0;
  uint64_t entries_ = 0;
  uint64_t first_sequence_ = 0;
  // Of the last batch, counted by entries.
  uint64_t last_sequence_ = 0;
  uint64_t last_end_ = 0;
  size_t key_bytes_ = 0;
  size_t name_bytes_ = 0;
  std::map<uint32_t, WalFamily> families_;
  std::set<std::string> prepared_;
  std::set<std::string> unprepared_;
  bool has_prepare_sections_ = false;
  bool counts_batches_ = false;
};

}  // namespace sstferry
