// Suggestions for a mistyped word.
#pragma once

#include <string>
#include <vector>

namespace sstferry {

// Returns up to three words of `known` that need the fewest edits (a character
// inserted, omitted, changed, or swapped with its neighbour) to become `word`,
// but no more edits than a third of its length. If there is no such word,
// returns words that begin with `word`.
std::vector<std::string> Nearest(const std::string& word,
                                 const std::vector<std::string>& known);

// Returns "; did you mean --lanes or --cf?" for `prefix` "--"; "" if there is
// no suggestion.
std::string DidYouMean(const std::string& word,
                       const std::vector<std::string>& known,
                       const std::string& prefix = "");

}  // namespace sstferry
