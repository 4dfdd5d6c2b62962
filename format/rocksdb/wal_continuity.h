// Tells whether the records of a database's WALs, in their order, have an entry
// for each sequence number.
//
// A number that no record has belongs to something that the WALs lack: writes
// without a WAL, an ingestion, a WAL that came and went unseen. The reverse does
// not hold: an ingestion may take no number.
//
// Entries that were written without a WAL are lost when the source dies, until
// a flush writes them to a table. So numbers that no WAL has are remembered: a
// table that may have one of them holds what no follower has.
//
// A batch takes a number for each entry. Entries of a section that is prepared
// (two-phase commit) take theirs when it is committed, in a later record. So a
// commit of a section that was not seen leaves the next number unknown.
//
// With WRITE_PREPARED, which is refused, a batch takes one number for all its
// entries, and a marker without a meaning (kNoop) ends it. A record of other
// policies ends in one, too, if the last of the transactions that were written
// together is empty. So the numbers of such a record are taken for certain only
// once the next record of its WAL confirms them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

enum class WalStep : uint8_t {
  kContinues,
  kGap,        // numbers are missing before it, or it is not known whether any
  kBlobIndex,  // an entry refers to a blob, whose bytes no WAL has
};

// Follows the records of all WALs of one database.
//
// Threads: one. Memory: the names of open transactions, as WalFacts.
class WalContinuity {
 public:
  // The first record must continue behind `last_sequence`.
  explicit WalContinuity(uint64_t last_sequence)
      : next_sequence_(last_sequence + 1), holes_{{0, last_sequence + 1}} {}

  // Takes the next record, which is in the WAL of that number.
  //   kRefused  a policy that does not count entries (WRITE_PREPARED,
  //             WRITE_UNPREPARED), an unknown entry, too many open
  //             transactions.
  //   kCorrupt  a damaged batch
  [[nodiscard]] rocksdb::Status Add(uint64_t wal, const rocksdb::Slice& record,
                                    WalStep* step);

  // A table that the MANIFEST tells of holds what has this number.
  void Excuse(uint64_t sequence);

  // Makes the entries of all records that come now count as in no WAL, or not.
  // They do behind a WAL that ends in the middle of a record, if no record had
  // entries before: RocksDB's recovery continues there only with the number that
  // it expects, and it expects none yet.
  void SetLost(bool are_lost) { are_lost_ = are_lost; }
  bool has_entries() const { return last_end_ != 0; }

  // Finds a transaction that is prepared in a WAL below that number, and not ended;
  // empty: there is none. RocksDB deletes no WAL of one.
  std::string PreparedBefore(uint64_t wal) const;
  // Forgets such transactions: they have ended in a WAL that was not seen.
  void ForgetPreparedBefore(uint64_t wal);

  // Tables hold all entries up to `sequence`, whether or not WALs do.
  void SkipTo(uint64_t sequence);
  // All records so far are those of a cut at `sequence`, whose own gaps are known:
  // what comes now must continue it. Where the last record leaves the next number
  // unknown, the next one is taken to continue. Not `has_all`: the records of the
  // cut were not added, so that this holds behind each commit of what they
  // prepared.
  void BeginBehindCut(uint64_t sequence, bool has_all = true);
  // Takes the next record to continue, whatever its number.
  void TrustNext() { trusts_next_ = true; }

  // Returns false if a number from `first` to `last` may be one that no WAL has;
  // those above last_sequence() are not judged.
  bool Covers(uint64_t first, uint64_t last) const;

  // The last number that an entry has, or a table (SkipTo); before the first
  // entry, that behind which it must continue.
  uint64_t last_sequence() const { return last_sequence_; }

 private:
  class Handler;

  void AddHole(uint64_t begin, uint64_t end);

  uint64_t next_sequence_;  // 0: not known
  uint64_t last_sequence_ = next_sequence_ - 1;
  // The first number of the last batch that took any, and the one behind its
  // last.
  uint64_t last_begin_ = 0;
  uint64_t last_end_ = 0;
  // The first of the last batch's numbers that it may not have taken; 0: it took
  // all of them.
  uint64_t unsure_ = 0;
  uint64_t last_wal_ = 0;  // that has the last batch that took any
  bool are_lost_ = false;
  bool trusts_next_ = false;
  bool trusts_unknown_ = false;
  // A section that is prepared.
  struct Prepared {
    uint64_t entries = 0;
    uint64_t wal = 0;
  };
  std::map<std::string, Prepared> prepared_;  // by name of the transaction
  size_t name_bytes_ = 0;
  std::set<uint64_t> excused_;
  // Numbers that no WAL has, [begin, end), by begin; all below the first record's
  // are.
  std::map<uint64_t, uint64_t> holes_;
};

}  // namespace sstferry
