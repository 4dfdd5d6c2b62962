// Reads single settings from the text of a RocksDB OPTIONS file. Does not use
// RocksDB's loader, which silently replaces unknown names with defaults.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace sstferry {

// Parsed OPTIONS: sections with their keys and unchanged values. Skips lines
// that are not settings. If a key occurs twice, the first value is used, as by
// RocksDB.
class OptionsText {
 public:
  explicit OptionsText(const std::string& text);

  // Returns true if the text has all settings of the database, that is, if
  // another section follows them. A crash can leave an OPTIONS file empty or
  // truncated.
  bool HasDatabase() const { return !database_.empty() && !families_.empty(); }
  // Returns the value of a database setting, or `missing` if it is not set.
  std::string DatabaseOption(const std::string& key,
                             const std::string& missing) const;
  // Returns the name of a family's object (comparator, merge operator): the
  // value itself, or the id in it. Returns "" if the family or the object does
  // not exist.
  std::string FamilyObject(const std::string& family,
                           const std::string& key) const;
  // Returns the complete value of a family's setting; "" if it does not exist.
  std::string FamilyText(const std::string& family,
                         const std::string& key) const;
  bool HasFamily(const std::string& family) const;
  // Returns true if the family has a compaction filter or a filter factory.
  bool HasFilter(const std::string& family) const;
  // Returns the names of all families for which HasFilter() is true, sorted.
  std::vector<std::string> FilteredFamilies() const;

 private:
  using Section = std::map<std::string, std::string>;
  Section database_;
  std::map<std::string, Section> families_;
};

// Returns the unchanged text of each family's sections (its own options and its
// table's options), by family name.
std::map<std::string, std::string> FamilySections(const std::string& text);

}  // namespace sstferry
