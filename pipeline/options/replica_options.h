// Makes the OPTIONS file of a replica. It is the source's text with as few
// changes as possible, so that the application finds its own settings there.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "format/release.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Returns the source's OPTIONS text without the directories of the source's
// host (wal_dir, db_log_dir, db_paths, cf_paths). If `families` is not empty,
// the text has only these families.
//
// If the release of the application is known, the text is made for it:
// - A format_version or a kind of checksum that the application cannot read is
//   replaced.
// - The text records the application's release as the release that wrote the
//   file. If the application is older than the release that wrote the source's
//   file, a comment records it instead.
// - For such an older application, names and values that it does not know are
//   omitted. Names that are in no known release are kept, because RocksDB can
//   be told to ignore unknown names in files of a later release.
std::string ReplicaOptionsText(const std::string& source_text,
                               const RocksDbRelease& application,
                               const std::vector<std::string>& families = {});

// Reads the newest OPTIONS file of the database in `dir`. Another process may
// replace this file at any time.
//   NotFound, PathNotFound  the file is missing, or was just replaced
//   Corruption              it is larger than kMaxOptionsTextBytes
[[nodiscard]] rocksdb::Status ReadNewestOptions(rocksdb::Env* env,
                                                const std::string& dir,
                                                std::string* text);

// Returns the application's release for which the replica's newest OPTIONS file
// was made. It is the release of the application that last opened the database,
// or that will open it, because sstferry writes OPTIONS only for such an
// application. An application may have the database open. If no OPTIONS file
// can be read, the result is unknown.
RocksDbRelease ReleaseOfReplica(
    std::shared_ptr<rocksdb::FileSystem> file_system, const std::string& dir);

}  // namespace sstferry
