// File systems through which this process opens an application's database.
#pragma once

#include <memory>
#include <string>

#include "rocksdb/file_system.h"

namespace sstferry {

// Returns a file system that refuses every write, creation, rename and
// deletion. RocksDB deletes old files even if it opens a database only for
// reading.
std::shared_ptr<rocksdb::FileSystem> MakeReadOnlyFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base);

// Returns a file system for the database in `dir`. It protects three kinds of
// files of the application:
//
// OPTIONS: Each time RocksDB opens a database, it writes a new OPTIONS file,
// with only the options that this process knows. This file system replaces the
// new file's text by `options_text`, the text of the database's newest OPTIONS
// file. It leaves out the sections of dropped column families. It takes the
// section of a created column family from the OPTIONS text *offered, or else
// from RocksDB's text.
//
// WALs: It does not write to an existing WAL.
//
// Tables: After a write, sync, rename or link has failed, it deletes nothing in
// `dir`. RocksDB deletes ingested tables if it cannot sync the MANIFEST,
// although the MANIFEST may list them. When the database is opened again,
// RocksDB removes unused files.
std::shared_ptr<rocksdb::FileSystem> MakeReplicaFileSystem(
    std::shared_ptr<rocksdb::FileSystem> base, const std::string& dir,
    const std::string& options_text,
    std::shared_ptr<const std::string> offered);

// Returns an OPTIONS text with the families of `written`. Takes a family's
// section from `kept` if `kept` has one, otherwise from `written`. Takes the
// rest from `kept`.
std::string MergeOptionsTexts(const std::string& kept,
                              const std::string& written);

}  // namespace sstferry
