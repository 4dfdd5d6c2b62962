// The log of an archive as what takes the rounds of a source: they become
// segments, and cuts become sets.
//
//   Cut()    pins a snapshot at the source and returns: another thread pushes it
//            as a set, while rounds come on behind its position. One that the
//            source asked for ends the log, and begins another; one that is due
//            is a further set that the same log continues.
//   Append() gathers a segment; a full one is put before more is taken
//   Sync()   puts what was gathered
//
// The first position after a start is the end of a log that is in the archive.
// If the source has, byte by byte, what comes behind it, the log continues; else
// the next one is tried, and then a cut is taken.
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

// Opens it. The options and the endpoint, which is opened before the first cut,
// outlive it.
//   kRefused  there is no archive
[[nodiscard]] rocksdb::Status OpenLogRounds(
    const FollowOptions& options, const std::unique_ptr<Endpoint>* endpoint,
    const StoreOpener& open, std::unique_ptr<RoundTarget>* target);

}  // namespace sstferry
