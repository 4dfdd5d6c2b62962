// Stores the rounds of a source in the log of an archive: rounds become
// segments, and cuts become sets.
//
//   Cut()    pins a snapshot at the source and returns: another thread pushes
//            it as a set, while rounds after its position continue. A cut that
//            the source requires ends the log and begins another; a scheduled
//            cut is a further set in the same log.
//   Append() collects a segment; a full one is put before more is accepted
//   Sync()   puts what was collected
//
// The first position after a start is the end of a log in the archive. If the
// source still has all bytes after it, the log continues; otherwise the end of
// the next log is tried, and finally a cut is taken.
#pragma once

#include <functional>
#include <memory>

#include "pipeline/api/endpoint.h"
#include "pipeline/archive/store.h"
#include "pipeline/follow/round_target.h"
#include "sstferry/follow.h"

namespace sstferry {

// Opens a client of the store that ends all calls at `until`.
using StoreOpener = std::function<rocksdb::Status(
    Clock::time_point until, std::unique_ptr<ObjectStore>* store)>;

// Opens the archive's log for rounds. The options and the endpoint, which is
// opened before the first cut, must outlive *target.
//   kRefused  there is no archive
[[nodiscard]] rocksdb::Status OpenLogRounds(
    const FollowOptions& options, const std::unique_ptr<Endpoint>* endpoint,
    const StoreOpener& open, std::unique_ptr<RoundTarget>* target);

}  // namespace sstferry
