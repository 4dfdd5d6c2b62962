// Options of serve that name the served databases and their readers.
#pragma once

#include "rocksdb/status.h"
#include "sstferry/source.h"
#include "tools/sstferry/arguments.h"
#include "tools/sstferry/command_arguments.h"

namespace sstferry {

// Reads --stdio, which serves a single database. Refuses options of a server
// that listens.
// REQUIRES: called before ReadDatabases().
[[nodiscard]] rocksdb::Status ReadStdio(const OptionTexts& texts,
                                        ServeArguments* out);
// Reads --db.
[[nodiscard]] rocksdb::Status ReadDatabases(const OptionTexts& texts,
                                            ServeOptions* out);
// Reads --allow; ReadWalDirs() reads --wal-dir. REQUIRES for both:
// ReadDatabases() returned OK.
[[nodiscard]] rocksdb::Status ReadAllowed(const OptionTexts& texts, bool tls,
                                          ServeOptions* out);
// Reads --allow-uid, for a server that listens on a Unix socket. Sets *uids to
// the accounts that may connect in addition to root and the server's own
// account.
[[nodiscard]] rocksdb::Status ReadAllowedUids(const OptionTexts& texts,
                                              bool is_unix,
                                              std::vector<uint32_t>* uids);
[[nodiscard]] rocksdb::Status ReadWalDirs(const OptionTexts& texts,
                                          ServeOptions* out);

}  // namespace sstferry
