#include "format/nearest.h"

#include <algorithm>
#include <iterator>

namespace sstferry {
namespace {

constexpr size_t kMaxSuggestions = 3;
// Maximum length of a compared word. No option is longer, and comparing longer
// words would only cost time.
constexpr size_t kMaxWordBytes = 64;
constexpr size_t kMinPrefixBytes = 2;

size_t Edits(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> edits(a.size() + 1,
                                         std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        edits[i][j] = i + j;
        continue;
      }
      const size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      edits[i][j] = std::min({edits[i - 1][j] + 1, edits[i][j - 1] + 1,
                              edits[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
      }
    }
  }
  return edits[a.size()][b.size()];
}

}  // namespace

std::vector<std::string> Nearest(const std::string& word,
                                 const std::vector<std::string>& known) {
  std::vector<std::string> nearest;
  if (word.size() > kMaxWordBytes) {
    return nearest;
  }
  size_t least = std::max<size_t>(1, word.size() / 3);
  for (const std::string& candidate : known) {
    const size_t edits = Edits(word, candidate);
    if (edits < least) {
      nearest.clear();
      least = edits;
    }
    if (edits == least && edits < candidate.size()) {
      nearest.push_back(candidate);
    }
  }
  if (nearest.empty() && word.size() >= kMinPrefixBytes) {
    std::copy_if(known.begin(), known.end(), std::back_inserter(nearest),
                 [&](const std::string& k) { return k.starts_with(word); });
  }
  if (nearest.size() > kMaxSuggestions) {
    nearest.resize(kMaxSuggestions);
  }
  return nearest;
}

std::string DidYouMean(const std::string& word,
                       const std::vector<std::string>& known,
                       const std::string& prefix) {
  const std::vector<std::string> nearest = Nearest(word, known);
  std::string text;
  for (size_t i = 0; i < nearest.size(); ++i) {
    text += (i == 0                    ? "; did you mean "
             : i + 1 == nearest.size() ? " or "
                                       : ", ") +
            prefix + nearest[i];
  }
  return text.empty() ? text : text + "?";
}

}  // namespace sstferry
