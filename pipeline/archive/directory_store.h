// A directory as a store, on a local disk or on NFS.
//
// An object is a file below the directory, under its key. Its bytes are written
// to a file without a name (or below .sstferry/ where the file system has no
// such files), synced, and linked to the name. So a name never has a part of an
// object, and of two clients that put one key if it is absent one wins. Files
// and directories get the owner of this process and the permissions of the
// directory.
//
// Whoever may write in the directory can change everything in it, but leads
// nobody elsewhere: every name is looked up below an open directory, and no
// link is followed.
#pragma once

#include <memory>

#include "pipeline/archive/store.h"
#include "sstferry/store_options.h"

namespace sstferry {

// kRefused: there is no such directory, or it cannot be opened.
[[nodiscard]] rocksdb::Status OpenDirectoryStore(
    const StoreOptions& options, std::unique_ptr<ObjectStore>* store);

}  // namespace sstferry
