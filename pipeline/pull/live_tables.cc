#include "pipeline/pull/live_tables.h"

#include <algorithm>
#include <unordered_map>

#include "format/coding.h"
#include "format/end_state.h"
#include "pipeline/base/open_file.h"
#include "rocksdb/metadata.h"
#include "rocksdb/table_properties.h"
#include "rocksdb/unique_id.h"

namespace sstferry {
namespace {

using rocksdb::Status;
using rocksdb::TableProperties;

// Number of tries: a compaction may delete files between the two calls that
// list them.
constexpr int kTries = 5;

std::optional<Digest128> IdOf(const TableProperties& properties) {
  std::string id;
  if (!rocksdb::GetUniqueIdFromTableProperties(properties, &id).ok() ||
      id.size() != 16) {
    return std::nullopt;
  }
  Digest128 digest;
  digest.high = DecodeFixed64(id.data());
  digest.low = DecodeFixed64(id.data() + 8);
  return digest;
}

// Returns true for an ingested file. It has no SingleDelete, because
// SstFileWriter writes none.
bool WasIngested(const TableProperties& properties) {
  return properties.user_collected_properties.count(
             "rocksdb.external_sst_file.version") != 0;
}

}  // namespace

Status ListLiveTables(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
                      std::vector<LiveTable>* tables) {
  bool whole = false;
  for (int i = 0; i < kTries && !whole; ++i) {
    rocksdb::ColumnFamilyMetaData metadata;
    db->GetColumnFamilyMetaData(family, &metadata);
    rocksdb::TablePropertiesCollection collection;
    const Status status = db->GetPropertiesOfAllTables(family, &collection);
    if (!status.ok()) {
      return WithContext(status, EndStateOf(status), "properties of tables");
    }
    std::unordered_map<std::string, const TableProperties*> by_name;
    for (const auto& [path, properties] : collection) {
      by_name[NameIn(path)] = properties.get();
    }
    tables->clear();
    whole = true;
    for (const rocksdb::LevelMetaData& level : metadata.levels) {
      for (const rocksdb::SstFileMetaData& file : level.files) {
        LiveTable table;
        table.name = NameIn(file.name);
        table.path = file.db_path + "/" + table.name;
        table.smallest = file.smallestkey;
        table.largest = file.largestkey;
        table.level = level.level;
        table.bytes = file.size;
        table.smallest_sequence = file.smallest_seqno;
        table.largest_sequence = file.largest_seqno;
        const auto found = by_name.find(table.name);
        if (found != by_name.end()) {
          const TableProperties& properties = *found->second;
          table.id = IdOf(properties);
          table.range_deletions = properties.num_range_deletions;
          table.was_ingested = WasIngested(properties);
          table.may_single_delete =
              properties.num_deletions != 0 && !table.was_ingested;
        } else {
          whole = false;
        }
        tables->push_back(std::move(table));
      }
    }
  }
  return Status::OK();
}

std::string DatabaseIdOf(rocksdb::DB* db) {
  std::string id;
  return db->GetDbIdentity(id).ok() ? id : "";
}

std::optional<Digest128> TableIdOf(const JournalChunk& chunk) {
  TableProperties properties;
  properties.db_id = chunk.creating_database_id;
  properties.db_session_id = chunk.creating_session_id;
  properties.orig_file_number = chunk.original_file_number;
  return IdOf(properties);
}

}  // namespace sstferry
