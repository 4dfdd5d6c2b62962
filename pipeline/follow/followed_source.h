// Follows the directory of a live database: what its WALs get, and whether that
// is all that the database got.
//
// A round reads, in this order:
//
//   W = the new whole records of all WALs, in the order of their numbers
//   M = the new records of the MANIFEST that CURRENT names
//
// RocksDB holds its writers while it records an ingestion, or a family that is
// added or dropped. So a WAL record behind such an event was written after the
// event's MANIFEST record, and M, which is read after W, has it. Each record of
// M is judged (format/rocksdb/edit_judge.h): a barrier ends what can be followed
// for all who began before it. So does a gap in the sequence numbers of W
// (format/rocksdb/wal_continuity.h).
//
// A follower is nothing but a FollowPosition: a cut, by the bytes of the
// MANIFEST it was taken from, and an end of the WALs that the follower has byte
// by byte. Any number of them share one reading. Whether one can go on is
// decided from its position alone:
//
//   another database, MANIFEST or WAL, or other     cut: the source lives anew
//   bytes in them (format/history.h)
//   a WAL whose bytes are gone                      cut
//   a barrier in the MANIFEST behind the position   cut
//   a barrier in the WALs behind the position       cut
//   else                                            the bytes behind it
//
// Only a reader that has seen the WALs of a flushed table knows if it has entries
// that no WAL had, and RocksDB deletes these WALs soon. So an answer also tells up
// to which byte the reader has judged the MANIFEST. A follower repeats this to
// another reader as its position, which finds no barrier in these bytes.
//
// A WAL counts from its first record on. Its file may be there before, while the
// WAL before it still gets records (format/rocksdb/wal_end.h): its bytes about the
// log itself are sent with its first record.
//
// The source is never held up. WALs that it deletes stay readable through open
// files, up to max_held_bytes.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "format/clone_file.h"
#include "format/history.h"
#include "format/rocksdb/log_follower.h"
#include "format/rocksdb/version_edit.h"
#include "format/rocksdb/wal_continuity.h"
#include "pipeline/follow/round.h"
#include "pipeline/snapshot/posix_files.h"
#include "pipeline/snapshot/snapshot_manifest.h"
#include "pipeline/snapshot/snapshot_seen_options.h"
#include "rocksdb/status.h"

namespace sstferry {

struct FollowedSourceOptions {
  std::string database_dir;  // a real path
  std::string wal_dir;       // overrides OPTIONS; empty: found
  // Bytes of WALs that are kept readable for followers that are behind.
  uint64_t max_held_bytes = 1ull << 30;
  // The newest of them are kept in memory, once for all followers.
  uint64_t memory_bytes = 32u << 20;
  // Called between the reading of W and that of M; may be null.
  std::function<void()> wals_read;
};

// Threads: ReadRound() by one at a time; Answer() by any.
class FollowedSource {
 public:
  // The findings of Answer().
  enum class Found : uint8_t {
    kRound,    // bytes, or that a cut is needed
    kNothing,  // the position is the end of what was read
    kAhead,    // the position is behind that end: another round may reach it
  };

  explicit FollowedSource(FollowedSourceOptions options);
  ~FollowedSource();
  FollowedSource(const FollowedSource&) = delete;
  FollowedSource& operator=(const FollowedSource&) = delete;

  // Reads one round. `list`: also looks for WALs that are new by name; a round
  // without it only sees less. *more: it left something for the next one.
  //   kSourceError, kCorrupt  the directory cannot be read
  //   kRefused  the database cannot be followed: the message says why
  // OK also if the source changed so that this round has nothing.
  [[nodiscard]] rocksdb::Status ReadRound(bool list, bool* more);

  // Finds what is behind the position of `request`. With kNothing, *round has
  // only an end.
  [[nodiscard]] rocksdb::Status Answer(const FollowRequest& request,
                                       Found* found, Round* round) const;

  // Drops what lies before the WAL of that number: no follower needs it.
  void DropBefore(uint64_t wal_number);

  // Where the source keeps its WALs; empty until a round has found it.
  std::string wal_directory() const;
  // The number of the newest WAL with a record that was seen; 0: none.
  uint64_t newest_wal() const;
  // Rounds read, and bytes of WALs read in them.
  uint64_t rounds() const;
  uint64_t read_bytes() const;
  uint64_t held_bytes() const;
  // Finds the bytes of WALs that were read behind a position, and those that are
  // held for who is there.
  void Measure(const FollowPosition& position, uint64_t* behind_bytes,
               uint64_t* held_bytes) const;
  uint64_t last_sequence() const;

 private:
  struct WalFile;    // an open WAL, and how far it was read
  struct Piece;      // whole records of one WAL
  struct HeldWal;    // the pieces of one WAL
  struct StagedBytes;
  struct Staged;     // what W found, until M was read
  class ReadHistory;
  struct LogPlace {  // in the order of the WALs
    uint64_t number = 0;
    uint64_t offset = 0;
    auto operator<=>(const LogPlace&) const = default;
  };
  // Whoever is not at `end` or behind it needs a cut.
  template <typename Place>
  struct Barrier {
    Place end{};
    CutReason reason = CutReason::kNone;
    std::string note;
  };
  // A table that a flush added.
  struct Flushed {
    uint64_t first = 0;  // sequence numbers
    uint64_t last = 0;
    uint64_t end = 0;    // of its record in the MANIFEST
    bool seen = false;   // in an earlier round
  };
  // The findings of M.
  struct Judged {
    Barrier<uint64_t> barrier;
    Barrier<uint64_t> filter;
    std::vector<Flushed> flushed;
    std::vector<uint64_t> table_sequences;  // of tables that are no flush's
  };

  // For the reader; reader_mu_ is held.
  [[nodiscard]] rocksdb::Status BeginLife();
  [[nodiscard]] rocksdb::Status FollowManifest();
  [[nodiscard]] rocksdb::Status ReadWals(bool list, Staged* staged);
  [[nodiscard]] rocksdb::Status ListWals();
  [[nodiscard]] rocksdb::Status ReadWal(WalFile* wal, bool hold_first,
                                        Staged* staged, bool* held_first);
  [[nodiscard]] rocksdb::Status ReadSome(WalFile* wal, bool hold_first,
                                         uint64_t limit, Staged* staged,
                                         bool* held_first);
  void CutIntoPieces(WalFile* wal, uint64_t begin,
                     const std::vector<uint64_t>& ends,
                     const std::string& bytes, Staged* staged) const;
  void JudgeRecord(const VersionEdit& edit, const ManifestState& before,
                   uint64_t end);
  bool HasFilter(const std::string& family) const;
  void LearnFilters();
  void FindUnlogged(bool saw_all);
  void FindEndedUnseen(bool saw_all);
  void FindTornWal(uint64_t number);
  void ForgetTornWal();
  void Publish(uint64_t micros, bool listed, Staged* staged);
  // Finds up to where the MANIFEST is judged; what *digest has is kept.
  [[nodiscard]] rocksdb::Status DigestJudged(FollowJudged* judged);
  void EndLife();

  // mu_ is held.
  void Hold(StagedBytes* staged);
  void Trim();
  void CoolDown();
  CutReason FindBarrier(const FollowRequest& request, std::string* note) const;
  [[nodiscard]] rocksdb::Status Gather(const LogPlace& from,
                                       Round* round) const;
  [[nodiscard]] rocksdb::Status BytesOf(const HeldWal& wal, const Piece& piece,
                                        uint64_t from,
                                        std::string* bytes) const;
  // True if a WAL from that number on has a record that was read.
  bool HasRecordsFrom(uint64_t number) const;
  // Finds the digest of the first `bytes` of a WAL as they were read.
  [[nodiscard]] rocksdb::Status DigestOfWal(uint64_t number, uint64_t bytes,
                                            FileBegin* begin,
                                            Digest128* digest) const;
  // mu_ is not held. Finds the digest of the first `bytes` of the MANIFEST.
  [[nodiscard]] rocksdb::Status DigestOfManifest(uint64_t bytes,
                                                 FileBegin* begin,
                                                 Digest128* digest) const;

  const FollowedSourceOptions options_;

  mutable std::mutex reader_mu_;
  std::unique_ptr<ManifestTail> manifest_;  // null: no life has begun
  SeenOptions seen_options_;
  std::map<uint64_t, std::unique_ptr<WalFile>> wals_;
  std::unique_ptr<WalContinuity> continuity_;
  uint64_t oldest_ = 0;                        // WAL of this life
  uint64_t newest_listed_ = 0;
  std::map<std::string, bool> filters_;  // by family
  uint64_t kept_wals_ = 0;  // as the MANIFEST said when all was seen, from here on
  uint64_t torn_wal_ = 0;  // recovery stops behind it; 0: at none
  bool is_idle_ = true;  // the last round found nothing new
  Judged judged_;                        // since the last publication
  std::unique_ptr<Digest128Stream> digest_;  // of what is judged, and
  uint64_t digested_bytes_ = 0;              // so much of the MANIFEST

  mutable std::mutex mu_;
  std::string wal_directory_;
  std::string database_id_;
  uint64_t manifest_number_ = 0;
  uint64_t manifest_end_ = 0;
  uint64_t lives_ = 0;  // that have ended
  mutable std::map<uint64_t, Digest128> begins_;  // of the MANIFEST, by bytes
  std::map<uint64_t, Digest128> told_;            // those of told_judged_
  FollowJudged told_judged_;
  Barrier<uint64_t> manifest_barrier_;
  Barrier<uint64_t> filter_barrier_;
  Barrier<LogPlace> wal_barrier_;
  std::map<uint64_t, HeldWal> held_;
  uint64_t held_bytes_ = 0;
  uint64_t memory_bytes_ = 0;
  LogPlace cold_end_;  // no piece before it is in memory
  uint64_t rounds_ = 0;
  uint64_t read_bytes_ = 0;
  uint64_t read_micros_ = 0;
  uint64_t last_sequence_ = 0;
  bool source_closed_ = false;
  bool source_open_ = false;
};

// Finds the position of a cut of the database with that id, whose files `files`
// lie in `directory` under their own names.
//   kCorrupt  there is no MANIFEST, or a file is shorter than its records_end.
[[nodiscard]] rocksdb::Status PositionOfCut(const std::vector<CloneFile>& files,
                                            const std::string& directory,
                                            const std::string& database_id,
                                            FollowPosition* position);

}  // namespace sstferry
