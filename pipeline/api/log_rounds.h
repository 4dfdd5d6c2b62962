// Stores the rounds of a followed source in an archive's log. Rounds become
// segments of the log, and cuts become sets of files.
//
//   Cut()    pins a snapshot at the source and returns. Another thread pushes
//            the snapshot as a set, while later rounds continue. If the source
//            requires the cut, the log ends and a new log begins. If the cut is
//            only scheduled, the same log gets another set.
//   Append() collects a segment; stores a full segment before it accepts more
//   Sync()   stores the collected segment; after Cancel(), opens the store
//            again, and stores nothing if it now has another archive
//
// After a start, the follower tries to continue at the end of a log in the
// archive. This works if the source still has all bytes after that end.
// Otherwise the follower tries the end of the next log. If no log works, the
// follower takes a cut.
//
// A cut contains the records of its logs, so its time is never before theirs.
// This is true even if the clock was set back a little between them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "pipeline/api/endpoint.h"
#include "pipeline/archive/archive.h"
#include "pipeline/archive/store.h"
#include "pipeline/follow/round_target.h"
#include "sstferry/follow.h"

namespace sstferry {

// Opens a client of the archive's store. All calls of the client end at
// `until`.
using StoreOpener = std::function<rocksdb::Status(
    Clock::time_point until, std::unique_ptr<ObjectStore>* store)>;

// Opens the archive's log, which stores the rounds. The options and the
// endpoint must outlive *target. The caller opens the endpoint before the first
// cut. `now_micros` returns microseconds since 1970; the log and the cuts use
// it as their clock. Only tests change `max_segments`.
//   kRefused  the archive is missing, or has its maximum number of segments
[[nodiscard]] rocksdb::Status OpenLogRounds(
    const FollowOptions& options, const std::unique_ptr<Endpoint>* endpoint,
    const StoreOpener& open, const std::function<uint64_t()>& now_micros,
    std::unique_ptr<RoundTarget>* target,
    uint64_t max_segments = kMaxPutObjects);

}  // namespace sstferry
