// Pins a database's WALs and follows their valid records while the owner writes
// the newest WAL.
//
// The size of a WAL file does not show where its records end. A recycled file
// has old records of an earlier WAL after the new ones, and a WAL may end
// inside a record if its owner crashed or buffers writes. The copy of the
// newest WAL ends after its last complete record. An older WAL is copied with
// its torn end, which recovery evaluates. Old records of an earlier WAL are
// copied only where recovery would stop at them.
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

// A recovery with kPointInTimeRecovery.
struct PointInTime {
  // The application's RocksDB is at least kStopsAtOldRecords.
  bool stops_at_old_records = true;
  // The copied WALs will be replayed, perhaps by an older RocksDB.
  bool replays = true;
};

// The pinned WALs of one snapshot.
//
// Ownership: owns the open files; the creator removes the links in held/.
// Threads:   one.
class PinnedWals {
 public:
  // Pins the WALs in `directory`: by links in `pinned` where possible,
  // otherwise only by keeping the files open.
  PinnedWals(std::string directory, std::string pinned);
  ~PinnedWals();

  // Set to false only if the owner is known not to recycle WALs.
  void set_may_recycle(bool may) { may_recycle_ = may; }
  // Set to true if the database is a standby. Then bytes after the last
  // complete record of the newest WAL are a record that a crashed follower left
  // incomplete.
  void set_is_standby(bool is) { is_standby_ = is; }

  // Set to false only if the owner is known to write each record at once
  // (manual_wal_flush is false).
  void set_may_buffer(bool may) { may_buffer_ = may; }

  // Ignores bytes after the limit, and later WALs.
  void set_limit(const std::optional<WalLimit>& limit) { limit_ = limit; }

  // Set to true if the application recovers with kSkipAnyCorruptedRecords.
  void set_passes_damage(bool passes) { passes_damage_ = passes; }

  // Lists the directory, pins each WAL whose number is at least `oldest`, drops
  // older and removed WALs, and reads new records. The ends of the WALs are
  // then those of one point in time, if the MANIFEST did not change meanwhile.
  //   TryAgain  a WAL disappeared, or the listing may have missed one.
  //   others    a WAL cannot be read, or has unknown records.
  [[nodiscard]] rocksdb::Status Follow(uint64_t oldest);

  // Checks that the WAL ends that Follow() found may be used: each WAL ends
  // with a complete record, or the bytes after it no longer change or belong to
  // an earlier WAL in this file.
  //   TryAgain  not yet; the message is the reason.
  //   kCorrupt  bytes before the end of a WAL were wrong in several reads.
  [[nodiscard]] rocksdb::Status CheckEnds();

  // Checks that an application that recovers with kPointInTimeRecovery could
  // open the database without losing records, if its owner crashed now. This
  // recovery
  //
  // - stops at a WAL with other bytes after its last record: a torn record, or,
  //   since RocksDB 9.1, an old record of a recycled file;
  // - continues at a later record only if it continues the sequence numbers of
  //   the records that were read;
  // - fails if it stopped, and a family that has tables was flushed after the
  //   WAL at which it stopped: records of other families may be missing.
  //
  // Ignores a stop that the recovery of the copied WALs will find, too.
  // `oldest`: the oldest WAL that recovery reads.
  //   kSourceError  recovery stops where that of the copied WALs might
  //                 continue, and RocksDB would not open the database or not
  //                 read a WAL
  [[nodiscard]] rocksdb::Status CheckRecovery(const ManifestState& state,
                                              uint64_t oldest,
                                              const PointInTime& rules) const;

  // Returns the number of bytes that CopyInto() will write.
  uint64_t bytes() const;
  // Copies bytes() bytes of the WALs, whose ends CheckEnds() has accepted.
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

// Returns the WALs among `names`: number -> name.
std::map<uint64_t, std::string> WalsIn(const std::vector<std::string>& names);

}  // namespace sstferry
