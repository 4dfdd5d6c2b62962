// Implements a store as a directory on a local disk or on NFS.
//
// An object is a file, and its key is the path of the file in the directory. A
// put writes an unnamed file, syncs it, and then links it to its name. If the
// file system has no unnamed files, a put writes the file below .sstferry/
// first. So a name never refers to an incomplete object. If two clients put the
// same key with if_absent, only one succeeds. A new file gets the owner of this
// process, or the directory's owner if root puts it, and the permissions of the
// directory.
//
// A client keeps the directory open. A put fails with kMoved if the address
// leads elsewhere before it begins or after it has stored the object. All other
// calls use the open directory.
//
// An account with write permission for the directory can change everything in
// it. It cannot redirect other processes to paths outside of the directory:
// each name is opened relative to an open directory, and symbolic links are not
// followed.
#pragma once

#include <memory>

#include "pipeline/archive/store.h"
#include "sstferry/store_options.h"

namespace sstferry {

// Opens the store. kRefused: the directory does not exist or cannot be opened.
[[nodiscard]] rocksdb::Status OpenDirectoryStore(
    const StoreOptions& options, std::unique_ptr<ObjectStore>* store);

}  // namespace sstferry
