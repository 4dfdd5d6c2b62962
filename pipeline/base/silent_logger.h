// RocksDB logger that discards everything, so that a pull leaves no LOG files.
#pragma once

#include <cstdarg>

#include "rocksdb/env.h"

namespace sstferry {

class SilentLogger : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

}  // namespace sstferry
