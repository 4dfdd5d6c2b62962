// Takes over the application's own files from a source's directory into the
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

// Tells in notes which of the source's files come, or would, and which do not.
void NoteOtherFiles(OtherFiles asked, const std::vector<OtherFile>& files,
                    PullReporter* report);

// Asks the source for the bytes of a file behind the first `offset`.
using AskForFilePart = std::function<rocksdb::Status(
    const std::string& name, uint64_t offset, OtherFilePart* part)>;

// Asks for each of these files, and writes those that came with their record
// durably. A file that the source cannot read whole is named in a note.
//   kCorrupt  the source sent other bytes than it told
[[nodiscard]] rocksdb::Status FetchOtherFiles(
    OtherFiles asked, const std::vector<OtherFile>& files,
    const AskForFilePart& ask, rocksdb::FileSystem* disk, Workspace* workspace,
    PullReporter* report);

}  // namespace sstferry
