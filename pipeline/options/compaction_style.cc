#include "pipeline/options/compaction_style.h"

#include "format/end_state.h"
#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/convenience.h"

namespace sstferry {

using rocksdb::CompactionStyle;
using rocksdb::Status;

const char* StyleName(CompactionStyle style) {
  switch (style) {
    case rocksdb::kCompactionStyleLevel:
      return "leveled";
    case rocksdb::kCompactionStyleUniversal:
      return "universal";
    case rocksdb::kCompactionStyleFIFO:
      return "FIFO";
    case rocksdb::kCompactionStyleNone:
      return "none";
  }
  return "unknown";
}

std::optional<CompactionStyle> StyleOf(
    const std::vector<NamedValue>& options) {
  for (const NamedValue& option : options) {
    rocksdb::ColumnFamilyOptions parsed;
    if (option.name == "compaction_style" &&
        rocksdb::GetColumnFamilyOptionsFromMap(
            rocksdb::ConfigOptions(), {}, {{option.name, option.value}},
            &parsed)
            .ok()) {
      return parsed.compaction_style;
    }
  }
  return std::nullopt;
}

Status CheckIngestsOver(const std::string& family, CompactionStyle style) {
  const bool universal = style == rocksdb::kCompactionStyleUniversal &&
                         !kUniversalIngestsOverData;
  const bool fifo =
      style == rocksdb::kCompactionStyleFIFO && !kFifoIngestsToLevel0;
  return !universal && !fifo
             ? Status::OK()
             : MakeStatus(EndState::kRefused,
                          "column family '" + family +
                              "': expected leveled compaction, found " +
                              StyleName(style) +
                              ", into which RocksDB ingests safely since " +
                              (fifo ? "9.3" : "9.0") +
                              "; this sstferry has RocksDB " +
                              RocksDbVersion() +
                              ", so only a swap can refresh it");
}

}  // namespace sstferry
