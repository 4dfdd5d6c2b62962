#include "pipeline/target/refresh_plan.h"

#include <algorithm>

#include "pipeline/target/cover_record.h"
#include "pipeline/target/live_db.h"

namespace sstferry {
namespace {

using rocksdb::Status;

bool HoldsUnflushed(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family) {
  uint64_t entries = 0;
  return !db->GetIntProperty(
             family, rocksdb::DB::Properties::kNumEntriesActiveMemTable,
             &entries) ||
         entries > 0;
}

}  // namespace

Status ReadTargetMemory(const PullOptions& options, TargetMemory* memory,
                        std::vector<std::string>* notes) {
  std::unique_ptr<LiveDb> live;
  Status status =
      LiveDb::OpenToRead(options.target_dir, options.registry, &live, notes);
  bool remembers = false;
  CoverFile record;
  if (status.ok()) {
    status = ReadCovers(rocksdb::FileSystem::Default().get(),
                        options.target_dir, &remembers, &record);
  }
  if (status.IsCorruption()) {
    record = CoverFile();
    status = Status::OK();
  }
  if (!status.ok()) {
    return status;
  }
  if (!remembers) {
    notes->push_back("the target remembers no source: everything would be "
                     "sent, and only with --adopt");
  }
  const std::vector<std::string>& asked = options.selection.families;
  std::vector<FamilyHandle> families = live->families();
  std::erase_if(families, [&asked](const FamilyHandle& family) {
    return !asked.empty() &&
           std::find(asked.begin(), asked.end(), family.name) == asked.end();
  });
  JudgedTarget judged;
  status = JudgeCovers(record, live->db(), families, &judged);
  DescribeTarget(options, judged, memory);
  for (Cover& cover : memory->covers) {
    const std::string& name = memory->families[cover.family].name;
    cover.doubted =
        cover.doubted || HoldsUnflushed(live->db(), live->Find(name));
  }
  const Status closed = live->Close();
  return status.ok() ? closed : status;
}

}  // namespace sstferry
