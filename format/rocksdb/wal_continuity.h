// Checks that the records of a database's WALs, in order, have an entry for
// each sequence number.
//
// If a sequence number is in no record, something outside the WALs consumed it:
// a write without a WAL, an ingestion, or a WAL that was created and removed
// unseen. The reverse does not hold: for example, an ingestion may consume no
// number, and then leaves no gap.
//
// If the source crashes, it loses entries that were written without a WAL and
// not yet flushed to a table. So this class remembers the numbers that are in
// no WAL. A table that may have such a number contains entries that no follower
// has.
//
// A batch consumes a number for each entry. The entries of a prepared section
// (two-phase commit) consume their numbers at the commit, which is in a later
// record (batch_sequences.h). So after a commit whose section was not seen, the
// next number is unknown.
//
// WRITE_PREPARED is refused. Under this policy, a batch consumes one number for
// all its entries, and ends with a no-op marker (kNoop). Under other policies,
// a record may also end with a no-op marker, if several transactions were
// written together and the last one is empty. For such a record, only the next
// record of the same WAL shows how many numbers it consumed.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

#include "format/rocksdb/batch_sequences.h"

namespace sstferry {

enum class WalStep : uint8_t {
  kContinues,
  kGap,        // numbers before the record are missing, or may be
  // An entry refers to a value in a blob file, which no WAL contains. Or the
  // entry cannot be read, so it may have such a reference
  // (ForEachBlobReference).
  kBlobIndex,
};

// Follows the records of all WALs of one database.
//
// Threads: one. Memory: as PreparedSections.
class WalContinuity {
 public:
  // Expects that the first record begins with the number after `last_sequence`.
  explicit WalContinuity(uint64_t last_sequence)
      : next_sequence_(last_sequence + 1), holes_{{0, last_sequence + 1}} {}

  // Adds the next record, which is in WAL number `wal`.
  //   kRefused  the write policy counts batches instead of entries
  //             (WRITE_PREPARED, WRITE_UNPREPARED), an entry is unknown, or
  //             there are too many open transactions.
  //   kCorrupt  the batch is damaged
  [[nodiscard]] rocksdb::Status Add(uint64_t wal, const rocksdb::Slice& record,
                                    WalStep* step);

  // Declares that no WAL needs to have `sequence`, because a table in the
  // MANIFEST has it.
  void Excuse(uint64_t sequence);

  // If `are_lost` is true, entries of the following records count as missing in
  // all WALs. The caller sets it after a WAL that ends inside a record, if no
  // earlier record had entries. After such a WAL, RocksDB's recovery continues
  // only with the sequence number that it expects. Without an earlier entry, it
  // expects none yet.
  void SetLost(bool are_lost) { are_lost_ = are_lost; }
  bool has_entries() const { return last_end_ != 0; }

  // Returns the name of a transaction that was prepared in a WAL before `wal`
  // and has not ended. Returns an empty name if every such transaction has
  // ended. RocksDB does not delete the WAL of an open transaction.
  std::string PreparedBefore(uint64_t wal) const;
  // Removes all transactions that were prepared before `wal`. They have ended
  // in a WAL that was not seen.
  void ForgetPreparedBefore(uint64_t wal) { prepared_.CloseBefore(wal); }

  // Records that tables have all entries up to `sequence`, even if WALs do not.
  void SkipTo(uint64_t sequence);
  // Declares that the records so far belong to a cut at `sequence`. Gaps in
  // these records no longer count, and later records must continue the cut. If
  // the number after the last record is unknown or uncertain, the next record
  // may have any number. `has_all` is false if the records of the cut were not
  // added. Then the record after a commit may also have any number, because the
  // cut may contain the section of this transaction.
  void BeginBehindCut(uint64_t sequence, bool has_all = true);
  // Accepts any sequence number in the next record.
  void TrustNext() { trusts_next_ = true; }

  // Returns false if a number from `first` to `last` may be missing in all
  // WALs. Does not check numbers above last_sequence().
  bool Covers(uint64_t first, uint64_t last) const;

  // Returns the last number that an entry has, or that SkipTo() has declared.
  // Before the first entry, returns the number after which the first entry must
  // continue.
  uint64_t last_sequence() const { return last_sequence_; }

 private:
  class Handler;

  void AddHole(uint64_t begin, uint64_t end);

  uint64_t next_sequence_;  // 0: unknown
  uint64_t last_sequence_ = next_sequence_ - 1;
  // First number that the last batch consumed, and the number after its last
  // one. Batches without numbers do not count.
  uint64_t last_begin_ = 0;
  uint64_t last_end_ = 0;
  // First number that the last batch may not have consumed; 0: it certainly
  // consumed a number for each entry.
  uint64_t unsure_ = 0;
  uint64_t last_wal_ = 0;  // WAL of the last batch that consumed a number
  bool are_lost_ = false;
  bool trusts_next_ = false;
  bool trusts_unknown_ = false;
  PreparedSections prepared_;
  std::set<uint64_t> excused_;
  // Numbers that no WAL has: a map from begin to end of ranges [begin, end).
  // Includes all numbers below the first record's number.
  std::map<uint64_t, uint64_t> holes_;
};

}  // namespace sstferry
