// Reads the state of a TARGET_DIR and its workspace for `sstferry status`.
// Changes nothing and takes no lock: a pull may work there at the same time.
#pragma once

#include <optional>
#include <string>

#include "sstferry/options.h"
#include "sstferry/status.h"

namespace sstferry {

// Sets *state, and *is_target if a pull made TARGET_DIR or its workspace.
//   kRefused   the workspace belongs to another user
//   kDenied    this account may not look there
//   kInternal  a file could not be read
[[nodiscard]] rocksdb::Status ReadTargetState(const std::string& target_dir,
                                              TargetState* state,
                                              bool* is_target);

// Returns a warning if the database in `dir` stands at sequence 0 with entries
// (pipeline/pull/first_sequence.h); empty if it does not, or is no
// database.
std::string NoteOfZero(const std::string& dir);

// Returns the mode (format/journal.h) of the unfinished pull that makes a new
// database for TARGET_DIR; nullopt if there is none, or its journal cannot be
// read.
std::optional<std::string> UnfinishedMode(const std::string& target_dir);
// Returns the method of the unfinished pull that makes a new database for
// TARGET_DIR; nullopt if there is none, or its journal cannot be read.
std::optional<PullMethod> UnfinishedMethod(const std::string& target_dir);

}  // namespace sstferry
