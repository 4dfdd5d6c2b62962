// Reads the records that recovery will replay from a snapshot's copied WALs,
// before RocksDB opens them, because RocksDB drops records that it does not
// understand and returns OK.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "format/coding.h"
#include "format/digest.h"
#include "format/rocksdb/manifest_reader.h"
#include "pipeline/snapshot/snapshot_wals.h"
#include "rocksdb/options.h"
#include "rocksdb/status.h"

namespace sstferry {

// Count and digest of the records that a recovery must replay, or has replayed,
// in order: the records of all needed WALs, up to the first WAL that ends
// inside a record. Records after this WAL are not included, because the
// recovery mode decides if they are replayed.
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
  Digest128 digest;  // over each record's WAL number and sequence
};

// Facts about the records that recovery will replay from copied WALs.
struct Replay {
  uint64_t entries = 0;
  // True if recovery needs allow_2pc.
  bool has_prepare_sections = false;
  bool has_single_deletes = false;
  uint64_t prepared = 0;  // transactions neither committed nor rolled back
  // Name of the first WAL that ends inside a record; empty: no such WAL.
  std::string torn;
  bool is_torn_inside = false;  // a newer WAL follows the torn WAL
  ReplayedRecords records;
  // Not stored in the file: the sequence number of the last entry in these
  // records, and the families that have merge operands in a WAL.
  uint64_t newest_sequence = 0;
  std::set<std::string> merging;
};

// Reads `wals` in `directory`, oldest first. `options` are the recovery's
// options. The recovery opens the families `opened`, and does not replay WALs
// that only other families need.
//   kRefused       RocksDB would replay records differently from the source's
//                  application: the message says why and what to do.
//   kIncompatible  records that this process's RocksDB does not know.
//   kCorrupt       a record that is not a write batch.
[[nodiscard]] rocksdb::Status ReadReplay(const std::string& directory,
                                         const std::vector<CopiedWal>& wals,
                                         const ManifestState& state,
                                         const rocksdb::DBOptions& options,
                                         const std::set<std::string>& opened,
                                         Replay* replay);

// Contents of a snapshot's WALs, which this process does not replay.
struct WalContents {
  uint64_t entries = 0;
  uint64_t prepared = 0;  // transactions neither committed nor rolled back
  uint64_t newest_sequence = 0;         // 0: no entry
  std::set<uint8_t> meta_record_types;  // types of records about the log itself
  bool prepares_entities = false;       // as in WalFacts
  std::map<uint64_t, uint64_t> ends;    // WAL number -> end of its last record
  uint64_t records = 0;                 // number of data records
  Digest128 digest;                     // over these records and their offsets
};

// Reads `wals` in `directory`, whose MANIFEST has `state`, oldest first. Works
// even if this process could not replay them.
//   kRefused       they refer to a blob file that the MANIFEST lacks.
//   kCorrupt       a record that is not a write batch.
//   kIncompatible  a record of a type that sstferry does not know.
[[nodiscard]] rocksdb::Status ReadWalContents(
    const std::string& directory, const std::vector<CopiedWal>& wals,
    const ManifestState& state, WalContents* contents);

// Stores `replay` in a file, for a process that adopts the snapshot.
// LoadReplay() reads a missing or damaged file as unknown.
[[nodiscard]] rocksdb::Status WriteReplay(const std::string& path,
                                          const Replay& replay);
void LoadReplay(const std::string& path, Replay* replay);

}  // namespace sstferry
