// The directory of a standby: a clone with a CURRENT that no RocksDB opens, to
// which the bytes of the source's WALs are appended.
//
//   DIR/000012.sst, MANIFEST-000005, OPTIONS-..., IDENTITY   a clone, a *cut*
//   DIR/000014.log ...     the source's WALs from byte 0 on: those of the cut,
//                          and every record received since
//   DIR/CURRENT            kStandbyCurrent (format/follow_file.h)
//   DIR/sstferry.follow    marks DIR as a standby, and names its MANIFEST
//                          (format/follow_file.h); locked by a follower
//   DIR/sstferry.followed  says up to which byte the WALs were durable at some
//                          moment
//
// After each appended record, DIR contains a state of its source: the source
// sends a record only after it has judged all earlier MANIFEST records
// (round.h). So after a crash of the process or the machine, only a truncated
// record at the end must be removed:
//
//   append:  a WAL is synced before the next WAL is created. The new WAL's name
//            is synced before its first byte is written. So a power failure
//            leaves complete records in order, and perhaps a truncated record
//            after them.
//   sync:    the newest WAL is synced, then a mark with its length is written.
//
// A new cut is built next to DIR, by a pull of a clone that links the files
// that DIR has (standby_target.h). Meanwhile more records are appended in DIR.
// Between the two hooks of the exchange, CarryInto() links the WALs of these
// records into the new directory; one rename then publishes everything.
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

// Takes the lock of the standby in `dir`, which a follower holds while it runs.
// Destroying *lock releases it.
//   kBusy     another process holds it
//   kRefused  `dir` is not a standby
[[nodiscard]] rocksdb::Status LockStandby(const std::string& dir,
                                          Descriptor* lock);

// Finds the end of the WALs in `dir`: reads the bytes after the newest mark, or
// all bytes if there is no mark. Proves nothing about earlier bytes, and does
// not count sequence numbers: end->last_sequence is the mark's.
//   kCorrupt  a WAL is shorter than the mark says, or has wrong bytes; *end is
//             the end of the intact records
[[nodiscard]] rocksdb::Status FindStandbyEnd(rocksdb::FileSystem* file_system,
                                             const std::string& dir,
                                             StandbyPosition* end);

// All WALs of a standby.
struct StandbyWals {
  StandbyPosition end;  // of the intact records
  // Has all records up to `end`; the next one must continue them.
  std::unique_ptr<WalContinuity> continuity;
};

// Reads all WALs of the standby in `dir`, which has this record, from the disk
// (FileSource::OpenFromDisk()), and proves that nothing is missing: no byte of
// the cut or before the newest mark, and no record between two others. A
// follower may append meanwhile.
//   kCorrupt  something is missing, or has wrong bytes; *wals has the records
//             before it
[[nodiscard]] rocksdb::Status ReadStandbyWals(rocksdb::FileSystem* file_system,
                                              const std::string& dir,
                                              const FollowFile& record,
                                              StandbyWals* wals);

// Finds the fault of the standby in `dir` as FindStandbyFault() does, or else
// by ReadStandbyWals(). Sets *end (may be null) to the end of the WALs if there
// is no fault.
[[nodiscard]] rocksdb::Status ProveStandby(
    rocksdb::FileSystem* file_system, const std::string& dir, HealthFile* fault,
    std::optional<StandbyPosition>* end = nullptr);

// Truncates, durably, the newest WAL with a record after its last complete
// record, and each later WAL to 0 bytes.
[[nodiscard]] rocksdb::Status TrimStandby(rocksdb::FileSystem* file_system,
                                          const std::string& dir,
                                          const StandbyPosition& end);

// Writes the CURRENT of a standby into `dir`, durably and with this access.
[[nodiscard]] rocksdb::Status WriteStandbyCurrent(
    rocksdb::FileSystem* file_system, const std::string& dir,
    const Access& access);

// The standby in one DIR, locked while the object exists.
//
// Threads: any. Append(), Sync() and UseFiles() may run concurrently. Append()
//          and Sync() block between CarryInto() and EndCut(), which the same
//          thread must call; CarryInto() first waits for UseFiles().
// Errors:  contain the path; kNoSpace if the disk is full; kRefused if another
//          process has made or replaced DIR. After an error of Append(), Sync()
//          or EndCut(), or after a failed sync of a WAL, all later calls of the
//          three fail. A new Open() finds out what DIR contains: after a failed
//          sync, the disk may have less than this object has received.
class Standby {
 public:
  // Opens the standby in `dir`, removes a truncated record, syncs the remaining
  // bytes, and writes CURRENT if an earlier version did not. OK if `dir` is
  // missing or empty: exists() is false until a first cut. Damage, including
  // missing records, is reported by gap(); the damaged files are not changed,
  // and no mark is written.
  //   kBusy     another process follows into `dir`
  //   kRefused  `dir` is not empty, and not a standby, or was promoted, or
  //             another program made a database in it
  [[nodiscard]] static rocksdb::Status Open(
      const std::string& dir, std::shared_ptr<rocksdb::FileSystem> file_system,
      std::unique_ptr<Standby>* standby);
  // Begins a standby that replaces the database in `dir`. No process can open
  // that database until the first cut has replaced it.
  //   kBusy  a process has the database open
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
  // Returns the record of the cut in DIR.
  FollowFile record() const;
  // Returns the position after which the source must send.
  FollowPosition position() const;
  // Returns the end that a promotion would keep if all processes were killed
  // now and the machine kept running.
  StandbyPosition received() const;
  // Returns the end that a promotion would keep if the machine lost power now.
  StandbyPosition durable() const;
  // Returns the bytes of DIR's WALs, which an application must replay.
  uint64_t replay_bytes() const;

  // Appends the records of a round that was requested with the position
  // `asked`; none if a cut has changed the position since then. If a
  // record does not continue the sequence numbers, neither it nor later records
  // are appended; gap() then says why.
  //   kCorrupt  the bytes are not complete records, or do not follow `asked`
  [[nodiscard]] rocksdb::Status Append(const FollowPosition& asked,
                                       const Round& round);
  Gap gap() const;
  // Begins to wait for an answer, unless it waits already. Until the answer
  // arrives, marks record that nothing has arrived for kSourceSilent.
  void Ask();
  // Stores that bytes have arrived. `is_over`: the request has failed, so no
  // answer is awaited.
  void HearBytes(bool is_over);
  // Stores what an answer says about the source; the next Sync() records it.
  void Hear(const Round& round);
  // Stores that the source still responds, for example because bytes of a cut
  // arrive.
  void HearOn();
  // Makes durable everything received before the call, and marks it.
  [[nodiscard]] rocksdb::Status Sync();
  // Writes a mark of what is durable already, with what was heard of the source
  // since the last mark.
  [[nodiscard]] rocksdb::Status MarkHeard();
  // Deletes the note that the source was closed, even from the durable mark.
  [[nodiscard]] rocksdb::Status ForgetClosed();

  // Begins a cut. The cut must prove that the source had all data that the
  // standby has now.
  //   kBusy     a process has opened the database that the standby adopts
  //   kRefused  another program made a database in DIR
  [[nodiscard]] rocksdb::Status BeginCut();
  // Keeps DIR's WALs in a directory next to DIR, unless `new_dir` proves that
  // the source had every byte that DIR had when the cut began. `new_dir` is the
  // complete next cut except its *record. The proof is that its history
  // (format/history.h) has these bytes. If it no longer has the WALs, the proof
  // is that the source compared the bytes itself when it requested the cut for
  // `reason`. For a new life, `continued` is the beginning of the source's
  // MANIFEST when it did so (zeros: it did not). If DIR's WALs have more than
  // the source, they are kept as DIR.sstferry-lost-DATE/; if that is unknown,
  // as DIR.sstferry-unproven-DATE/, of which only the newest few remain. If
  // even the last cut may have had more than the source has now, the directory
  // gets all files of DIR and is a database. It is durable when this returns
  // OK. *record names the directories. During a scheduled cut, records may be
  // appended.
  //   kSourceError  a scheduled cut is of another life of the source
  //                 (followed_source.h)
  [[nodiscard]] rocksdb::Status KeepUnproven(const std::string& new_dir,
                                             CutReason reason,
                                             const FollowJudged& continued,
                                             FollowFile* record);

  // Calls `use` with the record of the cut in DIR, and the end of the received
  // data. Until `use` returns, no cut replaces DIR, and DIR changes only by
  // bytes that are appended after that end. `use` must not call UseFiles().
  //   kCorrupt  DIR is damaged
  using FilesUse =
      std::function<rocksdb::Status(const FollowFile&, const StandbyPosition&)>;
  [[nodiscard]] rocksdb::Status UseFiles(const FilesUse& use);

  // --- around the exchange of a cut ------------------------------------------
  // Links into `new_dir`, the complete next cut, those WALs of DIR that are
  // longer than the cut's or missing there. If `of_this_life` is false, the cut
  // is of another life of the source, and needs none of them.
  //   kRefused      another program made a database in DIR
  //   kCorrupt      a WAL in `new_dir` differs from DIR's
  //   kSourceError  a WAL in `new_dir` is shorter than DIR's, although a later
  //                 one has a record: the cut is of another life
  [[nodiscard]] rocksdb::Status CarryInto(const std::string& new_dir,
                                          bool of_this_life);
  // Continues with the contents of DIR. `exchanged`: DIR is now the next cut.
  [[nodiscard]] rocksdb::Status EndCut(bool exchanged);

 private:
  struct Wal;

  Standby(std::string dir, std::shared_ptr<rocksdb::FileSystem> file_system);
  // REQUIRES for all functions below: mu_ is locked.
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

  std::mutex files_mu_;  // locked before sync_mu_; while it is locked, no cut
                         // replaces DIR
  std::mutex sync_mu_;  // locked before mu_; one Sync() at a time
  mutable std::mutex mu_;
  std::unique_lock<std::mutex> cutting_;  // holds mu_ during an exchange
  std::unique_lock<std::mutex> exchanging_;  // holds files_mu_ during an
                                             // exchange
  // Guarded by mu_: all members below.
  bool exists_ = false;
  bool adopts_ = false;
  std::unique_ptr<DatabaseLock> adopted_;  // while adopts_, not in exchanges
  rocksdb::Status failed_;
  Descriptor lock_;
  Descriptor next_lock_;  // lock of the next cut
  FollowFile record_;
  Access access_;  // for new files in DIR
  std::shared_ptr<Wal> wal_;       // null: no WAL yet
  std::map<uint64_t, uint64_t> older_;  // number -> bytes of the other WALs
  StandbyPosition received_;
  StandbyPosition durable_;
  SourceHeard heard_;
  SourceHeard marked_heard_;  // as in the last mark
  // Time since which an answer is awaited and nothing has arrived. Unset: none
  // is awaited.
  std::optional<std::chrono::steady_clock::time_point> silent_since_;
  std::unique_ptr<Digest128Stream> digest_;  // digest of the newest WAL's bytes
                                             // so far
  // Checks the sequence numbers of all WALs. Null: the numbers are unknown.
  std::unique_ptr<WalContinuity> continuity_;
  Gap gap_;
  FollowPosition cut_from_;   // position when the cut began; all zero: no cut
  bool carried_all_ = false;  // all WALs are in the next cut
  uint64_t marks_ = 0;  // number of the last mark
  std::vector<std::string> unneeded_;  // directories to remove after the cut
};

}  // namespace sstferry
