// Pushes one point in time of a database into an archive.
//
// Pushes and prunes of one archive run concurrently, on machines that do not
// know of each other. Each process may pause for any time before any call, and
// never waits for another process. A set is committed when sets/SET and
// done/SET exist. Guarantee: every file of a committed set exists, and no
// deleted name is ever used again, however long any process paused.
//
// A set's name sorts after the names of all existing sets, and of the pushes
// whose files it uses: it is the store's time, or one second after the last of
// these names. So names have the order of pushes, whatever the machines' clocks
// say, and an unreadable record names no file of a later set.
//
//    push                                  prune (prune.h)
//    P1 list files, read intents, marks,   R1 list files, read intents and
//       sets; choose a name after them        sets; PUT marks/ID: sets to
//    P2 PUT intents/ID, renewed               drop, and files that no other
//    P3 reuse files of earlier sets,          set names
//       unless a mark or a fault names     a later prune, after the grace:
//       them; PUT others under this        R2 read marks older than the grace
//       set's own name; read one byte
//       of the first back
//    P4 look: read marks and faults, then  R3 read sets and intents; marked
//       list files                            sets that are not listed are gone
//    P5 PUT sets/SET                       R4 delete done/SET, then sets/SET,
//    P6 look again                            of sets that are dropped
//    P7 PUT done/SET                       R5 delete marked files that no set
//    P8 read marks; is sets/SET there?        names
//                                          R6 delete the mark, if nothing that
//                                             it names is kept
//
// Each prune does R2 to R6 for the marks of earlier prunes, then R1.
//
// Proof that no file of a set with `done` is deleted: assume that a prune
// deletes file K of set S after the look of P6. Then the prune read the sets
// (R3) before S's record existed (P5), and its mark existed even earlier (R2).
// If the mark still exists at P6, S does not get its `done`. If the mark is
// gone, a prune had deleted everything that it names, including K; no process
// creates K again, so K is missing at P6. (So a look reads the marks before it
// lists files, and a mark stays while something that it names is kept. A prune
// that takes a mark back puts it again with all names.) If S
// itself is dropped, its `done` and its record are deleted before its files.
//
// Proof that a set exists if its push reported success: a prune that takes S
// for unfinished names S in a mark. Either the prune that would delete S finds
// it done (R4), or the push finds the mark or the deletions at P8. (A mark that
// names S as unfinished is never changed.)
//
// A fault in the findings (CHECKED) stays until a check reads the object again
// or the object is deleted. Each check and repair reads the findings just
// before it puts them, and keeps what others have added. (Stores cannot compare
// and put: if a run sleeps between these two calls, it loses what others add
// meanwhile, until a check reads the objects again.) A repair is a push of a
// damaged set's files under that set's time. It puts its findings before P1, so
// that they are known even if it dies; once the repaired set is committed,
// every command treats the original as damaged, and no push reuses it
// (RepairedSets).
//
// A push never puts two objects under one name. It leaves what it cannot
// finish; the next push takes a new name and reuses the existing files. The
// intent is no lock: it only protects uploads from being marked, until it is
// older than the grace. P5 and P7 are signed with the time of the look
// before them, so a store that checks signatures refuses the commit of a push
// that paused.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "pipeline/archive/archive.h"
#include "pipeline/archive/set_source.h"
#include "rocksdb/status.h"
#include "sstferry/archive.h"

namespace sstferry {

// Maximum time in seconds by which a set's name may be ahead of the store.
inline constexpr uint64_t kMaxSetAheadSeconds = 3600;
// Minimum difference in seconds at which a clock is reported as wrong.
inline constexpr uint64_t kWrongClockSeconds = 5;

// The set that a push repairs (repair.h). The push's source has the files of
// that set, in the same order.
struct PushRepair {
  const ArchiveSet* set = nullptr;
  std::set<std::string> good;  // objects with verified bytes
};

struct PushOptions {
  std::string label;
  std::string host;
  std::string software;
  int lanes = 8;
  // Allows a database other than that in the newest set.
  bool adopt = false;
  NewSetId new_id = RandomSetId;
  // Position from which a log continues the set; segment 0: no log. The push
  // checks that the segments from there up to, not including, next_segment()
  // exist, as it checks the set's files.
  SetLog log;
  std::function<uint64_t()> next_segment;
  // Seconds of a monotonic clock, by which intents are renewed.
  std::function<uint64_t()> steady_seconds;
  // Seconds since 1970 by this machine's clock.
  std::function<uint64_t()> host_seconds;
  std::function<bool()> cancelled;  // polled between files; may be null
  // If not null, the set gets the time of the repaired set, and reuses only its
  // good objects.
  const PushRepair* repair = nullptr;
  WorkProgress* progress = nullptr;  // may be null
  uint64_t max_objects = kMaxPutObjects;  // tests replace it
};

// Returns the beginning of a message about a set that is dated in the future.
std::string SetOfTheFuture(const SetName& name, const std::string& host,
                           uint64_t ahead_seconds);

// Returns "; pushes work again after TIME ...", for a set that is dated more
// than kMaxSetAheadSeconds in the future.
std::string PushesWorkAgain(const SetName& name);

struct PushSummary : ArchiveUploads {
  SetName name;
  uint64_t files = 0;
  uint64_t bytes = 0;
  std::vector<std::string> notes;
  std::vector<std::string> warnings;
};

// Pushes, and blocks until the set is committed.
//   kRefused   there is no archive, or it belongs to another database (a prune
//              would count the sets of both as one series); or the newest set
//              is dated more than kMaxSetAheadSeconds in the future; or there
//              are too many files already
//   kBusy      a reused file was marked, deleted or found wrong meanwhile, or a
//              segment of the log was marked or deleted: push again
//   others     errors of the source and the store
[[nodiscard]] rocksdb::Status PushSet(const Archive& archive,
                                      SetSource* source,
                                      const PushOptions& options,
                                      PushSummary* summary);

}  // namespace sstferry
