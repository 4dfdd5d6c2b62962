// With which options a private copy is opened: those of the source's OPTIONS
// file, so that its files are understood, minus everything that would write
// elsewhere, compact, cache without bound, or stop on what recovery finds.
#pragma once

#include <cstdarg>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "format/rocksdb/manifest_reader.h"
#include "rocksdb/cache.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "sstferry/options.h"

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
  bool atomic_flush = false;     // as the source sets it
  bool paranoid_checks = true;   // as the source sets it
  // A family that is not wanted cannot be opened: only the wanted ones are,
  // read-only.
  bool read_only = false;
  std::string read_only_reason;
  std::vector<std::string> notes;
};

struct OpenLimits {
  uint64_t write_buffer_bytes = 0;  // of all families together
  int max_open_files = 0;
};

// Of the database that `state` is, as `options_text`, the file at
// `options_path`, describes it; both are empty when the source has none.
// `wanted` empty means all. The families that OPTIONS do not describe get
// default options, and plan->notes says so.
//   kRefused      a wanted family is not there, has a comparator nobody here
//                 knows, or carries user-defined timestamps.
//   kSourceError  OPTIONS cannot be read.
[[nodiscard]] rocksdb::Status PlanOpening(
    const ManifestState& state, const std::string& options_path,
    const std::string& options_text, const std::vector<std::string>& wanted,
    const OperatorRegistry& registry, const OpenLimits& limits,
    OpenPlan* plan);

// Bounds the memtables by the WAL bytes that will be replayed into them.
void BoundWriteBuffers(uint64_t wal_bytes, const OpenLimits& limits,
                       OpenPlan* plan);

// Keeps what RocksDB says about the bytes that it drops (the status it returns
// does not always tell), and writes no LOG file.
class DropLogger : public rocksdb::Logger {
 public:
  DropLogger() : rocksdb::Logger(rocksdb::InfoLogLevel::WARN_LEVEL) {}
  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override;
  // The first such line since the last call; may be empty.
  std::string TakeDropped();
  // The first line since the last call that tells of bytes dropped for another
  // reason than that a WAL ends inside a record; may be empty.
  std::string TakeLost();

 private:
  std::mutex mu_;
  std::string dropped_;
  std::string lost_;
};

}  // namespace sstferry
