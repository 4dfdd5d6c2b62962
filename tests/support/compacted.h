// Compacted databases, for end-to-end tests.
#pragma once

#include <string>

#include "rocksdb/table.h"
#include "tests/support/test_db.h"

namespace sstferry::test {

// Returns Quiet(), with files of about 64 KiB in the last level.
rocksdb::ColumnFamilyOptions SmallFiles();
rocksdb::ColumnFamilyOptions WithTable(
    const rocksdb::BlockBasedTableOptions& table,
    rocksdb::ColumnFamilyOptions options = SmallFiles());

// Writes NumberedKey(i) for i in [begin, end) with values of 200 bytes, then
// flushes and compacts them into the last level, at sequence 0.
void FillCompacted(OpenDb* db, uint64_t begin, uint64_t end,
                   const std::string& family = "default");

// Plans a pull from a source directory; returns the plan's summary.
Summary PlanOf(const std::string& source_dir, PullOptions options = {});

// Opens the target as an application would: verifies all checksums, compacts
// everything, reopens, and requires the source's entries after each step.
void RequireUsable(const std::string& source_dir,
                   const std::string& target_dir, const Families& families);

}  // namespace sstferry::test
