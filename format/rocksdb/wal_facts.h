// Collects facts about the WALs of a database without replaying them: counts,
// transactions, and the way in which sequence numbers are assigned.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

#include "format/release.h"
#include "format/rocksdb/batch_sequences.h"
#include "format/rocksdb/write_batch_reader.h"

namespace sstferry {

// Maximum number of blob files whose numbers are kept.
inline constexpr size_t kMaxWalBlobFiles = 1u << 20;

// Counts the entries in WALs that belong to one column family. The entries of
// prepared transactions are included, committed or not.
struct WalFamily {
  uint64_t entries = 0;
  bool has_merges = false;
};

// Collects the facts from the records of all WALs that recovery reads. The
// caller adds the records in order, oldest WAL first.
//
// Owner:   borrows nothing.
// Threads: one at a time.
// Memory:  kMaxPreparedNameBytes, kMaxWalBlobFiles numbers and kMaxFamilies
//          families, with their overhead.
class WalFacts {
 public:
  // Adds one record of WAL `log_number`; messages contain this number. If an
  // error is returned, some entries of the record may be counted.
  //   Corruption    as ReadWriteBatch().
  //   NotSupported  as ReadWriteBatch(); or the WALs have too many prepared
  //                 transactions or column families (including dropped ones).
  [[nodiscard]] rocksdb::Status Add(uint64_t log_number,
                                    const rocksdb::Slice& record);

  uint64_t entries() const { return entries_; }
  // Returns the sequence number of the last entry, or of the last batch if
  // counts_batches(); 0: no entry. Includes prepared entries that were
  // committed (SequenceCounter). If the last record commits a transaction whose
  // section is in no WAL, tables may have later entries. A batch without
  // entries consumes no number. RocksDB writes such a batch, with the number of
  // the next entry, after it has recovered up to damage.
  uint64_t newest_sequence() const {
    return counts_batches_ ? last_sequence_ : newest_sequence_;
  }

  // Returns the facts by column family id.
  const std::map<uint32_t, WalFamily>& families() const { return families_; }

  // Returns the names of transactions that were prepared but neither committed
  // nor rolled back.
  std::set<std::string> prepared() const;

  // Returns true if the WALs have a prepare section, whatever the write policy
  // (WRITE_COMMITTED, WRITE_PREPARED, WRITE_UNPREPARED). Only a recovery with
  // allow_2pc understands prepare sections.
  bool has_prepare_sections() const { return has_prepare_sections_; }

  // Returns true if a section prepares a transaction that is already prepared.
  // The record that ended the earlier transaction of this name is missing.
  // RocksDB built with assertions aborts if it reads such WALs.
  bool prepares_twice() const { return prepares_twice_; }

  // Returns true if a section prepares a wide-column entity or a reference to a
  // blob. RocksDB before 9.4 replays a plain value instead.
  bool prepares_entities() const { return prepares_entities_; }

  // Returns true if an entry is a SingleDelete.
  bool has_single_deletes() const { return has_single_deletes_; }

  // Returns the numbers of the blob files to which entries of any kind refer.
  // Contains 0, which no blob file has, if a reference cannot be read
  // (ForEachBlobReference), or if there are more than kMaxWalBlobFiles numbers.
  const std::set<uint64_t>& blob_files() const { return blob_files_; }

  // Adds to *needs the releases that can replay the entries.
  void AddNeeds(Needs* needs) const;

  // Returns true if the WALs were written with WRITE_PREPARED or
  // WRITE_UNPREPARED. Under these policies, sequence numbers belong to batches
  // instead of entries, and a plain open recovers other sequence numbers than
  // were written. There are two kinds of evidence: a marker of these policies,
  // or a batch that begins within the numbers of the previous batch. For
  // example, if a batch at 10 has three entries and the next batch begins at
  // 11, the first batch consumed only one number. (Without such evidence, both
  // ways of counting give the same numbers.)
  bool counts_batches() const { return counts_batches_; }

 private:
  class Handler;

  void KeepBlobFile(uint64_t number);

  uint64_t entries_ = 0;
  // First sequence number of the last batch, and the number after its last
  // entry if entries are counted. Both are 0 before the first batch.
  uint64_t last_sequence_ = 0;
  uint64_t last_end_ = 0;
  uint64_t newest_sequence_ = 0;
  std::map<uint32_t, WalFamily> families_;
  PreparedSections prepared_;
  std::set<uint64_t> blob_files_;
  bool has_prepare_sections_ = false;
  bool counts_batches_ = false;
  bool prepares_twice_ = false;
  bool prepares_entities_ = false;
  bool has_single_deletes_ = false;
  bool has_entities_ = false;
  bool has_timed_puts_ = false;
  bool has_blob_columns_ = false;
};

}  // namespace sstferry
