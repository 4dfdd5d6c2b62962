#include "pipeline/source/plan/file_plan.h"

#include <algorithm>

#include "format/coding.h"
#include "format/end_state.h"
#include "format/sst/sst_tail.h"
#include "pipeline/base/file_source.h"
#include "pipeline/base/key_interval.h"
#include "rocksdb/metadata.h"

namespace sstferry {
namespace {

using rocksdb::Comparator;
using rocksdb::Status;

FilePlan Describe(const Comparator* comparator, const KeyInterval& interval,
                  const rocksdb::SstFileMetaData& metadata, int level,
                  size_t place) {
  FilePlan file;
  static_cast<TableFile&>(file) = DescribeTable(metadata, level, place);
  file.name = metadata.relative_filename;
  file.bytes = metadata.size;
  file.entries = metadata.num_entries;
  file.inside = HoldsSpan(interval, comparator, file.smallest, file.largest);
  return file;
}

void Identify(const CarryRules& rules, const SstProperties& properties,
              FilePlan* file) {
  if (!properties.db_id.empty() && !properties.db_session_id.empty() &&
      properties.original_file_number != 0) {
    PutBytes(&file->identity, properties.db_id);
    PutBytes(&file->identity, properties.db_session_id);
    PutFixed64(&file->identity, properties.original_file_number);
  }
  file->flushed_by_snapshot =
      !rules.own_session_id.empty() &&
      properties.db_session_id == rules.own_session_id;
}

// Decides on a file without an obstacle in its metadata. Rewrites the tail and
// walks the index, because only that shows whether the file can be sent and how
// large it becomes.
Status DecideByTable(const CarryRules& rules, const SstReader& reader,
                     FilePlan* file) {
  TableFacts facts;
  facts.footer = reader.footer();
  facts.properties = &reader.properties();
  facts.meta_blocks = &reader.meta_blocks();
  file->reason = ObstacleInTable(rules, facts);
  if (!file->reason.empty()) {
    return Status::OK();
  }
  const std::string difference = DifferenceInTable(rules, facts);
  if (!difference.empty() && rules.mode != CarryMode::kOnly) {
    file->reason = difference;
    return Status::OK();
  }
  SstTail tail;
  Status status = RewriteSstTail(reader, &tail);
  if (status.ok()) {
    status = ForEachBodyBlock(
        reader, tail, [](const SstBlockHandle&) { return Status::OK(); });
  }
  if (status.IsNotSupported()) {
    file->reason = MessageOf(status);
    return Status::OK();
  }
  if (!status.ok()) {
    return status;
  }
  file->carried_bytes = tail.body_bytes + tail.bytes.size();
  file->reason = ObstacleInSize(rules, file->carried_bytes);
  if (!file->reason.empty()) {
    return Status::OK();
  }
  file->carry = true;
  file->entries = tail.properties.num_entries;
  file->reason = difference;
  return Status::OK();
}

Status DecideOne(const CarryRules& rules, TableSums* sums, FilePlan* file) {
  std::unique_ptr<FileSource> source;
  Status status = FileSource::Open(rocksdb::FileSystem::Default().get(),
                                   file->path, &source,
                                   EndState::kSourceError);
  if (!status.ok()) {
    return status;
  }
  file->reason = ObstacleInMetadata(rules, *file);
  SstReader reader;
  status = reader.Open(source.get());
  if (status.IsNotSupported()) {
    // RocksDB can read this table, but it can be neither carried nor cut
    // inside.
    if (file->reason.empty()) {
      file->reason = "not a block-based table";
    }
    return Status::OK();
  }
  if (!status.ok()) {
    return status;
  }
  Identify(rules, reader.properties(), file);
  file->is_block_based = true;
  file->entries = reader.properties().num_entries;
  file->deletions = reader.properties().num_deletions;
  file->range_deletions = reader.properties().num_range_deletions;
  sums->merge_operands += reader.properties().num_merge_operands;
  sums->max_format_version =
      std::max(sums->max_format_version, reader.footer().format_version);
  return file->reason.empty() ? DecideByTable(rules, reader, file)
                              : Status::OK();
}

}  // namespace

void MarkOverlaps(const Comparator* comparator, std::vector<FilePlan>* files) {
  // Index of the file with the largest key so far.
  size_t furthest = 0;
  for (size_t i = 1; i < files->size(); ++i) {
    FilePlan& file = (*files)[i];
    FilePlan& before = (*files)[furthest];
    if (comparator->Compare(file.smallest, before.largest) <= 0) {
      file.overlaps = before.name;
      if (before.overlaps.empty()) {
        before.overlaps = file.name;
      }
    }
    if (comparator->Compare(file.largest, before.largest) > 0) {
      furthest = i;
    }
  }
}

std::vector<FilePlan> ListFiles(rocksdb::DB* db,
                                rocksdb::ColumnFamilyHandle* family,
                                const KeyInterval& interval,
                                uint32_t* sorted_runs) {
  const Comparator* comparator = family->GetComparator();
  rocksdb::ColumnFamilyMetaData metadata;
  db->GetColumnFamilyMetaData(family, &metadata);
  std::vector<FilePlan> files;
  *sorted_runs = 0;
  for (const rocksdb::LevelMetaData& level : metadata.levels) {
    if (!level.files.empty()) {
      *sorted_runs += level.level == 0
                          ? static_cast<uint32_t>(level.files.size())
                          : 1;
    }
    for (size_t i = 0; i < level.files.size(); ++i) {
      const rocksdb::SstFileMetaData& file = level.files[i];
      if (MeetsSpan(interval, comparator, file.smallestkey,
                    file.largestkey)) {
        files.push_back(
            Describe(comparator, interval, file, level.level, i));
      }
    }
  }
  std::sort(files.begin(), files.end(),
            [comparator](const FilePlan& a, const FilePlan& b) {
              const int order = comparator->Compare(a.smallest, b.smallest);
              return order != 0 ? order < 0 : a.name < b.name;
            });
  MarkOverlaps(comparator, &files);
  return files;
}

Status DecideCarrying(const CarryRules& rules, const std::string& family_name,
                      const std::function<bool()>& cancelled, TableSums* sums,
                      std::vector<FilePlan>* files) {
  for (FilePlan& file : *files) {
    if (cancelled && cancelled()) {
      return MakeStatus(EndState::kCancelled, "while planning");
    }
    const Status status = DecideOne(rules, sums, &file);
    if (!status.ok()) {
      return WithContext(status, EndState::kSourceError, file.path);
    }
    if (!file.carry && rules.mode == CarryMode::kOnly) {
      return MakeStatus(EndState::kRefused,
                        "--carry only: " + file.name + " of column family '" +
                            family_name + "': " + file.reason);
    }
  }
  return Status::OK();
}

}  // namespace sstferry
