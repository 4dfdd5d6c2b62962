// The OPTIONS file of a replica: the source's text with only the necessary
// changes, so that the application finds its own settings.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "format/release.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Returns the OPTIONS text without the source host's directories (wal_dir,
// db_log_dir, db_paths, cf_paths). If `families` is not empty, the text has
// only these families.
//
// If the application is known, replaces a format_version or kind of checksum
// that the application cannot read. Also records the application's release in
// the text: as the release that wrote the file, or in a comment if the
// application is older than that release. The text for an older application
// omits names and values that it does not know. Names that no known release has
// are kept, because an application can make RocksDB ignore unknown names in
// files of a later release.
std::string ReplicaOptionsText(const std::string& source_text,
                               const RocksDbRelease& application,
                               const std::vector<std::string>& families = {});

// Reads the newest OPTIONS file of the database in `dir`. Another process may
// replace the file meanwhile.
//   NotFound, PathNotFound  the file is missing, or was just replaced
//   Corruption              it is larger than kMaxOptionsTextBytes
[[nodiscard]] rocksdb::Status ReadNewestOptions(rocksdb::Env* env,
                                                const std::string& dir,
                                                std::string* text);

// Returns the release that the replica's newest OPTIONS file is for; unknown if
// no such file can be read. An application may have the database open. sstferry
// writes OPTIONS only for the application's release, so this is the release of
// the application that last opened, or will open, the database.
RocksDbRelease ReleaseOfReplica(
    std::shared_ptr<rocksdb::FileSystem> file_system, const std::string& dir);

}  // namespace sstferry
