#include "pipeline/serve/transfer_plan.h"

#include "format/end_state.h"
#include "pipeline/snapshot/snapshot.h"

namespace sstferry {

void DescribeSource(const Snapshot& snapshot, const TransferPlan& plan,
                    Opened* opened) {
  opened->source_database_id = snapshot.database_id();
  opened->snapshot_sequence = snapshot.sequence();
  opened->family_count = static_cast<uint32_t>(plan.families.size());
  opened->application = ReleaseName(plan.application);
  opened->written_by = ReleaseName(plan.written_by);
  opened->opens_since = ReleaseName(plan.needs.release());
  opened->opens_because = plan.needs.what();
}

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
