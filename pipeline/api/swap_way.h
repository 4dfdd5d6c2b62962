// Chooses how a swap that does not clone builds its new directory: from links
// to the old database's files plus the changes, or from scratch.
#pragma once

#include <string>

#include "sstferry/options.h"

namespace sstferry {

struct SwapWay {
  bool links = false;
  // Why the swap does not link files, for the operator; empty: linking was not
  // expected.
  std::string why_not;
};

// Returns the way for an attempt by `method`. If the workspace has an
// unfinished pull, returns that pull's way. The swap gives up linking later if
// the old database or the source turns out to be unsuitable
// (LinkedTarget::gives_way()).
SwapWay ChooseSwapWay(const PullOptions& options, PullMethod method);

}  // namespace sstferry
