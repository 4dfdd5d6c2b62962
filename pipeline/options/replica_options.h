// The OPTIONS file of a replica: the source's text, so that the application
// finds what it wrote itself, with only the necessary changes.
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
// db_log_dir, db_paths, cf_paths).
// If the application is known, a format_version or kind of checksum that it
// does not read is replaced by one that it reads, and the text has its release:
// as the release that wrote the file, or, if it is older, in a comment. The
// text for an older application omits names and values that are newer than it.
// Names that no known release has stay: RocksDB can be told to ignore them in
// files of a later release.
// If `families` is not empty, the text has only these families, as the replica
// does.
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

// Returns the release that a replica's newest OPTIONS file is for; unknown if
// no such file can be read. An application may have the database open. sstferry
// writes only OPTIONS of the application's release, so this is the release of
// the application that last opened the database.
RocksDbRelease ReleaseOfReplica(
    std::shared_ptr<rocksdb::FileSystem> file_system, const std::string& dir);

}  // namespace sstferry
