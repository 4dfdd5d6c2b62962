#include "pipeline/archive/open_store.h"

#include "pipeline/archive/directory_store.h"
#include "pipeline/archive/s3_store.h"

namespace sstferry {

rocksdb::Status OpenStore(const StoreOptions& options,
                          std::unique_ptr<ObjectStore>* store) {
  return options.where.is_directory() ? OpenDirectoryStore(options, store)
                                      : MakeS3Store(options, {}, store);
}

}  // namespace sstferry
