// Implements a store as a bucket of S3 or of a compatible server.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "pipeline/archive/credential_chain.h"
#include "pipeline/archive/store.h"
#include "sstferry/store_options.h"

namespace sstferry {

// Makes a store, and checks the options. Sends no request yet.
//   kRefused  an option cannot be used
[[nodiscard]] rocksdb::Status MakeS3Store(const StoreOptions& options,
                                          CredentialWorld world,
                                          std::unique_ptr<ObjectStore>* store);

}  // namespace sstferry
