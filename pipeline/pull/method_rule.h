// Chooses the method of a pull. A whole database is sent as files. Entries are
// sent if the user asks for them, or if files cannot be sent.
// docs/methods.md has the rule as a table, row by row.
#pragma once

#include <optional>
#include <string>

#include "sstferry/options.h"

namespace sstferry {

// Everything on which the choice depends.
struct MethodInput {
  PullMethod asked = PullMethod::kAuto;
  // An application has TARGET_DIR open, and refreshes it itself.
  bool is_open = false;
  // A refresh finds a database in TARGET_DIR.
  bool refreshes = false;
  // Method of the unfinished pull that is resumed.
  std::optional<PullMethod> unfinished;
  // Method that made the replica in TARGET_DIR.
  std::optional<PullMethod> replica;
  // The reason why this pull sends no files unless the user asks for them;
  // empty: no reason.
  std::string no_clone;
};

// The chosen method, and why.
struct MethodDecision {
  PullMethod method = PullMethod::kClone;  // never kAuto
  std::string reason;  // a sentence, for Summary::method_reason
  // The source must be asked first whether its files can be cloned.
  bool asks_source = false;
  // The database in TARGET_DIR is changed where it is.
  bool in_place = false;
};

// Returns the result of the first row of the table whose condition is true.
MethodDecision DecideMethod(const MethodInput& input);

// Returns the input that follows from the options and TARGET_DIR alone.
MethodInput MethodInputOf(const PullOptions& options);

// Returns why the selection cannot be cloned; empty if it can.
std::string WhyNoClone(const Selection& selection);

}  // namespace sstferry
