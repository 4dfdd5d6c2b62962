// The directory of a standby: a clone without CURRENT, to which the bytes of
// the source's WALs are appended.
//
//   DIR/000012.sst, MANIFEST-000005, OPTIONS-..., IDENTITY   a clone, a *cut*
//   DIR/000014.log ...     the source's WALs from byte 0 on: those of the cut,
//                          and every record received since
//   DIR/sstferry.follow    marks DIR as a standby, and names its MANIFEST
//                          (format/follow_file.h); locked by a follower
//   DIR/sstferry.followed  records how far WALs were durable at some moment
//
// DIR holds a state of its source after each appended record: the source sends
// a record only after it has judged all MANIFEST records up to then (round.h).
// So after a crash of the process or the machine, a truncated record at the end
// is cut off, and nothing else must be undone:
//
//   append:  a WAL is synced before the next one is created, and that name is
//            synced before its first byte. So a power cut leaves complete
//            records, in order, and perhaps a truncated one after them.
//   sync:    the newest WAL, then a mark with its synced length.
//
// A new cut is built beside DIR, by a pull of a clone that links the files that
// DIR has (standby_target.h), while more records are appended in DIR. Between
// the two hooks of the exchange, CarryInto() links the WALs received meanwhile
// into the new directory, and one rename publishes all of it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "format/follow_file.h"
#include "format/rocksdb/log_follower.h"
#include "format/rocksdb/wal_continuity.h"
#include "pipeline/disk/access.h"
#include "pipeline/disk/database_files.h"
#include "pipeline/follow/round.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"
#include "sstferry/descriptor.h"
#include "sstferry/options.h"

namespace sstferry {

// End of what a standby holds.
struct StandbyPosition {
  // As in a FollowPosition: the newest WAL with a record.
  uint64_t wal_number = 0;
  uint64_t wal_bytes = 0;
  Digest128 wal{};  // set only by a Standby
  uint64_t last_sequence = 0;
  uint64_t read_micros = 0;  // by the source's clock; 0: unknown
  FollowJudged judged;       // from the source's last answer
  // By this machine's clock: at some time after this the source was closed, and
  // everything it wrote is here; 0: unknown.
  uint64_t closed_micros = 0;
  friend bool operator==(const StandbyPosition&,
                         const StandbyPosition&) = default;
};

// Last contact of a follower with its source, as in a FollowMark.
struct SourceHeard {
  uint64_t begun_micros = 0;
  uint64_t micros = 0;
  bool is_open = false;
  friend bool operator==(const SourceHeard&, const SourceHeard&) = default;
};

// Takes the lock of the standby in `dir`, which a follower holds while it runs.
// Destroying *lock releases it.
//   kBusy     another process holds it
//   kRefused  `dir` is not a standby
[[nodiscard]] rocksdb::Status LockStandby(const std::string& dir,
                                          Descriptor* lock);

// Finds the end of the WALs in `dir`: reads what was appended after the newest
// mark, or everything if there is no mark. With `on_record` it always reads
// everything, and calls it for each record with the number of its WAL.
//   kCorrupt  a WAL is shorter than the mark says, or has wrong bytes; *end is
//             the end of the intact records
using OnWalRecord =
    std::function<rocksdb::Status(uint64_t wal, const rocksdb::Slice& record)>;
[[nodiscard]] rocksdb::Status FindStandbyEnd(
    rocksdb::FileSystem* file_system, const std::string& dir,
    StandbyPosition* end, const OnWalRecord& on_record = nullptr);

// Truncates the newest WAL after its last complete record. Does not sync.
[[nodiscard]] rocksdb::Status TrimStandby(rocksdb::FileSystem* file_system,
                                          const std::string& dir,
                                          const StandbyPosition& end);

// The standby in one DIR, locked while the object lives.
//
// Threads: any. Append(), Sync() and UseFiles() may run concurrently. The first
//          two block from CarryInto() to EndCut(), both of which one thread
//          calls; CarryInto() waits for UseFiles() before that.
// Errors:  contain the path; kNoSpace if the disk is full. After an error of
//          Append(), Sync() or EndCut() all later calls of them fail; Open()
//          finds what is in DIR.
class Standby {
 public:
  // Opens the standby in `dir`, cuts off a truncated record, and syncs the
  // rest. OK if `dir` is missing or empty: exists() is false until a first cut.
  // Damage is reported by gap(); the damaged files stay as they are, without a
  // mark.
  //   kBusy     another process follows into `dir`
  //   kRefused  `dir` is not empty, and not a standby, or was promoted
  [[nodiscard]] static rocksdb::Status Open(
      const std::string& dir, std::shared_ptr<rocksdb::FileSystem> file_system,
      std::unique_ptr<Standby>* standby);
  // Begins a standby in place of the database in `dir`. Nobody can open that
  // database until the first cut replaces it.
  //   kBusy  a process has it open
  [[nodiscard]] static rocksdb::Status Adopt(
      const std::string& dir, std::shared_ptr<rocksdb::FileSystem> file_system,
      std::unique_ptr<Standby>* standby);
  ~Standby();
  Standby(const Standby&) = delete;
  Standby& operator=(const Standby&) = delete;

  const std::string& dir() const { return dir_; }
  bool exists() const;
  // Returns true until the first cut has replaced an adopted database.
  bool adopts() const;
  // Returns the record of the cut that is in the directory.
  FollowFile record() const;
  // Returns the position after which the source is asked to send.
  FollowPosition position() const;
  // Returns what a promotion would keep now if only processes die.
  StandbyPosition received() const;
  // Returns what a promotion would keep now if the machine loses power.
  StandbyPosition durable() const;
  // Returns the bytes of the WALs in DIR, which an application replays.
  uint64_t replay_bytes() const;

  // Appends the records of a round that was requested with `asked`. Does
  // nothing if a cut has changed the position since. A record that does not
  // continue the sequence numbers is not appended, nor are the records after
  // it; gap() then says why.
  //   kCorrupt  not complete records, or not those after `asked`
  [[nodiscard]] rocksdb::Status Append(const FollowPosition& asked,
                                       const Round& round);
  Gap gap() const;
  // Stores what an answer says about the source; the next Sync() records it.
  void Hear(const Round& round);
  // Stores that the source still answers, for example because bytes of a cut
  // arrive.
  void HearOn();
  // Makes durable everything received before the call.
  [[nodiscard]] rocksdb::Status Sync();
  // Deletes the note that the source was closed, also from the mark.
  [[nodiscard]] rocksdb::Status ForgetClosed();

  // Begins a cut. The cut must prove that the source had what is here now.
  //   kBusy  a process has opened the database that is adopted
  [[nodiscard]] rocksdb::Status BeginCut();
  // Keeps the WALs beside DIR, unless `new_dir` (all of the next cut except its
  // *record) proves that the source had every byte that was here when the cut
  // began, because it has the same history (format/history.h). If the WALs are
  // missing there, the source must have proved it when it asked for the cut for
  // `reason`. The WALs are kept as DIR.sstferry-lost-DATE/ if they hold more
  // than the source has, otherwise as DIR.sstferry-unproven-DATE/, of which
  // only the newest few remain. *record names the directories. During a
  // scheduled cut, records may be appended.
  //   kSourceError  a scheduled cut is of another life of the source
  [[nodiscard]] rocksdb::Status KeepUnproven(const std::string& new_dir,
                                             CutReason reason,
                                             FollowFile* record);

  // Calls `use` with the record of the cut that is in DIR, and the end of what
  // was received. Meanwhile no cut replaces DIR, and nothing in it changes but
  // what is appended after that end. Must not be called by `use`.
  //   kCorrupt  DIR is damaged
  using FilesUse =
      std::function<rocksdb::Status(const FollowFile&, const StandbyPosition&)>;
  [[nodiscard]] rocksdb::Status UseFiles(const FilesUse& use);

  // --- around the exchange of a cut ------------------------------------------
  // Links into `new_dir`, which is all of the next cut, the WALs of DIR that
  // are longer than those of the cut. Without `of_this_life` the cut is of
  // another life of the source and needs none of them.
  //   kCorrupt      a WAL there differs from that in DIR
  //   kSourceError  a WAL there is shorter than that in DIR, although a later
  //                 one has a record: the cut is of another life
  [[nodiscard]] rocksdb::Status CarryInto(const std::string& new_dir,
                                          bool of_this_life);
  // Continues with the contents of DIR. `exchanged`: DIR is the next cut now.
  [[nodiscard]] rocksdb::Status EndCut(bool exchanged);

 private:
  struct Wal;

  Standby(std::string dir, std::shared_ptr<rocksdb::FileSystem> file_system);
  // With mu_ locked, all of them.
  [[nodiscard]] rocksdb::Status LockAdopted();
  [[nodiscard]] rocksdb::Status Load();
  [[nodiscard]] rocksdb::Status OpenNewest();
  [[nodiscard]] rocksdb::Status BeginWal(uint64_t number);
  [[nodiscard]] rocksdb::Status AppendTo(const LogBytes& log);
  [[nodiscard]] rocksdb::Status Carry(const std::string& new_dir);
  [[nodiscard]] rocksdb::Status LoadWals();
  [[nodiscard]] rocksdb::Status TakeRecord(uint64_t wal,
                                           const rocksdb::Slice& record,
                                           WalStep* step);
  FollowPosition PositionNow() const;
  bool is_damaged() const { return gap_.reason == CutReason::kDamage; }
  [[nodiscard]] rocksdb::Status IsProven(const std::string& new_dir,
                                         const FollowFile& record,
                                         CutReason reason, bool* proven) const;
  [[nodiscard]] rocksdb::Status FindCommonEnd(const std::string& new_dir,
                                              const FollowFile& record,
                                              uint64_t* sequence) const;
  [[nodiscard]] rocksdb::Status LinkWals(const std::string& mark,
                                         std::string* kept) const;
  [[nodiscard]] rocksdb::Status CheckUsable() const;
  rocksdb::Status Fail(const rocksdb::Status& status);

  const std::string dir_;
  const std::shared_ptr<rocksdb::FileSystem> file_system_;

  std::mutex files_mu_;  // locked before sync_mu_; the files stay in place
  std::mutex sync_mu_;  // locked before mu_; one Sync() at a time
  mutable std::mutex mu_;
  std::unique_lock<std::mutex> cutting_;  // holds mu_ during an exchange
  std::unique_lock<std::mutex> exchanging_;  // likewise files_mu_
  // Guarded by mu_, all below.
  bool exists_ = false;
  bool adopts_ = false;
  std::unique_ptr<DatabaseLock> adopted_;  // while adopts_, except in exchanges
  rocksdb::Status failed_;
  Descriptor lock_;
  Descriptor next_lock_;  // of the next cut
  FollowFile record_;
  Access access_;  // for new files in DIR
  std::shared_ptr<Wal> wal_;       // null: no WAL yet
  std::map<uint64_t, uint64_t> older_;  // number -> bytes of the other WALs
  StandbyPosition received_;
  StandbyPosition durable_;
  SourceHeard heard_;
  SourceHeard marked_heard_;  // in the last mark
  std::unique_ptr<Digest128Stream> digest_;  // of the newest WAL, so far
  // Follows the records of all WALs. Null: unknown.
  std::unique_ptr<WalContinuity> continuity_;
  bool is_behind_cut_ = false;  // has all records of the cut
  Gap gap_;
  FollowPosition cut_from_;   // when the cut began; all zero: no cut
  bool carried_all_ = false;  // all WALs are in the next cut
  uint64_t marks_ = 0;  // number of the last mark
  std::vector<std::string> unneeded_;  // directories to remove after the cut
  // WALs kept by a cut that failed: the next cut need not keep them again.
  std::string kept_dir_;
  StandbyPosition kept_at_;
};

}  // namespace sstferry
