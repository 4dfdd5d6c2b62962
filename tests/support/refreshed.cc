#include "tests/support/refreshed.h"

#include <algorithm>

#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/pull/closed_files.h"
#include "pipeline/pull/first_sequence.h"
#include "rocksdb/table_properties.h"
#include "tests/support/catch.h"
#include "tests/support/sample_database.h"

namespace sstferry::test {
namespace {

Ferried Run(Operation* operation) {
  Ferried result;
  result.status = operation->Run(&result.summary);
  return result;
}

void SetSource(const std::string& source_dir, PullOptions* options) {
  *options = AsChunks(*options);
  options->source = SourceAddress();
  options->source.directory = source_dir;
  options->snapshot_ttl = std::chrono::seconds(0);  // any snapshot is a leak
  if (options->mode != PullMode::kSwap) {
    options->mode = PullMode::kRefresh;
  }
}

}  // namespace

Ferried Refresh(const std::string& source_dir, const std::string& target_dir,
                PullOptions options) {
  SetSource(source_dir, &options);
  options.target_dir = target_dir;
  return Run(MakePull(options).get());
}

Ferried RefreshOpen(const std::string& source_dir, OpenDb* target,
                    const std::vector<std::string>& families,
                    PullOptions options) {
  SetSource(source_dir, &options);
  OpenReplica replica;
  replica.db = target->get();
  for (const std::string& family : families) {
    replica.families.push_back(target->cf(family));
  }
  return Run(MakeRefresh(options, replica).get());
}

void PassWrites(const std::string& source_dir) {
  rocksdb::FileSystem* const disk = rocksdb::FileSystem::Default().get();
  ManifestReader manifest;
  REQUIRE_OK(ReadManifest(disk, source_dir, &manifest, /*found=*/nullptr));
  REQUIRE_OK(RaiseLastSequence(disk, source_dir,
                               manifest.state().last_sequence + 1'000'000));
}

uint64_t IngestedRangeDeletions(const std::string& dir,
                                const Families& families) {
  std::vector<std::string> names;
  REQUIRE_OK(rocksdb::DB::ListColumnFamilies({}, dir, &names));
  std::vector<rocksdb::ColumnFamilyDescriptor> there;
  for (const auto& family : families) {
    if (std::find(names.begin(), names.end(), family.name) != names.end()) {
      there.push_back(family);
    }
  }
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  std::unique_ptr<rocksdb::DB> db;
  REQUIRE_OK(rocksdb::DB::OpenForReadOnly({}, dir, there, &handles,
                                          IntoDb(&db)));
  uint64_t count = 0;
  for (rocksdb::ColumnFamilyHandle* handle : handles) {
    rocksdb::TablePropertiesCollection tables;
    REQUIRE_OK(db->GetPropertiesOfAllTables(handle, &tables));
    for (const auto& [path, properties] : tables) {
      count += properties->num_range_deletions != 0 &&
               properties->user_collected_properties.count(
                   "rocksdb.external_sst_file.version") != 0;
    }
    REQUIRE_OK(db->DestroyColumnFamilyHandle(handle));
  }
  return count;
}

}  // namespace sstferry::test
