// Chooses the method of a pull that asked for PullMethod::kAuto.
#pragma once

#include <string>

#include "sstferry/options.h"

namespace sstferry {

// One attempt of a pull.
struct MethodChoice {
  // kAuto: as chunks, unless a clone turns out to be better.
  PullMethod method = PullMethod::kAuto;
  std::string reason;  // for Summary::method_reason
  std::string note;    // for the operator; empty: none
  // Discards what an earlier attempt of the same pull left.
  bool starts_over = false;
};

// Returns true if a refresh in place was asked for, and a swap could be a
// clone.
bool SwapWouldClone(const PullOptions& options);

// Returns why such a pull cannot clone, by its options alone; empty if it can.
std::string WhyNoClone(const PullOptions& options);

// Returns the first attempt. An unfinished pull in the workspace decides.
MethodChoice FirstChoice(const PullOptions& options);

// Returns the attempt after chunks were refused with `refusal`. `cheaper`:
// they hold what the database holds, but a clone is cheaper.
MethodChoice CloneInstead(const rocksdb::Status& refusal, bool cheaper);

// Returns the attempt after a clone was refused, too, where chunks do
// nevertheless, or `leaves_out` only a part.
MethodChoice ChunksNevertheless(const rocksdb::Status& no_clone,
                                bool leaves_out);

// Returns `refusal` with the reason why no clone was made instead.
rocksdb::Status WithoutClone(const rocksdb::Status& refusal,
                             const std::string& why);

}  // namespace sstferry
