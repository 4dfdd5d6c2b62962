// Reads single settings from the text of an OPTIONS file. Does not use
// RocksDB's loader, because that replaces unknown names with defaults without
// an error.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace sstferry {

// The settings of an OPTIONS file, by section and key. Values are not changed.
// Lines that are not settings are skipped. If a section has a key twice, the
// first value is used, as RocksDB does.
class OptionsText {
 public:
  explicit OptionsText(const std::string& text);

  // Returns true if the text has all settings of the database. This is the case
  // if another section follows theirs. After a crash, an OPTIONS file may be
  // empty or truncated.
  bool HasDatabase() const { return !database_.empty() && !families_.empty(); }
  // Returns the value of a setting of the database. If it is not set, returns
  // `missing`.
  std::string DatabaseOption(const std::string& key,
                             const std::string& missing) const;
  // Returns the name of an object (comparator, merge operator) of a family. The
  // name is the complete value, or the id in the value. Returns "" if the
  // family or the object is not in the text.
  std::string FamilyObject(const std::string& family,
                           const std::string& key) const;
  // Returns the complete value of a family's setting. Returns "" if it is not
  // set.
  std::string FamilyText(const std::string& family,
                         const std::string& key) const;
  bool HasFamily(const std::string& family) const;
  // Returns true if the family has a compaction filter or a factory of such
  // filters.
  bool HasFilter(const std::string& family) const;
  // Returns the names of all families for which HasFilter() is true, sorted.
  std::vector<std::string> FilteredFamilies() const;

 private:
  using Section = std::map<std::string, std::string>;
  Section database_;
  std::map<std::string, Section> families_;
};

// Returns the text of each family's sections, by family name. A family has one
// section for its own options and one for those of its tables. The text is not
// changed.
std::map<std::string, std::string> FamilySections(const std::string& text);

}  // namespace sstferry
