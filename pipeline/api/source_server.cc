#include "pipeline/follow/source_followers.h"
#include "pipeline/refresh/refresh.h"
#include "pipeline/serve/server.h"
#include "sstferry/source.h"

namespace sstferry {

rocksdb::Status MakeSourceServer(const ServeOptions& options,
                                 std::unique_ptr<Listener> listener,
                                 std::unique_ptr<SourceServer>* server) {
  return MakeServer(options, std::move(listener), MakeRefreshAtSource,
                    MakeFollowAtSource, server);
}

}  // namespace sstferry
