// File systems for an application's database that this process opens.
#pragma once

#include <memory>
#include <string>

#include "rocksdb/file_system.h"

namespace sstferry {

// Returns a file system that fails every write, creation, rename and deletion.
// RocksDB deletes some leftovers even when it opens a database for reading.
std::shared_ptr<rocksdb::FileSystem> MakeReadOnlyFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base);

// Returns a file system for the database in `dir`, whose newest OPTIONS file is
// `options_text`.
//
// It keeps the text of OPTIONS: RocksDB rewrites the file whenever it opens a
// database, with only the options that this process knows. It removes the
// sections of dropped column families, and adds sections for created ones: from
// the OPTIONS text *offered, if that has them.
//
// It does not write to an existing WAL.
//
// After a write, sync, rename or link has failed, it deletes nothing in `dir`.
// RocksDB deletes the tables of an ingestion if it could not sync the MANIFEST,
// but the MANIFEST may list them. The next open removes unused files.
std::shared_ptr<rocksdb::FileSystem> MakeReplicaFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base, const std::string& dir,
    const std::string& options_text,
    std::shared_ptr<const std::string> offered);

// Returns `kept` with exactly the families of `written`. A family's section
// comes from `kept`, or from `written` if `kept` does not have it.
std::string MergeOptionsTexts(const std::string& kept,
                              const std::string& written);

}  // namespace sstferry
