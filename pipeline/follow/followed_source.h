// Follows the directory of a live database. Reads the bytes that the database
// appends to its WALs, and detects changes that are in no WAL.
//
// A round reads, in this order:
//
//   W = the new complete records of all WALs, in the order of their numbers
//   M = the new records of the MANIFEST that CURRENT names
//
// RocksDB blocks its writers while it records an ingestion, or the addition or
// removal of a column family. So if a WAL record was written after such an
// event, the event's MANIFEST record was written before the WAL record. The
// reader reads M after W, so M contains that MANIFEST record. The reader judges
// each record of M (format/rocksdb/edit_judge.h). If followers cannot get its
// change from the WALs, the record is a barrier: followers whose position is
// before it need a cut. A gap in the sequence numbers of W is also a barrier
// (format/rocksdb/wal_continuity.h).
//
// The state of a follower is a FollowPosition. It has two parts: the cut,
// identified by the length of the MANIFEST when the cut was taken, and the end
// of the WAL bytes that the follower has. One reader serves all followers. The
// answer to a follower depends only on its position:
//
//   the database, MANIFEST or WAL is another      cut: a new life of the
//   one, or its bytes differ (format/history.h)   source (see below)
//   the bytes of a needed WAL are gone            cut
//   a barrier in the MANIFEST after the position  cut
//   a barrier in the WALs after the position      cut
//   otherwise                                     the later bytes
//
// A life of the source begins when a process opens the database, or when the
// process begins another MANIFEST. It ends when the next life begins. The WALs
// may continue in the new life. The answer says that nothing is lost if the
// position was right in the last life, and its WAL has the same bytes in this
// life.
//
// If a flush adds a table, the reader must know whether some of the table's
// entries were in no WAL. It knows this only if it has read the table's WALs,
// which RocksDB deletes soon. So an answer also says up to which byte the
// reader has judged the MANIFEST. A follower sends this number as part of its
// position to the next reader, which then looks for no barriers in these bytes.
//
// The reader uses a WAL only after the WAL has its first record. The file may
// exist earlier, while the previous WAL still receives records
// (format/rocksdb/wal_end.h). If the new WAL has bytes before its first record,
// they are sent together with this record.
//
// The reader never blocks the source. It keeps WALs open, so it can read them
// after the source has deleted them. It keeps at most max_held_bytes.
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
  std::string wal_dir;       // overrides OPTIONS; empty: uses OPTIONS
  // Maximum bytes of WALs that are kept for slow followers.
  uint64_t max_held_bytes = 1ull << 30;
  // Maximum bytes of these WALs in memory, for all followers. Memory contains
  // the newest bytes.
  uint64_t memory_bytes = 32u << 20;
  // If set, called between reading W and reading M (for tests).
  std::function<void()> wals_read;
};

// Reads one database for all of its followers.
//
// Threads: one thread at a time calls ReadRound(); any thread calls Answer().
class FollowedSource {
 public:
  // Result of Answer().
  enum class Found : uint8_t {
    kRound,    // the answer has bytes, or requires a cut
    kNothing,  // the follower has all bytes that the reader has read
    // The position is after the bytes that the reader has read; answer again
    // after another round.
    kAhead,
  };

  explicit FollowedSource(FollowedSourceOptions options);
  ~FollowedSource();
  FollowedSource(const FollowedSource&) = delete;
  FollowedSource& operator=(const FollowedSource&) = delete;

  // Reads one round. If `list` is true, also lists the WAL directory to find
  // new WALs. Sets *more to true if bytes remain for the next round. If the
  // source changes so often that no round is possible, returns OK with an empty
  // round.
  //   kSourceError, kCorrupt  the directory cannot be read
  //   kRefused                the database cannot be followed; the message says
  //                           why
  [[nodiscard]] rocksdb::Status ReadRound(bool list, bool* more);

  // Finds the bytes after the position of `request`. If *found is kNothing,
  // *round contains no bytes.
  [[nodiscard]] rocksdb::Status Answer(const FollowRequest& request,
                                       Found* found, Round* round) const;

  // Releases the kept bytes of WALs with smaller numbers. The caller knows that
  // no follower needs them.
  void DropBefore(uint64_t wal_number);
  // Releases all kept bytes and closes all files. Until the next round,
  // Answer() finds kAhead for each position of a follower.
  void Release();

  // Returns the source's WAL directory. Empty before the first round.
  std::string wal_directory() const;
  // Returns the number of the newest WAL of which a record was read; 0: there
  // is none.
  uint64_t newest_wal() const;
  // rounds() returns the number of rounds, and read_bytes() the WAL bytes that
  // were read in them.
  uint64_t rounds() const;
  uint64_t read_bytes() const;
  uint64_t held_bytes() const;
  // Computes how many WAL bytes after the position were read, and how many
  // bytes are kept for a follower at this position.
  void Measure(const FollowPosition& position, uint64_t* behind_bytes,
               uint64_t* held_bytes) const;
  uint64_t last_sequence() const;

 private:
  struct WalFile;    // a WAL that is being read
  struct Piece;      // some complete records of one WAL
  struct HeldWal;    // the kept pieces of one WAL
  struct StagedBytes;
  struct Staged;     // what a round has read from W, before it reads M
  class ReadHistory;
  struct LogPlace {  // ordered by WAL number
    uint64_t number = 0;
    uint64_t offset = 0;
    auto operator<=>(const LogPlace&) const = default;
  };
  // A follower whose position is before `end` needs a cut, for `reason`.
  template <typename Place>
  struct Barrier {
    Place end{};
    CutReason reason = CutReason::kNone;
    std::string note;
  };
  // A table that a flush added.
  struct Flushed {
    uint64_t first = 0;  // lowest and highest sequence number
    uint64_t last = 0;
    uint64_t end = 0;    // end of the MANIFEST record that added it
    bool seen = false;   // true: an earlier round also found this table
  };
  // Findings of JudgeRecord() in the new records of the MANIFEST.
  struct Judged {
    Barrier<uint64_t> barrier;
    // For each column family: the end of the last MANIFEST record of a flush or
    // a compaction. The family's OPTIONS can certainly be read only after this
    // record was read.
    std::map<std::string, uint64_t> rewritten;
    std::vector<Flushed> flushed;
    // Sequence numbers of tables that were not made by a flush.
    std::vector<uint64_t> table_sequences;
  };

  // The caller must have locked reader_mu_.
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
  // Computes the digest of the part of the MANIFEST that was judged.
  [[nodiscard]] rocksdb::Status DigestJudged(FollowJudged* judged);
  void EndLife();

  // The caller must have locked mu_.
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
  // Returns true if the reader has read a record of this WAL or of a later WAL.
  bool HasRecordsFrom(uint64_t number) const;
  // Computes the digest of the first `bytes` bytes of a WAL, as they were when
  // the reader read them.
  [[nodiscard]] rocksdb::Status DigestOfWal(uint64_t number, uint64_t bytes,
                                            FileBegin* begin,
                                            Digest128* digest) const;
  // Computes the digest of the first `bytes` bytes of the MANIFEST. The caller
  // must not have locked mu_.
  [[nodiscard]] rocksdb::Status DigestOfManifest(uint64_t bytes,
                                                 FileBegin* begin,
                                                 Digest128* digest) const;

  const FollowedSourceOptions options_;

  mutable std::mutex reader_mu_;
  // Null between two lives of the source.
  std::unique_ptr<ManifestTail> manifest_;
  std::optional<SeenOptions> seen_options_;  // OPTIONS of this life
  std::map<uint64_t, std::unique_ptr<WalFile>> wals_;
  std::unique_ptr<WalContinuity> continuity_;
  uint64_t oldest_ = 0;  // number of the oldest needed WAL of this life
  uint64_t newest_listed_ = 0;
  // Oldest WAL that RocksDB kept when all WALs were last read.
  uint64_t kept_wals_ = 0;
  uint64_t torn_wal_ = 0;  // recovery stops at this WAL's end; 0: none
  bool is_idle_ = true;  // the last round found nothing new
  Judged judged_;                        // findings that are not published yet
  Barrier<uint64_t> filtered_;  // barrier of families with a compaction filter
  // Digest of the judged part of the MANIFEST, and the length of this part.
  std::unique_ptr<Digest128Stream> digest_;
  uint64_t digested_bytes_ = 0;

  mutable std::mutex mu_;
  std::string wal_directory_;
  std::string database_id_;
  uint64_t manifest_number_ = 0;
  uint64_t manifest_end_ = 0;
  uint64_t lives_ = 0;  // number of lives that have ended
  // From the last life of which a round was published: the number of the
  // MANIFEST, and the known digests of parts from its beginning. The key is the
  // part's length.
  uint64_t last_manifest_number_ = 0;
  std::map<uint64_t, Digest128> last_begins_;
  // Digests of parts from the MANIFEST's beginning. The key is the part's
  // length. told_ has those that answers contained.
  mutable std::map<uint64_t, Digest128> begins_;
  std::map<uint64_t, Digest128> told_;
  FollowJudged told_judged_;
  Barrier<uint64_t> manifest_barrier_;
  Barrier<uint64_t> filter_barrier_;
  Barrier<LogPlace> wal_barrier_;
  std::map<uint64_t, HeldWal> held_;
  uint64_t held_bytes_ = 0;
  uint64_t memory_bytes_ = 0;
  LogPlace cold_end_;  // pieces before this place are not in memory
  uint64_t rounds_ = 0;
  uint64_t read_bytes_ = 0;
  uint64_t read_micros_ = 0;
  uint64_t last_sequence_ = 0;
  bool source_closed_ = false;
  SourceProcess source_process_ = SourceProcess::kUnknown;
};

// Finds the position of a cut of the database `database_id`. The files of the
// cut are in `directory` and have their usual names.
//   kCorrupt  there is no MANIFEST, or a file is shorter than its records_end
[[nodiscard]] rocksdb::Status PositionOfCut(const std::vector<CloneFile>& files,
                                            const std::string& directory,
                                            const std::string& database_id,
                                            FollowPosition* position);

}  // namespace sstferry
