// The accept loop of a source, and what all its sessions share.
#pragma once

#include <memory>

#include "pipeline/serve/follow_at_source.h"
#include "pipeline/serve/refresh_at_source.h"
#include "rocksdb/status.h"
#include "sstferry/source.h"

namespace sstferry {

// Makes a server whose refreshes are planned by what `make_refresh` makes, and
// whose followers are answered by what `make_follow` makes.
// Errors: those of MakeSourceServer().
[[nodiscard]] rocksdb::Status MakeServer(const ServeOptions& options,
                                         std::unique_ptr<Listener> listener,
                                         const RefreshFactory& make_refresh,
                                         const FollowFactory& make_follow,
                                         std::unique_ptr<SourceServer>* server);

}  // namespace sstferry
