// Suggestions for a mistyped word.
#pragma once

#include <string>
#include <vector>

namespace sstferry {

// The words of `known` that need the fewest edits (a character inserted, left
// out, changed, or swapped with its neighbour) to become `word`, at most a
// third of its length; without any, those that begin with it; at most three.
std::vector<std::string> Nearest(const std::string& word,
                                 const std::vector<std::string>& known);

// "; did you mean --lanes or --cf?" with `prefix` "--"; empty: no idea.
std::string DidYouMean(const std::string& word,
                       const std::vector<std::string>& known,
                       const std::string& prefix = "");

}  // namespace sstferry
