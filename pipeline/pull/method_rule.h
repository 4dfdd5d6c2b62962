// Chooses the method of a pull. A whole database is sent as files. Entries are
// sent if the user asks for them, or if files cannot be sent.
// docs/methods.md has the rule as a table, row by row.
#pragma once

#include <optional>
#include <string>

#include "sstferry/options.h"

namespace sstferry {

// Facts on which the choice depends.
struct MethodInput {
  PullMethod asked = PullMethod::kAuto;
  // True if an application has TARGET_DIR open, and refreshes it itself.
  bool is_open = false;
  // True if this is a refresh, and TARGET_DIR has a database.
  bool refreshes = false;
  // Method of the unfinished pull that is resumed; nullopt: no such pull.
  std::optional<PullMethod> unfinished;
  // Method that made the replica in TARGET_DIR; nullopt: unknown, or no
  // replica.
  std::optional<PullMethod> replica;
  // Why kAuto does not choose a clone for this pull; empty if it may. Does not
  // matter if `asked` is a method.
  std::string no_clone;
};

// The chosen method, and why.
struct MethodDecision {
  PullMethod method = PullMethod::kClone;  // never kAuto
  std::string reason;  // a sentence, for Summary::method_reason
  // True if the source must first be asked whether its files can be cloned.
  bool asks_source = false;
  // True if the pull changes the database in TARGET_DIR in place.
  bool in_place = false;
};

// Returns the result of the first row of the table (docs/methods.md) whose
// condition is true.
MethodDecision DecideMethod(const MethodInput& input);

// Returns the input that follows from the options and TARGET_DIR alone.
MethodInput MethodInputOf(const PullOptions& options);

// Returns why the selection cannot be cloned; empty if it can.
std::string WhyNoClone(const Selection& selection);

}  // namespace sstferry
