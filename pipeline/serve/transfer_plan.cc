#include "pipeline/serve/transfer_plan.h"

#include "format/end_state.h"

namespace sstferry {

rocksdb::Status ReleaseAsked(const OpenRequest& request,
                             RocksDbRelease* release) {
  *release = RocksDbRelease();
  return request.application.empty() ||
                 ParseRelease(request.application, release)
             ? rocksdb::Status::OK()
             : MakeStatus(EndState::kRefused,
                          "expected a release of RocksDB such as 8.11.4, found "
                          "'" + request.application.substr(0, 32) + "'");
}

}  // namespace sstferry
