// Restores of archives in directories.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "pipeline/api/operation_parts.h"
#include "pipeline/archive/log_index.h"
#include "pipeline/snapshot/snapshot_origin.h"
#include "sstferry/archive.h"
#include "sstferry/options.h"
#include "tests/support/test_db.h"

namespace sstferry::test {

// Makes an archive in a new directory.
void InitArchive(const std::string& archive);
// Pushes the database in source_dir; returns the name of the set.
std::string PushTo(const std::string& archive, const std::string& source_dir,
                   const std::string& label = "");
// Returns the first path that ArchiveLog::PathsOf() passes for a set.
LogPath FirstPathOf(const ArchiveLog& log, const SetLog& after);
// Pulls from the archive. Requires that this changes nothing in the archive.
Ferried RestoreFrom(const std::string& archive, const std::string& target_dir,
                    PullOptions options = {});

using MakeRestore =
    std::function<std::unique_ptr<Operation>(const PullOptions&, Dialer*)>;

// Restores from `origin`, through a source in this process, with the options
// `pull`. The source keeps its snapshots in `snapshot_dir`, if that is not
// empty.
Ferried RestoreThrough(std::shared_ptr<SnapshotOrigin> origin, PullOptions pull,
                       const std::string& snapshot_dir = "",
                       const MakeRestore& make = MakePullThrough);

// Pushes the database in source_dir into an archive of its own, restores it,
// and requires the tables, blob files and WALs that the clone in clone_dir has.
void RequireRestoredAs(const std::string& source_dir,
                       const std::string& clone_dir);

}  // namespace sstferry::test
