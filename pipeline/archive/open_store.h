// Opens the store of an archive, whatever it is.
#pragma once

#include <memory>

#include "pipeline/archive/store.h"
#include "sstferry/store_options.h"

namespace sstferry {

// A bucket is asked for nothing yet. A directory must be there.
//   kRefused  an option that cannot be used; no such directory
[[nodiscard]] rocksdb::Status OpenStore(const StoreOptions& options,
                                        std::unique_ptr<ObjectStore>* store);

}  // namespace sstferry
