#include "pipeline/serve/transfer_plan.h"

#include <algorithm>

#include "format/end_state.h"
#include "format/limits.h"
#include "pipeline/snapshot/snapshot.h"

namespace sstferry {

rocksdb::Status CheckNames(const Snapshot& snapshot) {
  if (snapshot.families().size() > kMaxFamilies) {
    return MakeStatus(EndState::kRefused,
                      "expected at most " + std::to_string(kMaxFamilies) +
                          " column families, found " +
                          std::to_string(snapshot.families().size()));
  }
  for (const SnapshotFamily& family : snapshot.families()) {
    if (family.name.size() > kMaxFamilyNameBytes) {
      return MakeStatus(EndState::kRefused,
                        "column family '" + family.name.substr(0, 32) +
                            "...': expected a name of at most " +
                            std::to_string(kMaxFamilyNameBytes) +
                            " bytes, found " +
                            std::to_string(family.name.size()));
    }
  }
  if (snapshot.database_id().size() > kMaxIdentifierBytes) {
    return MakeStatus(EndState::kRefused,
                      "database id: expected at most " +
                          std::to_string(kMaxIdentifierBytes) +
                          " bytes, found " +
                          std::to_string(snapshot.database_id().size()));
  }
  return rocksdb::Status::OK();
}

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

std::vector<std::string> JoinNotes(std::vector<std::string> of_plan,
                                   const std::vector<std::string>& own) {
  const size_t most = kMaxNotes - 1;
  const size_t room = most - std::min(own.size(), most);
  of_plan.resize(std::min(of_plan.size(), room));
  of_plan.insert(of_plan.end(), own.begin(), own.end());
  of_plan.resize(std::min(of_plan.size(), most));
  return of_plan;
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
