// File systems under a database that holds an application's data and that this
// process opens.
#pragma once

#include <memory>
#include <string>

#include "rocksdb/file_system.h"

namespace sstferry {

// Nothing is written, made, renamed or deleted through it. RocksDB removes some
// leftovers even where it opens a database to read it.
std::shared_ptr<rocksdb::FileSystem> MakeReadOnlyFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base);

// For the database in `dir`, whose newest OPTIONS file is `options_text`.
//
// Its OPTIONS stay word for word: RocksDB writes them anew whenever it opens a
// database, with only what this process knows. Sections of column families that
// were created or dropped come and go.
//
// A WAL that is there is not written to.
//
// And once a write, sync, rename or link has failed, nothing in `dir` is
// deleted any more: what RocksDB takes for never recorded, like the tables of
// an ingestion whose MANIFEST could not be synced, may be recorded. The next
// open removes what is of no use.
std::shared_ptr<rocksdb::FileSystem> MakeReplicaFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base, const std::string& dir,
    const std::string& options_text);

// `kept` with the families that `written` has: their sections are those of
// `kept`, or, where it has none, of `written`.
std::string MergeOptionsTexts(const std::string& kept,
                              const std::string& written);

}  // namespace sstferry
