// The server of a source. It accepts connections, and owns the objects that its
// sessions share.
#pragma once

#include <memory>

#include "pipeline/serve/follow_at_source.h"
#include "pipeline/serve/refresh_at_source.h"
#include "rocksdb/status.h"
#include "sstferry/source.h"

namespace sstferry {

// Makes a server. `make_refresh` makes the RefreshAtSource of a refresh in
// place; if it is null, the server refuses refreshes in place. `make_follow`
// makes the object that answers followers; if it is null, the server refuses
// followers. Returns the errors of MakeSourceServer().
[[nodiscard]] rocksdb::Status MakeServer(const ServeOptions& options,
                                         std::unique_ptr<Listener> listener,
                                         const RefreshFactory& make_refresh,
                                         const FollowFactory& make_follow,
                                         std::unique_ptr<SourceServer>* server);

}  // namespace sstferry
