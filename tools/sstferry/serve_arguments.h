// The databases that serve is told to serve, and to whom.
#pragma once

#include "rocksdb/status.h"
#include "sstferry/source.h"
#include "tools/sstferry/arguments.h"
#include "tools/sstferry/command_arguments.h"

namespace sstferry {

// --stdio: a database of its own, without anything that is for a server which
// listens. REQUIRES: before ReadDatabases().
[[nodiscard]] rocksdb::Status ReadStdio(const OptionTexts& texts,
                                        ServeArguments* out);
// --db.
[[nodiscard]] rocksdb::Status ReadDatabases(const OptionTexts& texts,
                                            ServeOptions* out);
// --allow and --wal-dir. REQUIRES: ReadDatabases() returned OK.
[[nodiscard]] rocksdb::Status ReadAllowed(const OptionTexts& texts, bool tls,
                                          ServeOptions* out);
// --allow-uid, for a server that listens at a Unix socket. Sets *uids to the
// accounts besides root and the server's own.
[[nodiscard]] rocksdb::Status ReadAllowedUids(const OptionTexts& texts,
                                              bool is_unix,
                                              std::vector<uint32_t>* uids);
[[nodiscard]] rocksdb::Status ReadWalDirs(const OptionTexts& texts,
                                          ServeOptions* out);

}  // namespace sstferry
