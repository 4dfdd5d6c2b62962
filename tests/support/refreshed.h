// Refreshes for end-to-end tests.
#pragma once

#include <string>

#include "sstferry/target.h"
#include "tests/support/test_db.h"

namespace sstferry::test {

// Refreshes target_dir; sets options.mode, source and target_dir.
Ferried Refresh(const std::string& source_dir, const std::string& target_dir,
                PullOptions options = {});
// Refreshes a database that is open in this process, with these families.
Ferried RefreshOpen(const std::string& source_dir, OpenDb* target,
                    const std::vector<std::string>& families = {"default"},
                    PullOptions options = {});

// Raises the last sequence number of a closed source by a million, as writes of
// its application do, but changes no entry: a target to which this test writes
// is then not newer than its source.
void PassWrites(const std::string& source_dir);

// Returns the number of tables with range deletions that a refresh ingested
// above the data. Opens the database read-only.
uint64_t IngestedRangeDeletions(const std::string& dir,
                                const Families& families);

}  // namespace sstferry::test
