// The directory of a standby: a clone without CURRENT, which grows by the bytes
// of its source's WALs.
//
//   DIR/000012.sst, MANIFEST-000005, OPTIONS-..., IDENTITY   a clone, a *cut*
//   DIR/000014.log ...     the source's WALs from byte 0 on: those of the cut,
//                          and every record that came since
//   DIR/sstferry.follow    says that DIR is a standby, and which MANIFEST
//                          counts (format/follow_file.h); locked by a follower
//   DIR/sstferry.followed  up to where WALs were durable at some moment
//
// What DIR holds is a state of its source after every record that is appended:
// the source sends a record only after it has judged all that its MANIFEST says
// up to then (round.h). So a torn end is cut off, and nothing else has to be
// undone after a crash, of the process or of the machine:
//
//   append:  a WAL is synced before the next one gets its name, and that name
//            is synced before its first byte. So whatever a power cut leaves is
//            whole records, in order, and then perhaps a torn one.
//   sync:    the newest WAL, then a mark of how far that was.
//
// A new cut is built beside DIR, by the pull of a clone that links what DIR has
// (standby_target.h), while more records come into DIR. Between the two
// hooks of its exchange, CarryInto() links the WALs that came meanwhile into
// the new directory, and one rename publishes all of it.
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

// How far a standby has come.
struct StandbyPosition {
  // As in a FollowPosition: the newest WAL with a record.
  uint64_t wal_number = 0;
  uint64_t wal_bytes = 0;
  Digest128 wal{};  // only of a Standby's own
  uint64_t last_sequence = 0;
  uint64_t read_micros = 0;  // by the source's clock; 0: not known
  FollowJudged judged;       // as the source said last
  // By this machine's clock: the source was closed at some time after this, with
  // all of it here; 0: that is not known.
  uint64_t closed_micros = 0;
  friend bool operator==(const StandbyPosition&,
                         const StandbyPosition&) = default;
};

// The last that a follower heard of its source, as in a FollowMark.
struct SourceHeard {
  uint64_t begun_micros = 0;
  uint64_t micros = 0;
  bool is_open = false;
  friend bool operator==(const SourceHeard&, const SourceHeard&) = default;
};

// Takes the lock of the standby in `dir`, which a follower holds while it runs.
// The lock is gone with *lock.
//   kBusy     another process has it
//   kRefused  `dir` is no standby
[[nodiscard]] rocksdb::Status LockStandby(const std::string& dir,
                                          Descriptor* lock);

// Finds how far the WALs in `dir` have come: reads what came after the newest
// mark, or all of them where there is none. With `on_record` it reads all of them
// in any case, and gives it each record with the number of its WAL.
//   kCorrupt  a WAL is shorter than the mark says, or has wrong bytes; *end is
//             up to there
using OnWalRecord =
    std::function<rocksdb::Status(uint64_t wal, const rocksdb::Slice& record)>;
[[nodiscard]] rocksdb::Status FindStandbyEnd(
    rocksdb::FileSystem* file_system, const std::string& dir,
    StandbyPosition* end, const OnWalRecord& on_record = nullptr);

// Cuts the newest WAL behind its last whole record. Not durable before a sync.
[[nodiscard]] rocksdb::Status TrimStandby(rocksdb::FileSystem* file_system,
                                          const std::string& dir,
                                          const StandbyPosition& end);

// The standby of one DIR, locked while the object lives.
//
// Threads: any. Append() and Sync() may run at the same time. Append() waits
//          from CarryInto() to EndCut(), both of which one thread calls.
// Errors:  carry the path; kNoSpace where the disk is full. After an error of
//          Append(), Sync() or EndCut() every later call of them fails: Open()
//          finds what is there.
class Standby {
 public:
  // Opens the standby in `dir`, truncates a torn end, and syncs the rest. OK if
  // nothing is there yet: exists() is false until a first cut. Of damage gap()
  // tells; what is there stays as it is, without a mark.
  //   kBusy     another process follows into it
  //   kRefused  `dir` is not empty, and what it holds is no standby, or one
  //             that was promoted
  [[nodiscard]] static rocksdb::Status Open(
      const std::string& dir, std::shared_ptr<rocksdb::FileSystem> file_system,
      std::unique_ptr<Standby>* standby);
  // Begins a standby in the place of the database in `dir`, which nobody opens
  // until its first cut takes that place.
  //   kBusy  a process has it open
  [[nodiscard]] static rocksdb::Status Adopt(
      const std::string& dir, std::shared_ptr<rocksdb::FileSystem> file_system,
      std::unique_ptr<Standby>* standby);
  ~Standby();
  Standby(const Standby&) = delete;
  Standby& operator=(const Standby&) = delete;

  const std::string& dir() const { return dir_; }
  bool exists() const;
  // Returns true until a first cut has taken the place of an adopted database.
  bool adopts() const;
  // Returns the cut that the directory began with.
  FollowFile record() const;
  // Returns the position behind which the source is asked to send.
  FollowPosition position() const;
  // Up to here a standby that is promoted now has it, if only processes die.
  StandbyPosition received() const;
  // The same if the machine loses its power.
  StandbyPosition durable() const;
  // Bytes of the WALs in DIR, which an application replays.
  uint64_t replay_bytes() const;

  // Appends the records of a round that was asked for with `asked`. Does
  // nothing if a cut has changed since what has to come next. A record that does
  // not continue the sequence numbers of those that are here is not appended, nor
  // any behind it: gap() says so.
  //   kCorrupt  not whole records, or not those behind `asked`
  [[nodiscard]] rocksdb::Status Append(const FollowPosition& asked,
                                       const Round& round);
  Gap gap() const;
  // Takes what an answer says of the source; the next Sync() marks it.
  void Hear(const Round& round);
  // Takes that the source still answers, by other means.
  void HearOn();
  // Makes durable what was received before the call.
  [[nodiscard]] rocksdb::Status Sync();
  // Forgets that the source was closed, and marks that.
  [[nodiscard]] rocksdb::Status ForgetClosed();

  // Begins a cut: what is here now, the source must have had before the cut.
  //   kBusy  a process has opened the database that is adopted
  [[nodiscard]] rocksdb::Status BeginCut();
  // Keeps the WALs beside DIR, unless `new_dir`, all of the next cut but for
  // its *record, proves that the source had every byte of what was here when the
  // cut began: it is of the same history (format/history.h). Where its WALs are
  // gone there, the source must have proved it when it asked for the cut, which
  // its `reason` tells. As DIR.sstferry-lost-DATE/ if they hold more than the
  // source has, else as DIR.sstferry-unproven-DATE/, of which the newest few stay.
  // *record names them. During a cut that is due, records may be appended.
  //   kSourceError  such a cut is of another life of the source
  [[nodiscard]] rocksdb::Status KeepUnproven(const std::string& new_dir,
                                             CutReason reason,
                                             FollowFile* record);

  // --- around the exchange of a cut ------------------------------------------
  // Links into `new_dir`, which is all of the next cut, the WALs of DIR that
  // hold more than it has; with `of_this_life`: else the cut is of another life
  // of the source, and has no use for them.
  //   kCorrupt      a WAL there is not what it is in DIR
  //   kSourceError  a WAL there ends before the one in DIR, and a later one with
  //                 a record is there, too: the cut is of another life
  [[nodiscard]] rocksdb::Status CarryInto(const std::string& new_dir,
                                          bool of_this_life);
  // Goes on with what is in DIR now. `exchanged`: that is the next cut.
  [[nodiscard]] rocksdb::Status EndCut(bool exchanged);

 private:
  struct Wal;

  Standby(std::string dir, std::shared_ptr<rocksdb::FileSystem> file_system);
  // Under mu_, all of them.
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

  std::mutex sync_mu_;  // before mu_; one Sync() at a time
  mutable std::mutex mu_;
  std::unique_lock<std::mutex> cutting_;  // holds mu_ during an exchange
  // Under mu_, all below.
  bool exists_ = false;
  bool adopts_ = false;
  std::unique_ptr<DatabaseLock> adopted_;  // while adopts_, but for an exchange
  rocksdb::Status failed_;
  Descriptor lock_;
  Descriptor next_lock_;  // of the next cut
  FollowFile record_;
  Access access_;  // of files that are made in DIR
  std::shared_ptr<Wal> wal_;       // null: none was begun
  std::map<uint64_t, uint64_t> older_;  // bytes of the other WALs, by number
  StandbyPosition received_;
  StandbyPosition durable_;
  SourceHeard heard_;
  SourceHeard marked_heard_;  // by the last mark
  std::unique_ptr<Digest128Stream> digest_;  // of the newest WAL, so far
  // Follows the records of all WALs. Null: not known.
  std::unique_ptr<WalContinuity> continuity_;
  bool is_behind_cut_ = false;  // it has all records of the cut
  Gap gap_;
  FollowPosition cut_from_;   // when the cut began; all zero: none did
  bool carried_all_ = false;  // into the next cut, which has no more
  uint64_t marks_ = 0;  // number of the last mark
  std::vector<std::string> unneeded_;  // directories, once the cut is there
  // A cut that did not come has kept these WALs: the next one needs no more.
  std::string kept_dir_;
  StandbyPosition kept_at_;
};

}  // namespace sstferry
