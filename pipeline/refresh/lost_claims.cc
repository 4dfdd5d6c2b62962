#include "pipeline/refresh/lost_claims.h"

#include <algorithm>
#include <vector>

namespace sstferry {
namespace {

// Returns the interval records that are not doubted, encoded and sorted.
std::vector<std::string> Believed(const TargetMemory& memory) {
  std::vector<std::string> believed;
  for (const Cover& cover : memory.covers) {
    if (!cover.doubted) {
      Covers one{{cover}};
      one.covers.front().family = 0;
      std::string text = memory.families[cover.family].name;
      text.push_back('\0');
      one.EncodeTo(&text);
      believed.push_back(std::move(text));
    }
  }
  std::sort(believed.begin(), believed.end());
  return believed;
}

}  // namespace

std::string FindLost(const TargetMemory& told, const TargetMemory& now) {
  const std::vector<std::string> believed = Believed(now);
  for (const std::string& cover : Believed(told)) {
    if (!std::binary_search(believed.begin(), believed.end(), cover)) {
      return "column family '" + cover.substr(0, cover.find('\0')) +
             "' has other files";
    }
  }
  for (const TargetFamily& family : now.families) {
    const bool is_new = std::none_of(
        told.families.begin(), told.families.end(),
        [&family](const TargetFamily& t) { return t.name == family.name; });
    if (is_new) {
      return "column family '" + family.name + "' is new";
    }
  }
  return "";
}

}  // namespace sstferry
