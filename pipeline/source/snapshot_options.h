// With which options a private copy is opened: those of the source's OPTIONS
// file, so that its files are understood, minus everything that would write
// elsewhere, compact, cache without bound, or stop on what recovery finds.
#pragma once

#include <cstdarg>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/options.h"
#include "rocksdb/cache.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/options.h"

namespace sstferry {

struct FamilyOpening {
  std::string name;
  bool wanted = false;
  rocksdb::ColumnFamilyOptions source;  // as OPTIONS tells
  rocksdb::ColumnFamilyOptions open;    // for the private copy
  // Names OPTIONS gives that neither RocksDB nor the registry knows.
  std::string unknown_comparator;
  std::string unknown_merge_operator;
};

struct OpenPlan {
  rocksdb::DBOptions db;
  std::vector<FamilyOpening> families;  // all of the MANIFEST
  bool atomic_flush = false;         // as the source sets it
  // A family that is not wanted cannot be opened: only the wanted ones are,
  // read-only.
  bool read_only = false;
  std::string read_only_reason;
};

struct OpenLimits {
  uint64_t write_buffer_bytes = 0;  // of all families together
  int max_open_files = 0;
};

// `directory` holds copies of CURRENT, MANIFEST and OPTIONS; `options_path` is
// empty when the source has no OPTIONS file. `wanted` empty means all.
//   kRefused      a wanted family is not there, has a comparator nobody here
//                 knows, or carries user-defined timestamps.
//   kSourceError  OPTIONS or MANIFEST cannot be read.
// *incomplete: OPTIONS does not know a family of the MANIFEST (it was made this
// moment); another attempt may see both.
[[nodiscard]] rocksdb::Status PlanOpening(
    const std::string& directory, const std::string& options_path,
    const std::string& options_text, const std::vector<std::string>& wanted,
    const OperatorRegistry& registry, const OpenLimits& limits, OpenPlan* plan,
    bool* incomplete);

// Bounds the memtables by the WAL bytes that will be replayed into them.
void BoundWriteBuffers(uint64_t wal_bytes, const OpenLimits& limits,
                       OpenPlan* plan);

// Keeps what RocksDB says about the files it drops data of (the status it
// returns does not always name the file), and writes no LOG file.
class DropLogger : public rocksdb::Logger {
 public:
  DropLogger() : rocksdb::Logger(rocksdb::InfoLogLevel::WARN_LEVEL) {}
  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override;
  // The first such line since the last call; may be empty.
  std::string TakeDropped();

 private:
  std::mutex mu_;
  std::string dropped_;
};

}  // namespace sstferry
