// Pushes one point in time of a database into an archive.
//
// Pushes and prunes of one archive run at the same time, on machines that know
// nothing of each other, each of them may stop for any time before any call,
// and nobody waits for anybody. A set counts once sets/SET and done/SET are
// there. Promise: no set that counts lacks a file, and no name that was deleted
// is ever used again, however long anybody slept.
//
// A set has a name after those of all sets that are there, and of the pushes
// whose files it uses: the store's time, or a second after the last of them. So
// the order of names is that of pushes, whatever the clocks of machines are, and
// a record that cannot be read names no file of a set after it.
//
//    push                                  prune (prune.h)
//    1 list files, read intents, marks,    1 read marks older than the grace
//      sets; choose a name after them
//    2 PUT intents/ID, renewed             2 read sets and intents
//    3 use files of earlier sets again,    3 delete done/SET, then sets/SET, of
//      but none that a mark names; PUT       sets that are dropped
//      others under this set's own name    4 delete marked files that no set
//    4 look: read marks, then list files     names
//    5 PUT sets/SET                        5 delete the mark, if nothing that it
//    6 look again                            names is kept
//    7 PUT done/SET                        6 list files, read intents and sets;
//    8 read marks; is sets/SET there?        PUT marks/ID: sets to drop, and
//                                            files that none of the others names
//
// Why no file goes that a set with `done` names. Say a prune deletes the file K
// of the set S after the look of step 6. Then it read the sets before S was
// there (2 before 5), and its mark was there before that. Either the mark is
// still there at 6, and S does not get its `done`; or it is gone, because a
// prune had deleted everything that it names, K too: then K is missing at 6,
// because nobody makes it again. (So a look reads the marks before it lists
// files; and a mark of which something is kept stays.) If S itself is dropped,
// it loses its `done` and its record before a file of it goes.
//
// Why a set whose push was told to be done is there: a prune that takes S for
// unfinished names it in a mark, and finds S done later (3), or its mark or its
// deletions are found at 8.
//
// A push puts nothing twice under one name: what it cannot finish it leaves,
// and the next push, with a name of its own, uses the files that are there.
// The intent is no lock: it only saves uploads from being marked, for the
// grace. Signatures of steps 5 and 7 are as old as the look before them, so
// that a store which checks them refuses the commit of a push that slept.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "pipeline/archive/archive.h"
#include "pipeline/archive/set_source.h"
#include "rocksdb/status.h"

namespace sstferry {

// By so much a set may be named after the store's time.
inline constexpr uint64_t kMaxSetAheadSeconds = 3600;
// From so much on a clock is said to be wrong.
inline constexpr uint64_t kWrongClockSeconds = 5;

// The set that a push repairs (repair.h): its source has that set's files, in
// their order.
struct PushRepair {
  const ArchiveSet* set = nullptr;
  std::set<std::string> good;  // objects whose bytes were compared
};

struct PushOptions {
  std::string label;
  std::string host;
  std::string software;
  int lanes = 8;
  // Takes a database that the newest set does not know.
  bool adopt = false;
  NewSetId new_id = RandomSetId;
  // Where a log continues the set; no segment: none does. Segments from there on
  // are looked at as files of this set are; all that are before the number that
  // `next_segment` returns were put.
  SetLog log;
  std::function<uint64_t()> next_segment;
  // Seconds of a clock that never goes back, by which intents are renewed.
  std::function<uint64_t()> steady_seconds;
  // Seconds since 1970 of this machine's clock.
  std::function<uint64_t()> host_seconds;
  std::function<bool()> cancelled;  // polled between files; may be null
  // Not null: the set has the time of the repaired one, and uses nothing but its
  // good objects again.
  const PushRepair* repair = nullptr;
  WorkProgress* progress = nullptr;  // may be null
};

// Returns the begin of a sentence about a set that is of a time to come.
std::string SetOfTheFuture(const SetName& name, const std::string& host,
                           uint64_t ahead_seconds);

struct PushSummary {
  SetName name;
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t uploaded_files = 0;
  uint64_t uploaded_bytes = 0;
  uint64_t reused_files = 0;  // of earlier sets, or of a push that died
  uint64_t reused_bytes = 0;
  std::vector<std::string> notes;
  std::vector<std::string> warnings;
};

// Blocks until the set counts.
//   kRefused   there is no archive, or it is that of another database: prune
//              would count the sets of both as one; or the newest set is of a
//              time to come, by more than kMaxSetAheadSeconds
//   kBusy      what it used, or a segment behind it, was marked or deleted
//              meanwhile: push again
//   others     the source's and the store's
[[nodiscard]] rocksdb::Status PushSet(const Archive& archive,
                                      SetSource* source,
                                      const PushOptions& options,
                                      PushSummary* summary);

}  // namespace sstferry
