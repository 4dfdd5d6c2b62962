// Restores of archives in directories.
#pragma once

#include <memory>
#include <string>

#include "pipeline/snapshot/snapshot_origin.h"
#include "sstferry/archive.h"
#include "sstferry/options.h"
#include "tests/support/test_db.h"

namespace sstferry::test {

// Makes an archive in a directory that is not there yet.
void InitArchive(const std::string& archive);
// Pushes the database in source_dir; returns the name of the set.
std::string PushTo(const std::string& archive, const std::string& source_dir,
                   const std::string& label = "");
// Pulls from the archive. Requires that this changes nothing there.
Ferried RestoreFrom(const std::string& archive, const std::string& target_dir,
                    PullOptions options = {});

// Restores what `origin` gives, once, without another try.
Ferried RestoreThrough(std::shared_ptr<SnapshotOrigin> origin,
                       const std::string& target_dir);

// Pushes the database in source_dir into an archive of its own, restores it,
// and requires the tables, blob files and WALs that the clone in clone_dir has.
void RequireRestoredAs(const std::string& source_dir,
                       const std::string& clone_dir);

}  // namespace sstferry::test
