// Chooses how a swap that is no clone makes its new directory: from links to
// the old one's files and the changes, or from scratch.
#pragma once

#include <string>

#include "sstferry/options.h"

namespace sstferry {

struct SwapWay {
  bool links = false;
  // Why it does not link, for the operator; empty: linking was not expected.
  std::string why_not;
};

// Returns the way of an attempt by `method`. An unfinished pull in the
// workspace decides. Links are given up later if the old database or the source
// turns out to be unsuitable (LinkedTarget::gives_way()).
SwapWay ChooseSwapWay(const PullOptions& options, PullMethod method);

}  // namespace sstferry
