// Uses a directory as a store, on a local disk or on NFS.
//
// An object is a file in the directory; the key is its path. The bytes are
// written to an unnamed file (or below .sstferry/ if the file system has no
// unnamed files), synced, and linked to the name. So a name never refers to an
// incomplete object. If two clients put the same key with if_absent, only one
// succeeds. Files and directories get the owner of this process and the
// permissions of the directory.
//
// An account that may write in the directory can change everything in it, but
// cannot redirect other processes to paths outside: every name is opened
// relative to an open directory, and symbolic links are not followed.
#pragma once

#include <memory>

#include "pipeline/archive/store.h"
#include "sstferry/store_options.h"

namespace sstferry {

// Opens the store. kRefused: there is no such directory, or it cannot be
// opened.
[[nodiscard]] rocksdb::Status OpenDirectoryStore(
    const StoreOptions& options, std::unique_ptr<ObjectStore>* store);

}  // namespace sstferry
