// Accepts the connections of a source, and owns what all its sessions share.
#pragma once

#include <memory>

#include "pipeline/serve/follow_at_source.h"
#include "pipeline/serve/refresh_at_source.h"
#include "rocksdb/status.h"
#include "sstferry/source.h"

namespace sstferry {

// Makes a server. `make_refresh` makes the planners of its refreshes; if it is
// null, the server refuses refreshes in place. `make_follow` makes the object
// that answers its followers; if it is null, the server refuses followers.
// Errors are those of MakeSourceServer().
[[nodiscard]] rocksdb::Status MakeServer(const ServeOptions& options,
                                         std::unique_ptr<Listener> listener,
                                         const RefreshFactory& make_refresh,
                                         const FollowFactory& make_follow,
                                         std::unique_ptr<SourceServer>* server);

}  // namespace sstferry
