// Follows the directory of a live database: reads what is appended to its WALs,
// and determines whether the database received anything else.
//
// A round reads, in this order:
//
//   W = the new complete records of all WALs, in the order of their numbers
//   M = the new records of the MANIFEST that CURRENT names
//
// RocksDB blocks its writers while it records an ingestion, or the addition or
// removal of a family. So a WAL record after such an event was written after
// the event's MANIFEST record. M is read after W, so it contains that MANIFEST
// record. Each record of M is judged (format/rocksdb/edit_judge.h): after a
// barrier, followers that began before the barrier need a cut. The same is true
// after a gap in the sequence numbers of W (format/rocksdb/wal_continuity.h).
//
// The state of a follower is a FollowPosition. It has two parts: its cut,
// identified by the length of the MANIFEST when the cut was taken, and the end
// of the WAL bytes that the follower has. All followers share one reader. The
// answer depends only on the position:
//
//   another database, MANIFEST or WAL, or other     cut: a new life of the
//   bytes in them (format/history.h)                source (see below)
//   a WAL whose bytes are gone                      cut
//   a barrier in the MANIFEST after the position    cut
//   a barrier in the WALs after the position        cut
//   otherwise                                       the later bytes
//
// A life of the source lasts from one opening of the database to the next, or
// until the process begins another MANIFEST. Then its WALs continue: if the
// position was right in the last life, and its WAL has the same bytes in this
// life, the answer says that nothing is lost.
//
// A reader must have seen a flushed table's WALs to know whether the table has
// entries that were in no WAL. RocksDB deletes these WALs soon. So an answer
// also says up to which byte the reader has judged the MANIFEST. A follower
// sends this number to another reader as part of its position, and that reader
// looks for no barriers in these bytes.
//
// A WAL is used only once it has a record. Its file may exist earlier, while
// the previous WAL still receives records (format/rocksdb/wal_end.h). The bytes
// before its first record are sent together with that record.
//
// The source is never blocked. WALs that it deletes stay readable through open
// files, up to max_held_bytes.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "format/clone_file.h"
#include "format/history.h"
#include "format/rocksdb/log_follower.h"
#include "format/rocksdb/version_edit.h"
#include "format/rocksdb/wal_continuity.h"
#include "pipeline/follow/round.h"
#include "pipeline/options/seen_options.h"
#include "pipeline/snapshot/posix_files.h"
#include "pipeline/snapshot/snapshot_manifest.h"
#include "rocksdb/status.h"

namespace sstferry {

struct FollowedSourceOptions {
  std::string database_dir;  // without symbolic links
  std::string wal_dir;       // overrides OPTIONS; empty: from OPTIONS
  // Maximum bytes of WALs that stay readable for lagging followers.
  uint64_t max_held_bytes = 1ull << 30;
  // Maximum bytes of these WALs (the newest) in memory, for all followers.
  uint64_t memory_bytes = 32u << 20;
  // Called between reading W and reading M; may be null.
  std::function<void()> wals_read;
};

// Reads one database for all of its followers.
//
// Threads: ReadRound() from one thread at a time; Answer() from any.
class FollowedSource {
 public:
  // Result of Answer().
  enum class Found : uint8_t {
    kRound,    // there are bytes, or the follower needs a cut
    kNothing,  // the position is at the end of the read bytes
    kAhead,    // the position is after that end; retry after another round
  };

  explicit FollowedSource(FollowedSourceOptions options);
  ~FollowedSource();
  FollowedSource(const FollowedSource&) = delete;
  FollowedSource& operator=(const FollowedSource&) = delete;

  // Reads one round. `list`: also lists the WAL directory, to find new WALs.
  // *more: some bytes remain for the next round. If the source changed during
  // the round, returns OK, and the round is empty.
  //   kSourceError, kCorrupt  the directory cannot be read
  //   kRefused  the database cannot be followed: the message says why
  [[nodiscard]] rocksdb::Status ReadRound(bool list, bool* more);

  // Finds the bytes after the position of `request`. With kNothing, *round
  // contains only an end.
  [[nodiscard]] rocksdb::Status Answer(const FollowRequest& request,
                                       Found* found, Round* round) const;

  // Releases the bytes of WALs before this number: no follower needs them.
  void DropBefore(uint64_t wal_number);

  // Returns the source's WAL directory; empty before the first round.
  std::string wal_directory() const;
  // Returns the number of the newest WAL with a record that was read; 0: none.
  uint64_t newest_wal() const;
  // Return the number of rounds, and the bytes of WALs read in them.
  uint64_t rounds() const;
  uint64_t read_bytes() const;
  uint64_t held_bytes() const;
  // Computes how many WAL bytes were read after a position, and how many bytes
  // are kept for a follower at that position.
  void Measure(const FollowPosition& position, uint64_t* behind_bytes,
               uint64_t* held_bytes) const;
  uint64_t last_sequence() const;

 private:
  struct WalFile;    // an open WAL, and how much of it was read
  struct Piece;      // complete records of one WAL
  struct HeldWal;    // the pieces of one WAL
  struct StagedBytes;
  struct Staged;     // results of reading W, until M is read
  class ReadHistory;
  struct LogPlace {  // ordered by WAL number
    uint64_t number = 0;
    uint64_t offset = 0;
    auto operator<=>(const LogPlace&) const = default;
  };
  // A follower whose position is before `end` needs a cut.
  template <typename Place>
  struct Barrier {
    Place end{};
    CutReason reason = CutReason::kNone;
    std::string note;
  };
  // A table that a flush added.
  struct Flushed {
    uint64_t first = 0;  // first and last sequence number
    uint64_t last = 0;
    uint64_t end = 0;    // end of its MANIFEST record
    bool seen = false;   // an earlier round found the table
  };
  // The result of reading the new records of the MANIFEST (M).
  struct Judged {
    Barrier<uint64_t> barrier;
    // By family: the end of the last record of a flush or a compaction. The
    // family's OPTIONS are certainly readable only after this record is.
    std::map<std::string, uint64_t> rewritten;
    std::vector<Flushed> flushed;
    std::vector<uint64_t> table_sequences;  // sequence numbers of tables not
                                            // made by a flush
  };

  // Called by the reader with reader_mu_ locked.
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
  void FindFiltered(bool listed);
  void FindUnlogged(bool saw_all);
  void FindEndedUnseen(bool saw_all);
  void FindTornWal(uint64_t number);
  void ForgetTornWal();
  void Publish(uint64_t micros, bool listed, Staged* staged);
  // Computes the digest of the judged part of the MANIFEST.
  [[nodiscard]] rocksdb::Status DigestJudged(FollowJudged* judged);
  void EndLife();

  // Called with mu_ locked.
  void Hold(StagedBytes* staged);
  void Trim();
  void CoolDown();
  CutReason FindBarrier(const FollowRequest& request, std::string* note) const;
  [[nodiscard]] rocksdb::Status FindContinued(const FollowPosition& position,
                                              FollowJudged* judged) const;
  [[nodiscard]] rocksdb::Status Gather(const LogPlace& from,
                                       Round* round) const;
  [[nodiscard]] rocksdb::Status BytesOf(const HeldWal& wal, const Piece& piece,
                                        uint64_t from,
                                        std::string* bytes) const;
  // Returns true if the reader has read a record of the WAL with this number,
  // or of a later WAL.
  bool HasRecordsFrom(uint64_t number) const;
  // Computes the digest of the first `bytes` of a WAL as the reader read them.
  [[nodiscard]] rocksdb::Status DigestOfWal(uint64_t number, uint64_t bytes,
                                            FileBegin* begin,
                                            Digest128* digest) const;
  // Computes the digest of the first `bytes` of the MANIFEST. mu_ must not be
  // locked.
  [[nodiscard]] rocksdb::Status DigestOfManifest(uint64_t bytes,
                                                 FileBegin* begin,
                                                 Digest128* digest) const;

  const FollowedSourceOptions options_;

  mutable std::mutex reader_mu_;
  std::unique_ptr<ManifestTail> manifest_;  // null: between two lives
  std::optional<SeenOptions> seen_options_;  // of this life
  std::map<uint64_t, std::unique_ptr<WalFile>> wals_;
  std::unique_ptr<WalContinuity> continuity_;
  uint64_t oldest_ = 0;                        // oldest WAL of this life
  uint64_t newest_listed_ = 0;
  uint64_t kept_wals_ = 0;  // oldest kept WAL at the last complete read
  uint64_t torn_wal_ = 0;  // recovery stops after this WAL; 0: none
  bool is_idle_ = true;  // the last round found nothing new
  Judged judged_;                        // since the last publication
  Barrier<uint64_t> filtered_;  // of the families with a filter
  std::unique_ptr<Digest128Stream> digest_;  // digest of the MANIFEST's judged
                                             // part
  uint64_t digested_bytes_ = 0;              // length of that part

  mutable std::mutex mu_;
  std::string wal_directory_;
  std::string database_id_;
  uint64_t manifest_number_ = 0;
  uint64_t manifest_end_ = 0;
  uint64_t lives_ = 0;  // number of lives that have ended
  // The last life of which a round was published: the number of its MANIFEST,
  // and the known digests of its beginnings, by length.
  uint64_t last_manifest_number_ = 0;
  std::map<uint64_t, Digest128> last_begins_;
  mutable std::map<uint64_t, Digest128> begins_;  // digests of the MANIFEST's
                                                  // beginnings, by length
  std::map<uint64_t, Digest128> told_;            // sent digests, by length
  FollowJudged told_judged_;
  Barrier<uint64_t> manifest_barrier_;
  Barrier<uint64_t> filter_barrier_;
  Barrier<LogPlace> wal_barrier_;
  std::map<uint64_t, HeldWal> held_;
  uint64_t held_bytes_ = 0;
  uint64_t memory_bytes_ = 0;
  LogPlace cold_end_;  // pieces before it are not in memory
  uint64_t rounds_ = 0;
  uint64_t read_bytes_ = 0;
  uint64_t read_micros_ = 0;
  uint64_t last_sequence_ = 0;
  bool source_closed_ = false;
  SourceProcess source_process_ = SourceProcess::kUnknown;
};

// Determines the position of a cut of the database `database_id`. The cut's
// files are in `directory` under their usual names.
//   kCorrupt  there is no MANIFEST, or a file is shorter than its records_end
[[nodiscard]] rocksdb::Status PositionOfCut(const std::vector<CloneFile>& files,
                                            const std::string& directory,
                                            const std::string& database_id,
                                            FollowPosition* position);

}  // namespace sstferry
