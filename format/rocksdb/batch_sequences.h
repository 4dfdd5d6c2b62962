// Counts the sequence numbers that the batches in WALs consume. All code that
// needs the last sequence number of a record uses this file.
//
// A batch consumes one sequence number for each entry, beginning with the
// number in its header. A prepared section (two-phase commit, WriteCommitted)
// is an exception: its entries consume their numbers only at the commit, which
// is in a later record. The count in the header of that record does not include
// these entries. For example, a transaction t with three entries:
//
//   record           sequence, count   consumes
//   t's section      51, 3             no number
//   a put            51, 1             51
//   t's commit       52, 0             52, 53, 54
//
// Under WritePrepared and WriteUnprepared, a batch consumes one number for all
// its entries. WalFacts detects these policies.
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

// Maximum memory for the names of prepared transactions.
inline constexpr size_t kMaxPreparedNameBytes = 16u << 20;

// A prepared section whose transaction has not ended.
struct PreparedSection {
  uint64_t entries = 0;
  uint64_t wal = 0;  // number of the WAL that contains the section
};

// The prepared sections whose transactions have not ended, by the names of the
// transactions.
//
// Memory: at most kMaxPreparedNameBytes, including overhead.
class PreparedSections {
 public:
  // Adds a section. It replaces an earlier section of the same name.
  //   kRefused  there are too many transactions
  [[nodiscard]] rocksdb::Status Open(const rocksdb::Slice& name,
                                     const PreparedSection& section);
  // Removes and returns the section of a transaction that has ended. Returns
  // nullopt if no section of this name was added.
  std::optional<PreparedSection> Close(const rocksdb::Slice& name);
  // Removes all sections that are in WALs before `wal`.
  void CloseBefore(uint64_t wal);
  const std::map<std::string, PreparedSection>& by_name() const {
    return by_name_;
  }

 private:
  std::map<std::string, PreparedSection> by_name_;
  size_t name_bytes_ = 0;
};

// Counts the sequence numbers that one batch consumes. A BatchHandler passes
// all entries and markers of the batch to this object, in order.
class SequenceCounter {
 public:
  // `prepared` has the open sections of all earlier batches, oldest WAL first.
  // The batch is in WAL number `wal`. This object adds the sections that the
  // batch prepares, and removes those that the batch commits or rolls back.
  SequenceCounter(PreparedSections* prepared, uint64_t wal)
      : prepared_(prepared), wal_(wal) {}

  void AddEntry() { ++(in_section_ ? section_entries_ : sequences_); }
  // Returns errors of PreparedSections::Open().
  [[nodiscard]] rocksdb::Status AddMarker(BatchMarker marker,
                                          const rocksdb::Slice& name);

  // Returns true between the begin marker and the end marker of a section.
  bool in_section() const { return in_section_; }
  // Returns how many numbers the batch consumes. Does not count the entries of
  // committed sections that were not added.
  uint64_t sequences() const { return sequences_; }
  // Returns false if the batch commits a section that was not added. Then the
  // batch consumes more numbers than sequences(), and how many is unknown. (The
  // section's WAL may be gone: RocksDB deletes it after the commit, when the
  // entries were flushed.)
  bool is_known() const { return is_known_; }
  bool takes_any() const { return sequences_ > 0 || !is_known_; }

 private:
  PreparedSections* const prepared_;
  const uint64_t wal_;
  uint64_t sequences_ = 0;
  uint64_t section_entries_ = 0;  // entries of the current section
  bool in_section_ = false;
  bool is_unprepared_ = false;  // not the last section of its transaction
  bool is_known_ = true;
};

}  // namespace sstferry
