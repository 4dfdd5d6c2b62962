// Opens the store of an archive, a bucket or a directory.
#pragma once

#include <memory>

#include "pipeline/archive/store.h"
#include "sstferry/store_options.h"

namespace sstferry {

// Opens a store. Sends no request to a bucket. A directory must exist.
//   kRefused  an option cannot be used; no such directory
[[nodiscard]] rocksdb::Status OpenStore(const StoreOptions& options,
                                        std::unique_ptr<ObjectStore>* store);

}  // namespace sstferry
