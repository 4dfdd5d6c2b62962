// Reads the WAL records that recovery will replay, before RocksDB opens a
// snapshot's copy. This is necessary because RocksDB drops records that it does
// not understand, and still returns OK.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "format/coding.h"
#include "format/digest.h"
#include "format/release.h"
#include "format/rocksdb/manifest_reader.h"
#include "pipeline/snapshot/snapshot_wals.h"
#include "rocksdb/options.h"
#include "rocksdb/status.h"

namespace sstferry {

// Number and digest of the records that a recovery must replay, or has
// replayed, in order. If a WAL ends inside a record, records of later WALs are
// not included, because the recovery mode decides if RocksDB replays them.
class ReplayedRecords {
 public:
  void Add(uint64_t wal, uint64_t sequence) {
    std::string record;
    PutFixed64(&record, wal);
    PutFixed64(&record, sequence);
    PutFixed64(&record, digest.high);
    PutFixed64(&record, digest.low);
    digest = DigestOf(record);
    ++count;
  }
  friend bool operator==(const ReplayedRecords&,
                         const ReplayedRecords&) = default;

  uint64_t count = 0;
  Digest128 digest;  // of the WAL numbers and sequence numbers of all records
};

// Facts about the records that recovery will replay from copied WALs.
struct Replay {
  uint64_t entries = 0;
  // True if the WALs have prepared transactions, so that recovery needs
  // allow_2pc.
  bool has_prepare_sections = false;
  bool has_single_deletes = false;
  uint64_t prepared = 0;  // transactions neither committed nor rolled back
  // Name of the first WAL that ends inside a record. Empty: no WAL does.
  std::string torn;
  bool is_torn_inside = false;  // a newer WAL follows that WAL
  ReplayedRecords records;
  // The two members below are not stored by WriteReplay(). They are the
  // sequence number of the last of these records, and the families that have
  // merge operands in a WAL.
  uint64_t newest_sequence = 0;
  std::set<std::string> merging;
};

// Reads `wals` in `directory`; the oldest WAL is first. `options` are those
// with which the copy will be opened. `opened` are the families that will be
// opened; WALs that only other families need are not replayed.
//   kRefused       RocksDB would replay records differently from the source's
//                  application: the message says why and what to do.
//   kIncompatible  records or entries that this process's RocksDB does not
//                  know.
//   kCorrupt       a record that is not a write batch.
[[nodiscard]] rocksdb::Status ReadReplay(const std::string& directory,
                                         const std::vector<CopiedWal>& wals,
                                         const ManifestState& state,
                                         const rocksdb::DBOptions& options,
                                         const std::set<std::string>& opened,
                                         Replay* replay);

// Contents of a snapshot's WALs. This process only reads the WALs and does not
// replay them.
struct WalContents {
  uint64_t entries = 0;
  // Number of transactions that were prepared, but neither committed nor rolled
  // back.
  uint64_t prepared = 0;
  uint64_t newest_sequence = 0;  // 0: there is no entry
  Needs needs;                   // what their records and entries require
  // End offset of the last record of each WAL, by the WAL's number.
  std::map<uint64_t, uint64_t> ends;
  uint64_t records = 0;  // number of data records
  // Digest of the data records with their WAL numbers and offsets.
  Digest128 digest;
};

// Reads `wals` in `directory`, whose MANIFEST has the state `state`. The oldest
// WAL is first. Does not require that this process can replay the WALs.
//   kRefused       an entry refers to a blob file that the MANIFEST lacks, or
//                  the entry cannot be read.
//   kCorrupt       a record that is not a write batch.
//   kIncompatible  a record of a type that sstferry does not know.
[[nodiscard]] rocksdb::Status ReadWalContents(
    const std::string& directory, const std::vector<CopiedWal>& wals,
    const ManifestState& state, WalContents* contents);

// Stores `replay` in a file, for another process that adopts the snapshot. If
// the file is missing or damaged, LoadReplay() sets all facts to unknown.
[[nodiscard]] rocksdb::Status WriteReplay(const std::string& path,
                                          const Replay& replay);
void LoadReplay(const std::string& path, Replay* replay);

}  // namespace sstferry
