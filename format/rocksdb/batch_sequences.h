// Counts the sequence numbers that the batches in WALs take. All code that
// needs the last sequence number of a record counts with this.
//
// A batch takes a number for each entry, from the number in its header on. The
// entries of a prepared section (two-phase commit, WriteCommitted) take their
// numbers only at the commit, which is in a later record. The count in that
// record's header does not include them:
//
//   record           sequence, count   takes
//   t's section      51, 3             no number
//   a put            51, 1             51
//   t's commit       52, 0             52, 53, 54
//
// Under WritePrepared and WriteUnprepared, which WalFacts detects, a batch
// takes one number for all its entries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

#include "format/rocksdb/write_batch_reader.h"

namespace sstferry {

// Maximum bytes of the names of prepared transactions.
inline constexpr size_t kMaxPreparedNameBytes = 16u << 20;

// A prepared section whose transaction has not ended.
struct PreparedSection {
  uint64_t entries = 0;
  uint64_t wal = 0;  // number of the WAL that contains the section
};

// Contains the prepared sections, by the names of their transactions.
//
// Memory: at most kMaxPreparedNameBytes, including overhead.
class PreparedSections {
 public:
  // Adds a section; it replaces an earlier section of this name.
  //   kRefused  too many transactions
  [[nodiscard]] rocksdb::Status Open(const rocksdb::Slice& name,
                                     const PreparedSection& section);
  // Removes the section of a transaction that has ended, and returns it.
  // Returns nullopt if it was not added.
  std::optional<PreparedSection> Close(const rocksdb::Slice& name);
  // Removes all sections in WALs before this WAL.
  void CloseBefore(uint64_t wal);
  const std::map<std::string, PreparedSection>& by_name() const {
    return by_name_;
  }

 private:
  std::map<std::string, PreparedSection> by_name_;
  size_t name_bytes_ = 0;
};

// Counts the sequence numbers of one batch. A BatchHandler passes all entries
// and markers of the batch to it, in order.
class SequenceCounter {
 public:
  // `prepared`: the open sections of all earlier batches, oldest WAL first.
  // This object adds and removes sections according to its batch, which is in
  // WAL number `wal`.
  SequenceCounter(PreparedSections* prepared, uint64_t wal)
      : prepared_(prepared), wal_(wal) {}

  void AddEntry() { ++(in_section_ ? section_entries_ : sequences_); }
  // Returns errors of PreparedSections::Open().
  [[nodiscard]] rocksdb::Status AddMarker(BatchMarker marker,
                                          const rocksdb::Slice& name);

  // Returns true between the begin and the end of a section.
  bool in_section() const { return in_section_; }
  // Returns how many numbers the batch takes, except for committed sections
  // that were not added.
  uint64_t sequences() const { return sequences_; }
  // Returns false if the batch commits a section that was not added. Then it
  // takes more numbers than sequences(), and it is not known how many. (RocksDB
  // deletes the WAL of a section only after the commit, and after the entries
  // were flushed.)
  bool is_known() const { return is_known_; }
  bool takes_any() const { return sequences_ > 0 || !is_known_; }

 private:
  PreparedSections* const prepared_;
  const uint64_t wal_;
  uint64_t sequences_ = 0;
  uint64_t section_entries_ = 0;  // of the current section
  bool in_section_ = false;
  bool is_unprepared_ = false;  // the current section prepares nothing
  bool is_known_ = true;
};

}  // namespace sstferry
