// What RocksDB tells of errors that no call of ours returns: of its background
// work, and those after which a database takes no more writes.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "rocksdb/listener.h"
#include "rocksdb/status.h"

namespace sstferry {

// Called once per error, from any thread, with a status that has an end state
// (kNoSpace, kCorrupt or kInternal) and names the work and `dir`. Must not call
// into the database.
using BackgroundErrorFunction = std::function<void(const rocksdb::Status&)>;

std::shared_ptr<rocksdb::EventListener> MakeBackgroundErrorListener(
    const std::string& dir, BackgroundErrorFunction on_error);

}  // namespace sstferry
