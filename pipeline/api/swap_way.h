// Chooses how a swap that is no clone makes its new directory: of links to the
// old one's files and what changed, or from nothing.
#pragma once

#include <string>

#include "sstferry/options.h"

namespace sstferry {

struct SwapWay {
  bool links = false;
  // Why it does not, for the operator; empty: nobody expects it to.
  std::string why_not;
};

// Returns the way of an attempt by `method`. An unfinished pull in the workspace
// decides. A clone is linked where chunks were chosen and not asked for. Links are given up later where the old database or the
// source turns out not to be fit for them (LinkedTarget::gives_way()).
SwapWay ChooseSwapWay(const PullOptions& options, PullMethod method);

}  // namespace sstferry
