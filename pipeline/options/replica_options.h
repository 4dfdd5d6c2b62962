// The OPTIONS file that a replica gets: the source's text, so that the
// application finds what it wrote itself, changed only where it must be.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "format/release.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Returns the OPTIONS text without directories of the source's host (wal_dir,
// db_log_dir, db_paths, cf_paths) and, if the application is known, with no
// format_version and no kind of checksum that it does not read, and with its
// release: as that which wrote the file, or, if it is older, in a comment.
// The text for an older application lacks the names and values that came after
// it. Those that nobody here knows stay: RocksDB ignores them in files of a
// later release, if it is asked to. Of `families` alone, if there are any: the
// replica has no others.
std::string ReplicaOptionsText(const std::string& source_text,
                               const RocksDbRelease& application,
                               const std::vector<std::string>& families = {});

// Reads the newest OPTIONS file of the database in `dir`. Another process may
// replace it meanwhile.
//   NotFound, PathNotFound  there is none, or it has just been replaced
//   Corruption              it is larger than kMaxOptionsTextBytes
[[nodiscard]] rocksdb::Status ReadNewestOptions(rocksdb::Env* env,
                                                const std::string& dir,
                                                std::string* text);

// Returns the release that the newest OPTIONS file of a replica is for; not
// known where none can be read. An application may have the database open.
// sstferry leaves only OPTIONS of the application's release, so this is that of
// the application that opened the database last.
RocksDbRelease ReleaseOfReplica(
    std::shared_ptr<rocksdb::FileSystem> file_system, const std::string& dir);

}  // namespace sstferry
