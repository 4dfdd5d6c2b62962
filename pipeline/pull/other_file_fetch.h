// Takes over the application's own files from a source's directory into the
// workspace (disk/other_files.h).
#pragma once

#include "pipeline/pull/pull_context.h"
#include "rocksdb/status.h"

namespace sstferry {

// Tells in notes which files come, or would, and which do not.
void NoteOtherFiles(const PullContext& context);

// Asks for each of the plan's files, and writes those that came with their
// record durably. A file that the source cannot read whole is named in a note.
// REQUIRES: there is a session, and the transfer is a seed's.
//   kCorrupt  the source sent other bytes than it told
[[nodiscard]] rocksdb::Status FetchOtherFiles(const PullContext& context);

}  // namespace sstferry
