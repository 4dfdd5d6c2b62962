// Reports errors of RocksDB's background work, which no call returns, and
// errors after which a database accepts no more writes.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "rocksdb/listener.h"
#include "rocksdb/status.h"

namespace sstferry {

// Receives one error of RocksDB's background work. RocksDB calls the function
// once per error, on any thread. The message of the status names the kind of
// work and `dir`. The end state of the status is kNoSpace, kCorrupt or
// kInternal. The function must not call into the database.
using BackgroundErrorFunction = std::function<void(const rocksdb::Status&)>;

// Returns a listener that calls `on_error` for errors of the database in `dir`.
std::shared_ptr<rocksdb::EventListener> MakeBackgroundErrorListener(
    const std::string& dir, BackgroundErrorFunction on_error);

}  // namespace sstferry
