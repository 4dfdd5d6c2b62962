#include "pipeline/options/options_text.h"

#include "format/options_line.h"

namespace sstferry {
namespace {

// Parses a section title such as [DBOptions] or [CFOptions "name"]. Sets *kind
// to the kind of section, and *family to the name of the family.
bool ParseTitle(const std::string& line, std::string* kind,
                std::string* family) {
  if (line.size() < 3 || line.front() != '[' || line.back() != ']') {
    return false;
  }
  const std::string title = line.substr(1, line.size() - 2);
  const size_t open = title.find('"');
  *kind = TrimOptionText(title.substr(0, open));
  if (open != std::string::npos && title.size() > open + 1 &&
      title.back() == '"') {
    *family =
        UnescapeOptionText(title.substr(open + 1, title.size() - open - 2));
  }
  return true;
}

}  // namespace

OptionsText::OptionsText(const std::string& text) {
  Section* section = nullptr;
  ForEachLine(text, [&](const std::string& raw) {
    const std::string line = OptionLineText(raw);
    std::string title;
    std::string family;
    if (ParseTitle(line, &title, &family)) {
      section = title == "DBOptions"   ? &database_
                : title == "CFOptions" ? &families_[family]
                                       : nullptr;
      return;
    }
    std::string name;
    std::string value;
    if (section != nullptr && SplitOptionLine(line, &name, &value)) {
      section->emplace(name, UnescapeOptionText(value));
    }
  });
}

std::map<std::string, std::string> FamilySections(const std::string& text) {
  std::map<std::string, std::string> sections;
  std::string* section = nullptr;
  ForEachLine(text, [&](const std::string& line) {
    std::string title;
    std::string family;
    if (ParseTitle(OptionLineText(line), &title, &family)) {
      const bool is_family = title == "CFOptions" ||
                             title.rfind("TableOptions/", 0) == 0;
      section = is_family ? &sections[family] : nullptr;
    }
    if (section != nullptr) {
      section->append(line).push_back('\n');
    }
  });
  return sections;
}

std::string OptionsText::DatabaseOption(const std::string& key,
                                        const std::string& missing) const {
  const auto it = database_.find(key);
  return it == database_.end() ? missing : it->second;
}

std::string OptionsText::FamilyText(const std::string& family,
                                    const std::string& key) const {
  const auto section = families_.find(family);
  if (section == families_.end()) {
    return std::string();
  }
  const auto it = section->second.find(key);
  return it == section->second.end() ? std::string() : it->second;
}

std::string OptionsText::FamilyObject(const std::string& family,
                                      const std::string& key) const {
  const std::string value = FamilyText(family, key);
  if (value == "nullptr") {
    return std::string();
  }
  const size_t id = value.find("id=");
  if (value.empty() || value.front() != '{' || id == std::string::npos) {
    return value;
  }
  const size_t begin = id + 3;
  return value.substr(begin, value.find_first_of(";}", begin) - begin);
}

bool OptionsText::HasFamily(const std::string& family) const {
  return families_.count(family) != 0;
}

bool OptionsText::HasFilter(const std::string& family) const {
  return !FamilyObject(family, "compaction_filter").empty() ||
         !FamilyObject(family, "compaction_filter_factory").empty();
}

std::vector<std::string> OptionsText::FilteredFamilies() const {
  std::vector<std::string> filtered;
  for (const auto& [family, section] : families_) {
    if (HasFilter(family)) filtered.push_back(family);
  }
  return filtered;
}

}  // namespace sstferry
