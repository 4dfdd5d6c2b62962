// Refreshes for end-to-end tests.
#pragma once

#include <string>

#include "sstferry/target.h"
#include "tests/support/test_db.h"

namespace sstferry::test {

// options.mode, source and target_dir are set here.
Ferried Refresh(const std::string& source_dir, const std::string& target_dir,
                PullOptions options = {});
// Of a database that is open in this process, with these families.
Ferried RefreshOpen(const std::string& source_dir, OpenDb* target,
                    const std::vector<std::string>& families = {"default"},
                    PullOptions options = {});

// Returns the number of tables that a refresh has laid over the data and that
// hold range deletions. Opens the database to be read.
uint64_t IngestedRangeDeletions(const std::string& dir,
                                const Families& families);

}  // namespace sstferry::test
