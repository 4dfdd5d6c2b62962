// Pushes a database at one point in time into an archive as a set.
//
// Pushes and prunes of one archive run concurrently, on machines that do not
// know of each other. Each process may pause for any time before any call. No
// process ever waits for another process. A set is committed when sets/SET and
// done/SET exist. Guarantee: every file of a committed set exists, and no
// deleted name is ever used again, however long any process paused.
//
// The name of a set sorts after the names of all existing sets, and of all
// pushes whose files it uses: its time is the time of the store, or one second
// after the latest of these names. So names have the order of the pushes even
// if the clocks of machines are wrong, and an unreadable record names no file
// of a later set.
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
//    P4 look: read marks and faults, then  R3 read sets and intents; check that
//       list files                            unlisted marked sets do not exist
//    P5 PUT sets/SET                       R4 delete done/SET, then sets/SET,
//    P6 look again                            of sets that are dropped
//    P7 PUT done/SET                       R5 delete marked files that no set
//    P8 read marks; is sets/SET there?        names
//                                          R6 delete the mark, if nothing that
//                                             it names is kept
//
// Each prune first does R2 to R6 for the marks of earlier prunes, and then R1.
//
// Proof that no file of a set with `done` is deleted: assume that a prune
// deletes file K of set S after the look of P6. Then the prune read the sets
// (R3) before the record of S existed (P5), and the mark existed even earlier
// (R2). If the mark still exists at P6, the push does not put the `done` of S.
// If the mark no longer exists, a prune had deleted everything that it names,
// including K. No process creates K again, so K is missing at P6. (Therefore a
// look reads the marks before it lists files, and a mark stays while something
// that it names is kept. A prune that undoes a mark puts it again with all
// names.) If S itself is dropped, its `done` and its record are deleted before
// its files.
//
// Proof that a set exists if its push reported success: assume that a prune
// takes S for unfinished. It names S in a mark. Either the prune that would
// delete S finds that S is committed (R4), or the push finds the mark or the
// deletions at P8. (A mark that names S as unfinished is never changed.)
//
// A fault in the findings (object CHECKED) stays until a check reads the object
// again, or the object is deleted. Each check and repair reads the findings
// just before it puts them, and keeps the faults that others have added. (A
// store cannot compare and put in one step. If a run is suspended between these
// two calls, it overwrites faults that others add in between. A check that
// reads the objects again finds them.) A repair is a push of the files of a
// damaged set, with the time of this set. It puts its findings before P1, so
// that they are known even if the repair is killed. Once the repaired set is
// committed, every command treats the original as damaged, and no push reuses
// it (RepairedSets).
//
// A push never puts two objects under one name. A push that cannot finish
// leaves what it has put. The next push chooses a new name and reuses the
// existing files. The intent is no lock. It only prevents that uploads are
// marked, until it is older than the grace. P5 and P7 are signed with the time
// of the look before them. So a store that checks signatures refuses to commit
// a push that paused.
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

// Maximum number of seconds by which the name of a set may be ahead of the
// store.
inline constexpr uint64_t kMaxSetAheadSeconds = 3600;
// Minimum difference in seconds at which a clock is reported as wrong.
inline constexpr uint64_t kWrongClockSeconds = 5;

// The damaged set that a push repairs (repair.h). The source of the push has
// the files of this set, in the same order.
struct PushRepair {
  const ArchiveSet* set = nullptr;
  std::set<std::string> good;  // keys of objects with verified bytes
};

struct PushOptions {
  std::string label;
  std::string host;
  std::string software;
  int lanes = 8;
  // Allows a database that is not the database in the newest set.
  bool adopt = false;
  NewSetId new_id = RandomSetId;
  // Position at which a log continues the set; segment 0: no log. The push
  // checks that the segments from this position up to next_segment() - 1 exist,
  // as it checks the files of the set.
  SetLog log;
  std::function<uint64_t()> next_segment;
  // Returns seconds of a monotonic clock, by which the push renews its intent.
  // May be null.
  std::function<uint64_t()> steady_seconds;
  // Returns seconds since 1970 by this machine's clock. May be null.
  std::function<uint64_t()> host_seconds;
  std::function<bool()> cancelled;  // polled between files; may be null
  // If not null, the push repairs this set: the new set gets the time of the
  // damaged set, and reuses only its good objects.
  const PushRepair* repair = nullptr;
  WorkProgress* progress = nullptr;  // may be null
  uint64_t max_objects = kMaxPutObjects;  // tests replace it
};

// Returns the beginning of a message about a set with a date in the future.
std::string SetOfTheFuture(const SetName& name, const std::string& host,
                           uint64_t ahead_seconds);

// Returns "; pushes work again after TIME ...". REQUIRES: the set's time is
// more than kMaxSetAheadSeconds in the future.
std::string PushesWorkAgain(const SetName& name);

struct PushSummary : ArchiveUploads {
  SetName name;
  uint64_t files = 0;
  uint64_t bytes = 0;
  std::vector<std::string> notes;
  std::vector<std::string> warnings;
};

// Pushes a set, and returns after it is committed.
//   kRefused   there is no archive, or it contains another database, whose sets
//              a prune would count together with the new sets. Or the newest
//              set has a date more than kMaxSetAheadSeconds in the future. Or
//              there are too many files already
//   kBusy      during the push, a reused file was marked, deleted or found
//              wrong, or a segment of the log was marked or deleted: push again
//   others     errors of the source and the store
[[nodiscard]] rocksdb::Status PushSet(const Archive& archive,
                                      SetSource* source,
                                      const PushOptions& options,
                                      PushSummary* summary);

}  // namespace sstferry
