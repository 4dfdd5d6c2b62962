// Suggestions for a mistyped word.
#pragma once

#include <string>
#include <vector>

namespace sstferry {

// Returns the words of `known` that need the fewest edits (a character
// inserted, left out, changed, or swapped with its neighbour) to become `word`,
// at most a third of its length. If no word is, returns the words that begin
// with `word`. At most three.
std::vector<std::string> Nearest(const std::string& word,
                                 const std::vector<std::string>& known);

// Returns "; did you mean --lanes or --cf?" for `prefix` "--"; empty: no
// suggestion.
std::string DidYouMean(const std::string& word,
                       const std::vector<std::string>& known,
                       const std::string& prefix = "");

}  // namespace sstferry
