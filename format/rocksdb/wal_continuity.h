// Checks that the records of a database's WALs, in order, have an entry for
// each sequence number.
//
// If no record has some number, the number belongs to something outside the
// WALs: writes without a WAL, an ingestion, or a WAL that was created and
// removed unseen. The reverse is not true: an ingestion may take no number.
//
// Entries that were written without a WAL are lost if the source crashes before
// a flush writes them to a table. So this class remembers the numbers that no
// WAL has: a table that may have one of them contains entries that no follower
// has.
//
// A batch takes a number for each entry. Entries of a prepared section
// (two-phase commit) take their numbers at the commit, in a later record
// (batch_sequences.h). So after a commit whose section was not seen, the next
// number is unknown.
//
// WRITE_PREPARED is refused: there a batch takes one number for all its
// entries, and ends with a no-op marker (kNoop). Under other policies a record
// also ends with a no-op marker if the last of several transactions that were
// written together is empty. So the numbers of such a record are certain only
// after the next record of its WAL confirms them.
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
  kGap,        // numbers are missing before the record, or may be missing
  kBlobIndex,  // an entry refers to a blob; no WAL has its bytes
};

// Follows the records of all WALs of one database.
//
// Threads: one. Memory: as PreparedSections.
class WalContinuity {
 public:
  // Expects the first record to continue after `last_sequence`.
  explicit WalContinuity(uint64_t last_sequence)
      : next_sequence_(last_sequence + 1), holes_{{0, last_sequence + 1}} {}

  // Adds the next record, which is in WAL number `wal`.
  //   kRefused  a policy that does not count entries (WRITE_PREPARED,
  //             WRITE_UNPREPARED), an unknown entry, too many open
  //             transactions.
  //   kCorrupt  a damaged batch
  [[nodiscard]] rocksdb::Status Add(uint64_t wal, const rocksdb::Slice& record,
                                    WalStep* step);

  // Marks a sequence number as found in a table of the MANIFEST, so that no WAL
  // needs to have it.
  void Excuse(uint64_t sequence);

  // If `are_lost` is true, the entries of the following records count as
  // missing in all WALs. Set this after a WAL that ends inside a record, if no
  // earlier record had entries: RocksDB's recovery continues after such a WAL
  // only with the sequence number that it expects, and it does not yet expect
  // any.
  void SetLost(bool are_lost) { are_lost_ = are_lost; }
  bool has_entries() const { return last_end_ != 0; }

  // Returns the name of a transaction that was prepared in a WAL before this
  // WAL and has not ended; empty if there is no such transaction. RocksDB does
  // not delete the WAL of an open transaction.
  std::string PreparedBefore(uint64_t wal) const;
  // Removes all transactions that were prepared before this WAL, because they
  // have ended in a WAL that was not seen.
  void ForgetPreparedBefore(uint64_t wal) { prepared_.CloseBefore(wal); }

  // Records that tables have all entries up to `sequence`, even if WALs do not.
  void SkipTo(uint64_t sequence);
  // Declares that the records so far belong to a cut at `sequence`. Their gaps
  // are known and no longer count; later records must continue the cut. If the
  // last record leaves the next number unknown, assumes that the next record
  // continues it. If `has_all` is false, the records of the cut were not added;
  // then also assumes this for the record after the commit of a transaction
  // that the cut's records prepared.
  void BeginBehindCut(uint64_t sequence, bool has_all = true);
  // Accepts any sequence number in the next record.
  void TrustNext() { trusts_next_ = true; }

  // Returns false if any number from `first` to `last` may be missing in all
  // WALs. Numbers above last_sequence() are not checked.
  bool Covers(uint64_t first, uint64_t last) const;

  // Returns the last number that an entry or a table (SkipTo) has; before the
  // first entry, the number after which the first entry must continue.
  uint64_t last_sequence() const { return last_sequence_; }

 private:
  class Handler;

  void AddHole(uint64_t begin, uint64_t end);

  uint64_t next_sequence_;  // 0: unknown
  uint64_t last_sequence_ = next_sequence_ - 1;
  // First number of the last batch that took any number, and the number after
  // the batch's last.
  uint64_t last_begin_ = 0;
  uint64_t last_end_ = 0;
  // First number that the last batch may not have taken; 0: it took all its
  // numbers.
  uint64_t unsure_ = 0;
  uint64_t last_wal_ = 0;  // WAL of the last batch that took any number
  bool are_lost_ = false;
  bool trusts_next_ = false;
  bool trusts_unknown_ = false;
  PreparedSections prepared_;
  std::set<uint64_t> excused_;
  // Ranges [begin, end) of numbers that no WAL has, by begin. Includes all
  // numbers below the first record's.
  std::map<uint64_t, uint64_t> holes_;
};

}  // namespace sstferry
