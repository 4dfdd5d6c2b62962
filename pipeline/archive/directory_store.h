// Uses a directory as a store, on a local disk or on NFS.
//
// An object is a file in the directory, with its key as path. Its bytes are
// written to an unnamed file (or below .sstferry/ if the file system has no
// unnamed files), synced, and linked to the name. So a name never has a part of
// an object, and if two clients put one key that must be absent, one of them
// succeeds. Files and directories get the owner of this process and the
// permissions of the directory.
//
// An account that may write in the directory can change everything in it, but
// cannot redirect other processes: every name is looked up below an open
// directory, and no link is followed.
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
