// Suggestions for a mistyped word.
#pragma once

#include <string>
#include <vector>

namespace sstferry {

// Returns at most three words of `known` that need the fewest edits to become
// `word`. An edit inserts, omits or changes a character, or swaps two
// neighbours. Omits words that need more edits than a third of the length of
// `word`, but always allows one edit. If no word is left, returns words that
// begin with `word`.
std::vector<std::string> Nearest(const std::string& word,
                                 const std::vector<std::string>& known);

// Returns "; did you mean --lanes or --cf?" for `prefix` "--"; "" if there is
// no suggestion.
std::string DidYouMean(const std::string& word,
                       const std::vector<std::string>& known,
                       const std::string& prefix = "");

}  // namespace sstferry
