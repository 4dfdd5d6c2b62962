// Copies the application's own files from a source's directory into the
// workspace (disk/other_files.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "format/messages.h"
#include "pipeline/disk/workspace.h"
#include "pipeline/pull/pull_reporter.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

namespace sstferry {

// Adds notes to the report. They list the application's own files at the source
// that are (or would be) transferred, and the files that are not.
void NoteOtherFiles(OtherFiles asked, const std::vector<OtherFile>& files,
                    PullReporter* report);

// Requests the bytes of a file after the first `offset` bytes from the source.
using AskForFilePart = std::function<rocksdb::Status(
    const std::string& name, uint64_t offset, OtherFilePart* part)>;

// Requests each of these files, and durably writes those that arrived, with a
// record of them. Adds a note about files that the source cannot read
// completely.
//   kCorrupt  the source sent other bytes than it had announced
[[nodiscard]] rocksdb::Status FetchOtherFiles(
    OtherFiles asked, const std::vector<OtherFile>& files,
    const AskForFilePart& ask, rocksdb::FileSystem* disk, Workspace* workspace,
    PullReporter* report);

}  // namespace sstferry
