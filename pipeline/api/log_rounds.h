// Stores a followed source's rounds in an archive's log: rounds become
// segments, and cuts become sets.
//
//   Cut()    pins a snapshot at the source and returns. Another thread pushes
//            the snapshot as a set, while later rounds continue. A cut that
//            the source requires ends the log and begins a new log; a
//            scheduled cut is another set in the same log.
//   Append() collects a segment; stores a full segment before it accepts more
//   Sync()   stores the collected segment
//
// After a start, the follower tries to continue at the end of a log in the
// archive. This works if the source still has all bytes after that end.
// Otherwise the follower tries the end of the next log, and finally takes a
// cut.
//
// The time of a cut is not before any record of the logs that it contains, even
// if the clock was set back a little meanwhile.
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

// Opens a store client whose calls all end at `until`.
using StoreOpener = std::function<rocksdb::Status(
    Clock::time_point until, std::unique_ptr<ObjectStore>* store)>;

// Opens the archive's log for rounds. The options and the endpoint must outlive
// *target; the endpoint is opened before the first cut. `now_micros` returns
// microseconds since 1970: the clock of the log and of the cuts. Tests replace
// `max_segments`.
//   kRefused  the archive is missing, or has as many segments
[[nodiscard]] rocksdb::Status OpenLogRounds(
    const FollowOptions& options, const std::unique_ptr<Endpoint>* endpoint,
    const StoreOpener& open, const std::function<uint64_t()>& now_micros,
    std::unique_ptr<RoundTarget>* target,
    uint64_t max_segments = kMaxPutObjects);

}  // namespace sstferry
