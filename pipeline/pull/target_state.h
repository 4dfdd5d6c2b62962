// Reads the state of a TARGET_DIR and its workspace for `sstferry status`.
// Changes nothing and takes no lock: a pull may work there at the same time.
#pragma once

#include <optional>
#include <string>

#include "sstferry/options.h"
#include "sstferry/status.h"

namespace sstferry {

// Sets *state. Sets *is_target if a pull made TARGET_DIR or its workspace.
//   kRefused   the workspace belongs to another user
//   kDenied    this account may not read the workspace
//   kInternal  a file could not be read
[[nodiscard]] rocksdb::Status ReadTargetState(const std::string& target_dir,
                                              TargetState* state,
                                              bool* is_target);

// Returns a warning if the database in `dir` has entries, but last sequence 0
// (pipeline/pull/first_sequence.h). Otherwise, or if there is no database,
// returns an empty string.
std::string NoteOfZero(const std::string& dir);

// Returns the mode (format/journal.h) of the unfinished pull of TARGET_DIR;
// empty if no pull is unfinished, or its journal cannot be read.
std::string UnfinishedMode(const std::string& target_dir);

}  // namespace sstferry
