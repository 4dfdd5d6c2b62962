// The directory of a standby. It is a clone of the source to which the bytes of
// the source's WALs are appended. Its CURRENT has contents that RocksDB
// rejects, so that no application opens it.
//
//   DIR/000012.sst, MANIFEST-000005, OPTIONS-..., IDENTITY   a clone, a *cut*
//   DIR/000014.log ...     the source's WALs from byte 0 on: those of the cut,
//                          and every record received since
//   DIR/CURRENT            kStandbyCurrent (format/follow_file.h)
//   DIR/sstferry.follow    the record of the standby: marks DIR as a standby,
//                          and names its MANIFEST (format/follow_file.h);
//                          a running follower locks this file
//   DIR/sstferry.followed  the mark: says up to which byte the WALs were
//                          durable at some moment
//
// After each appended record, DIR contains a state that its source had. The
// reason is that the source sends a record only after it has judged all earlier
// MANIFEST records (round.h). So after a crash of the process or the machine,
// only a truncated record at the end must be removed:
//
//   append:  a WAL is synced before the next WAL is created. The new WAL's name
//            is synced before its first byte is written. So a power failure
//            leaves complete records in order, and perhaps a truncated record
//            after them.
//   sync:    first syncs the newest WAL, then writes a mark with its length.
//
// A pull builds a new cut next to DIR. It clones the source, and links the
// files that DIR already has (standby_target.h). Meanwhile more records are
// appended in DIR. Between the two hooks of the exchange, CarryInto() links the
// WALs of these records into the new directory. One rename then publishes
// everything.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "format/follow_file.h"
#include "format/health_file.h"
#include "format/rocksdb/log_follower.h"
#include "format/rocksdb/manifest_state.h"
#include "format/rocksdb/wal_continuity.h"
#include "pipeline/disk/access.h"
#include "pipeline/disk/database_files.h"
#include "pipeline/follow/round.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"
#include "sstferry/descriptor.h"
#include "sstferry/options.h"

namespace sstferry {

// Takes the lock of the standby in `dir`. A running follower holds this lock.
// Destroying *lock releases it.
//   kBusy     another process holds the lock
//   kRefused  `dir` is not a standby
[[nodiscard]] rocksdb::Status LockStandby(const std::string& dir,
                                          Descriptor* lock);

// Finds the end of the WALs in `dir`. Reads only the bytes after the newest
// mark; if there is no mark, reads all bytes. Does not check earlier bytes.
// Does not count sequence numbers: end->last_sequence comes from the mark.
//   kCorrupt  a WAL is shorter than the mark says, or has wrong bytes; *end is
//             the end of the intact records
[[nodiscard]] rocksdb::Status FindStandbyEnd(rocksdb::FileSystem* file_system,
                                             const std::string& dir,
                                             StandbyPosition* end);

// All WALs of a standby.
struct StandbyWals {
  StandbyPosition end;  // end of the intact records
  // Has checked all records up to `end`, and can check whether the next record
  // continues them.
  std::unique_ptr<WalContinuity> continuity;
};

// Reads all WALs of the standby in `dir`, whose record is `record`. Proves that
// nothing is missing: no byte of the cut, no byte before the newest mark, and
// no record between two others. Reads from the disk, not from the page cache
// (FileSource::OpenFromDisk()). A follower may append meanwhile.
//   kCorrupt  something is missing, or has wrong bytes; *wals describes the
//             records before that place
[[nodiscard]] rocksdb::Status ReadStandbyWals(rocksdb::FileSystem* file_system,
                                              const std::string& dir,
                                              const FollowFile& record,
                                              StandbyWals* wals);

// Finds the fault of the standby in `dir`. Reads the recorded fault
// (FindStandbyFault()); if there is none, reads all WALs (ReadStandbyWals()).
// If there is no fault, sets *end to the end of the WALs. `end` may be null.
[[nodiscard]] rocksdb::Status ProveStandby(
    rocksdb::FileSystem* file_system, const std::string& dir, HealthFile* fault,
    std::optional<StandbyPosition>* end = nullptr);

// Truncates the WAL end.wal_number to end.wal_bytes bytes, and each later WAL
// to 0 bytes. `end` is the end of the last complete record. The changes are
// durable.
[[nodiscard]] rocksdb::Status TrimStandby(rocksdb::FileSystem* file_system,
                                          const std::string& dir,
                                          const StandbyPosition& end);

// Durably writes a standby's CURRENT into `dir`, and sets its access.
[[nodiscard]] rocksdb::Status WriteStandbyCurrent(
    rocksdb::FileSystem* file_system, const std::string& dir,
    const Access& access);

// The standby in one DIR. The object holds the standby's lock.
//
// Threads: any. Append(), Sync() and UseFiles() may run concurrently. Between
// CarryInto() and EndCut(), which the same thread must call, Append() and
// Sync() block. CarryInto() first waits for UseFiles() to return.
// Errors: contain the path; kNoSpace if the disk is full; kRefused if another
//         process has created or replaced DIR. After an error of Append(),
//         Sync() or EndCut(), or a failed sync of a WAL, all later calls of
//         these three fail. A new Open() finds out what DIR contains. After a
//         failed sync, the disk may have less than this object has received.
class Standby {
 public:
  // Opens the standby in `dir`. Removes a truncated record, syncs the remaining
  // bytes, and writes CURRENT if an earlier version of sstferry did not. If
  // `dir` is missing or empty, returns OK, and exists() is false until the
  // first cut. If a WAL is damaged, or records are missing, returns OK, and
  // gap() describes the damage. Then changes no damaged file and writes no
  // mark.
  //   kBusy     another process follows into `dir`
  //   kRefused  `dir` is not empty, and is no standby, or was promoted, or
  //             another program made a database in it
  [[nodiscard]] static rocksdb::Status Open(
      const std::string& dir, std::shared_ptr<rocksdb::FileSystem> file_system,
      std::unique_ptr<Standby>* standby);
  // Begins a standby that will replace the database in `dir`. Until the first
  // cut has replaced the database, no process can open it.
  //   kBusy  a process has the database open
  [[nodiscard]] static rocksdb::Status Adopt(
      const std::string& dir, std::shared_ptr<rocksdb::FileSystem> file_system,
      std::unique_ptr<Standby>* standby);
  ~Standby();
  Standby(const Standby&) = delete;
  Standby& operator=(const Standby&) = delete;

  const std::string& dir() const { return dir_; }
  bool exists() const;
  // Returns true if this standby adopts a database, until the first cut has
  // replaced the database.
  bool adopts() const;
  // Returns the record of the cut in DIR.
  FollowFile record() const;
  // Returns the position from which the source must continue.
  FollowPosition position() const;
  // Returns the end of the records that a promotion would keep if all processes
  // were killed now, but the machine kept running.
  StandbyPosition received() const;
  // Returns the end of the records that a promotion would keep if the machine
  // lost power now.
  StandbyPosition durable() const;
  // Returns the number of bytes in DIR's WALs, which an application must
  // replay.
  uint64_t replay_bytes() const;

  // Appends the records of a round that was requested with the position
  // `asked`. Appends nothing if a cut has changed the position since the
  // request. If a record does not continue the sequence numbers, appends
  // neither it nor later records; gap() then says why.
  //   kCorrupt  the bytes are not complete records, or do not begin at `asked`
  [[nodiscard]] rocksdb::Status Append(const FollowPosition& asked,
                                       const Round& round);
  Gap gap() const;
  // Records that the follower waits for an answer. Does nothing if it is
  // waiting already. If nothing arrives for kSourceSilent, each new mark
  // records this, until bytes arrive.
  void Ask();
  // Records that bytes have arrived. `is_over` means that the request has
  // failed, so that the follower no longer waits for an answer.
  void HearBytes(bool is_over);
  // Stores the time of an answer and what it says about the source. The next
  // Sync() writes this to the disk.
  void Hear(const Round& round);
  // Stores that the source still responds. Called, for example, when bytes of a
  // cut arrive.
  void HearOn();
  // Makes durable everything that was received before the call, and writes a
  // mark.
  [[nodiscard]] rocksdb::Status Sync();
  // Writes a mark with the present durable end, and with what is known about
  // the source since the last mark.
  [[nodiscard]] rocksdb::Status MarkHeard();
  // Deletes the note that the source was closed. If the note is durable, writes
  // a mark without it.
  [[nodiscard]] rocksdb::Status ForgetClosed();

  // Begins a cut. KeepUnproven() then checks that the source had all data that
  // the standby has at this moment.
  //   kBusy     a process has opened the database that the standby adopts
  //   kRefused  another program made a database in DIR
  [[nodiscard]] rocksdb::Status BeginCut();
  // Keeps DIR's WALs in a directory next to DIR, unless the source provably had
  // every byte that DIR had when the cut began. `new_dir` contains the complete
  // next cut, except its *record.
  //
  // The proof is that the history of the cut (format/history.h) contains these
  // bytes. If the cut no longer has the WALs, `reason` may be the proof: for
  // most reasons, the source itself compared the bytes shortly before the cut.
  // If the reason is a new life, `continued` describes the source's MANIFEST at
  // that comparison (zeros: the source did not compare).
  //
  // If DIR's WALs have more records than the source, they are kept in
  // DIR.sstferry-lost-DATE/. If this is unknown, they are kept in
  // DIR.sstferry-unproven-DATE/; only the newest few of these directories stay.
  // If even DIR's cut may have more than the source, the directory gets all
  // files of DIR and becomes a database. The kept directory is durable when
  // this returns OK, and *record names it. During a scheduled cut, records may
  // be appended.
  //   kSourceError  the cut is a scheduled one, but belongs to another life of
  //                 the source (followed_source.h)
  [[nodiscard]] rocksdb::Status KeepUnproven(const std::string& new_dir,
                                             CutReason reason,
                                             const FollowJudged& continued,
                                             FollowFile* record);

  // Calls `use` with the record of the cut in DIR, and with the end of the
  // received data. Until `use` returns, no cut replaces DIR. DIR then changes
  // only by bytes that are appended after this end. `use` must not call
  // UseFiles().
  //   kCorrupt  DIR is damaged
  using FilesUse =
      std::function<rocksdb::Status(const FollowFile&, const StandbyPosition&)>;
  [[nodiscard]] rocksdb::Status UseFiles(const FilesUse& use);

  // --- around the exchange of a cut ------------------------------------------
  // Links WALs of DIR into `new_dir`, which contains the complete next cut.
  // Links a WAL only if the cut does not have it, or has a shorter one. If
  // `of_this_life` is false, the cut belongs to another life of the source, and
  // no WAL is linked.
  //   kRefused      another program made a database in DIR
  //   kCorrupt      a WAL in `new_dir` differs from DIR's
  //   kSourceError  a WAL in `new_dir` is shorter than DIR's, but a later WAL
  //                 there has a record: the cut belongs to another life
  [[nodiscard]] rocksdb::Status CarryInto(const std::string& new_dir,
                                          bool of_this_life);
  // Ends a cut. `exchanged` means that DIR is now the next cut; then reads what
  // DIR contains.
  [[nodiscard]] rocksdb::Status EndCut(bool exchanged);

 private:
  struct Wal;

  Standby(std::string dir, std::shared_ptr<rocksdb::FileSystem> file_system);
  // REQUIRES for all functions below: the caller has locked mu_.
  [[nodiscard]] rocksdb::Status LockAdopted();
  [[nodiscard]] rocksdb::Status Load();
  [[nodiscard]] rocksdb::Status OpenNewest();
  [[nodiscard]] rocksdb::Status BeginWal(uint64_t number);
  [[nodiscard]] rocksdb::Status AppendTo(const WalBytes& log);
  [[nodiscard]] rocksdb::Status Carry(const std::string& new_dir);
  [[nodiscard]] rocksdb::Status LoadWals();
  FollowPosition PositionNow() const;
  void NoteSilence();
  bool is_damaged() const { return gap_.reason == CutReason::kDamage; }
  [[nodiscard]] rocksdb::Status IsProven(const std::string& new_dir,
                                         const FollowFile& record,
                                         CutReason reason,
                                         const FollowJudged& continued,
                                         bool* proven) const;
  [[nodiscard]] rocksdb::Status IsContinued(const std::string& new_dir,
                                            const FollowFile& record,
                                            const FollowJudged& continued,
                                            bool* is_continued) const;
  bool HasAllReceived(const std::string& new_dir,
                      const std::map<uint64_t, std::string>& there) const;
  [[nodiscard]] rocksdb::Status FindCommonEnd(const std::string& new_dir,
                                              const FollowFile& record,
                                              uint64_t* sequence) const;
  [[nodiscard]] rocksdb::Status HasLeftBeforeCut(const std::string& new_dir,
                                                 const FollowFile& record,
                                                 const ManifestState& state,
                                                 bool* has_left) const;
  [[nodiscard]] rocksdb::Status KeepFiles(const std::string& mark, bool all,
                                          std::string* kept);
  [[nodiscard]] rocksdb::Status FillKept(const std::string& kept, bool all);
  [[nodiscard]] rocksdb::Status SyncWal();
  [[nodiscard]] rocksdb::Status CheckUsable() const;
  [[nodiscard]] rocksdb::Status CheckOwned() const;
  rocksdb::Status Fail(const rocksdb::Status& status);

  const std::string dir_;
  const std::shared_ptr<rocksdb::FileSystem> file_system_;

  // Locked before sync_mu_. While it is locked, no cut replaces DIR.
  std::mutex files_mu_;
  std::mutex sync_mu_;  // locked before mu_; allows one Sync() at a time
  mutable std::mutex mu_;
  std::unique_lock<std::mutex> cutting_;  // holds mu_ during an exchange
  // Holds files_mu_ during an exchange.
  std::unique_lock<std::mutex> exchanging_;
  // mu_ guards all members below.
  bool exists_ = false;
  bool adopts_ = false;
  // Held while adopts_, except during an exchange.
  std::unique_ptr<DatabaseLock> adopted_;
  rocksdb::Status failed_;
  Descriptor lock_;
  Descriptor next_lock_;  // the lock of the next cut
  FollowFile record_;
  Access access_;  // access of new files in DIR
  std::shared_ptr<Wal> wal_;       // null: there is no WAL
  // Maps the other WALs' numbers to their bytes.
  std::map<uint64_t, uint64_t> older_;
  StandbyPosition received_;
  StandbyPosition durable_;
  SourceHeard heard_;
  SourceHeard marked_heard_;  // what the last mark says about the source
  // Since this time, the follower waits for an answer and nothing has arrived.
  // Not set: it does not wait for an answer.
  std::optional<std::chrono::steady_clock::time_point> silent_since_;
  std::unique_ptr<Digest128Stream> digest_;  // digest of the newest WAL's bytes
  // Checks the sequence numbers of all WALs. Null if the numbers are unknown.
  std::unique_ptr<WalContinuity> continuity_;
  Gap gap_;
  FollowPosition cut_from_;   // position when the cut began; all zero: no cut
  bool carried_all_ = false;  // the next cut has all bytes of DIR's WALs
  uint64_t marks_ = 0;  // number of the last mark
  std::vector<std::string> unneeded_;  // directories to remove after the cut
};

}  // namespace sstferry
