#include "pipeline/target/memory/refresh_plan.h"

#include <algorithm>

#include "pipeline/target/database/live_db.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Returns the interval records that are not doubted, encoded and sorted.
std::vector<std::string> Believed(const TargetMemory& memory) {
  std::vector<std::string> believed;
  for (const Cover& cover : memory.covers) {
    if (!cover.doubted) {
      Covers one{{cover}};
      one.covers.front().family = 0;
      std::string text = memory.families[cover.family].name;
      text.push_back('\0');
      one.EncodeTo(&text);
      believed.push_back(std::move(text));
    }
  }
  std::sort(believed.begin(), believed.end());
  return believed;
}

}  // namespace

std::string FindLost(const std::vector<FamilyHandle>& families,
                     const TargetMemory& told, const TargetMemory& now) {
  const std::vector<std::string> believed = Believed(now);
  for (const std::string& cover : Believed(told)) {
    if (!std::binary_search(believed.begin(), believed.end(), cover)) {
      return "column family '" + cover.substr(0, cover.find('\0')) +
             "' has other files";
    }
  }
  for (const TargetFamily& family : now.families) {
    const rocksdb::Comparator* order = nullptr;
    for (const FamilyHandle& live : families) {
      if (live.name == family.name) {
        order = live.handle->GetComparator();
      }
    }
    const auto before = std::find_if(
        told.families.begin(), told.families.end(),
        [&family](const TargetFamily& t) { return t.name == family.name; });
    const std::string where = "column family '" + family.name + "'";
    if (order == nullptr || before == told.families.end()) {
      return where + " is new";
    }
    if (family.first &&
        (!before->first ||
         order->Compare(*family.first, *before->first) < 0 ||
         order->Compare(*before->last, *family.last) < 0)) {
      return where + " has keys further out";
    }
  }
  return "";
}

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
    notes->push_back("the target remembers no source: a refresh needs --adopt, "
                     "and the source would send everything");
  }
  const std::vector<std::string>& asked = options.selection.families;
  std::vector<FamilyHandle> families = live->families();
  std::erase_if(families, [&asked](const FamilyHandle& family) {
    return !asked.empty() &&
           std::find(asked.begin(), asked.end(), family.name) == asked.end();
  });
  JudgedTarget judged;
  status = ReadSourceRecord(rocksdb::FileSystem::Default().get(),
                            options.target_dir, record, &judged.source_record);
  if (status.ok()) {
    status = JudgeCovers(record, live->db(), families, &judged);
    DescribeTarget(options, judged, memory);
  }
  if (status.ok() && options.compare == CompareMode::kFiles) {
    AddDoubtNotes(record, judged, notes);
  }
  const Status closed = live->Close();
  return status.ok() ? closed : status;
}

}  // namespace sstferry
