// Keeps a database's WALs alive, and reads their records while the owner (the
// process that has the database open) writes the newest WAL.
//
// The size of a WAL file does not show where its last record ends. If RocksDB
// reuses the file of an older WAL, old records follow the new ones. If the
// owner crashed or buffers writes, a WAL may end inside a record. The copy of
// the newest WAL therefore ends after its last complete record. Older WALs are
// copied with an incomplete last record, which recovery evaluates. Old records
// in a reused file are copied only where recovery would stop at them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/rocksdb/log_follower.h"
#include "format/rocksdb/manifest_state.h"
#include "pipeline/snapshot/posix_files.h"
#include "pipeline/snapshot/snapshot.h"
#include "rocksdb/status.h"

namespace sstferry {

// A copied WAL.
struct CopiedWal {
  uint64_t number = 0;
  std::string name;
  uint64_t bytes = 0;
};

// Rules of a recovery with kPointInTimeRecovery.
struct PointInTime {
  // True if the application's RocksDB is not older than kStopsAtOldRecords.
  bool stops_at_old_records = true;
  // True if the copied WALs will be replayed, perhaps by an older RocksDB.
  bool replays = true;
};

// The WALs of one snapshot, kept alive by links and open files.
//
// Ownership: owns the open files. The creator removes the links in held/.
// Threads:   used by one thread.
class PinnedWals {
 public:
  // Reads WALs in `directory`, and keeps each one open. Where possible, also
  // makes links to them in `pinned`.
  PinnedWals(std::string directory, std::string pinned);
  ~PinnedWals();

  // Set to false only if the owner is known not to reuse (recycle) WAL files.
  void set_may_recycle(bool may) { may_recycle_ = may; }
  // Set to true if the database is a standby. If a follower crashes, the newest
  // WAL of a standby may end with an incomplete record.
  void set_is_standby(bool is) { is_standby_ = is; }

  // Set to false only if the owner is known to write each record to the file at
  // once (manual_wal_flush is false).
  void set_may_buffer(bool may) { may_buffer_ = may; }

  // Ignores bytes after the limit, and all later WALs.
  void set_limit(const std::optional<WalLimit>& limit) { limit_ = limit; }

  // Set to true if the application's wal_recovery_mode is
  // kSkipAnyCorruptedRecords.
  void set_passes_damage(bool passes) { passes_damage_ = passes; }

  // Lists the directory and opens the WALs with numbers from `oldest` on.
  // Forgets older WALs and WALs that were removed, and reads new records. If
  // the MANIFEST did not change meanwhile, the ends of all WALs belong to one
  // point in time.
  //   TryAgain  a WAL disappeared, or the listing may have missed one.
  //   others    a WAL cannot be read, or has unknown records.
  [[nodiscard]] rocksdb::Status Follow(uint64_t oldest);

  // Checks that the WALs can be copied up to the ends that Follow() has found.
  // A WAL must end with a complete record. Otherwise the bytes after its last
  // record must not change any more, or must belong to an older WAL in the same
  // file.
  //   TryAgain  not yet; the message is the reason.
  //   kCorrupt  bytes before the end of a WAL were wrong in several reads.
  [[nodiscard]] rocksdb::Status CheckEnds();

  // Checks that the source's application would find all records, if its owner
  // crashed now and the application recovered with kPointInTimeRecovery. This
  // recovery
  //
  // - stops at a WAL with other bytes after its last record: a torn record, or,
  //   since RocksDB 9.1, an old record of a recycled file;
  // - continues after such a stop only at a record that continues the sequence
  //   numbers of the records before it;
  // - fails if it has stopped, and a family with tables was flushed after the
  //   WAL at which it stopped, because records of other families may be
  //   missing.
  //
  // A stop is ignored if the recovery of the copied WALs will also find it.
  // `oldest` is the number of the oldest WAL that recovery reads.
  //   kSourceError  recovery stops where that of the copied WALs might
  //                 continue, and RocksDB would not open the database or not
  //                 read a WAL
  [[nodiscard]] rocksdb::Status CheckRecovery(const ManifestState& state,
                                              uint64_t oldest,
                                              const PointInTime& rules) const;

  // Returns the number of bytes that CopyInto() will copy.
  uint64_t bytes() const;
  // Copies bytes() bytes of the WALs to `directory`. CheckEnds() must have
  // returned OK before.
  //   TryAgain  the owner recycled a WAL meanwhile, or wrote after the end of a
  //             WAL whose end had counted as settled.
  [[nodiscard]] rocksdb::Status CopyInto(const std::string& directory,
                                         std::vector<CopiedWal>* copied) const;

  const std::string& directory() const { return directory_; }

 private:
  struct Wal;

  [[nodiscard]] rocksdb::Status List(uint64_t oldest);
  [[nodiscard]] rocksdb::Status Hold(uint64_t number, const std::string& name);
  [[nodiscard]] rocksdb::Status AdvanceAll();
  [[nodiscard]] rocksdb::Status Advance(Wal* wal);
  [[nodiscard]] rocksdb::Status CheckEnd(Wal* wal);
  [[nodiscard]] rocksdb::Status CheckUnwritten(const Wal& wal) const;
  [[nodiscard]] rocksdb::Status CheckNames() const;
  bool IsNewest(const Wal& wal) const;
  bool IsRecyclable(const Wal& wal) const;
  uint64_t NextSequence(const Wal& wal) const;
  bool IsContinued(const Wal& wal) const;
  bool NeedsRest(const Wal& wal) const;
  bool MovesTheStop(const Wal& wal) const;
  bool HidesStop(const Wal& wal) const;
  uint64_t BytesToCopy(const Wal& wal) const;

  const std::string directory_;
  const std::string pinned_;
  bool may_recycle_ = true;
  bool may_buffer_ = true;
  bool passes_damage_ = false;
  bool is_standby_ = false;
  std::optional<WalLimit> limit_;
  std::map<uint64_t, std::unique_ptr<Wal>> wals_;  // by number
  uint64_t newest_listed_ = 0;
};

// Finds the names of WALs among `names`, and returns them by WAL number.
std::map<uint64_t, std::string> WalsIn(const std::vector<std::string>& names);

}  // namespace sstferry
