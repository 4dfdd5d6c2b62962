// Reads the options of serve that name the databases and the clients that may
// read them.
#pragma once

#include "rocksdb/status.h"
#include "sstferry/source.h"
#include "tools/sstferry/arguments.h"
#include "tools/sstferry/command_arguments.h"

namespace sstferry {

// Reads --stdio: the server then serves one directory over standard input and
// output. Refuses options of a server that listens, such as --allow.
// REQUIRES: ReadDatabases() has not been called yet.
[[nodiscard]] rocksdb::Status ReadStdio(const OptionTexts& texts,
                                        ServeArguments* out);
// Reads --db, the databases to serve.
[[nodiscard]] rocksdb::Status ReadDatabases(const OptionTexts& texts,
                                            ServeOptions* out);
// Reads --allow, the certificates that may read a database.
// REQUIRES: ReadDatabases() returned OK.
[[nodiscard]] rocksdb::Status ReadAllowed(const OptionTexts& texts, bool tls,
                                          ServeOptions* out);
// Reads --allow-uid of a server that listens on a Unix socket. Sets *uids to
// the accounts that may connect. Root and the server's own account may always
// connect.
[[nodiscard]] rocksdb::Status ReadAllowedUids(const OptionTexts& texts,
                                              bool is_unix,
                                              std::vector<uint32_t>* uids);
// Reads --wal-dir, the directories with the WALs of databases.
// REQUIRES: ReadDatabases() returned OK.
[[nodiscard]] rocksdb::Status ReadWalDirs(const OptionTexts& texts,
                                          ServeOptions* out);

}  // namespace sstferry
