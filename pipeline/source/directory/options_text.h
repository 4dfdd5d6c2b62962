// Reads single settings out of the text of a RocksDB OPTIONS file, without
// believing that this process knows every name in it: RocksDB's own loader
// replaces what it does not know by a default, silently.
#pragma once

#include <map>
#include <string>

namespace sstferry {

// Section -> key -> value as written. Sections of families are found by
// FamilySection(). Lines that are no setting are skipped.
class OptionsText {
 public:
  explicit OptionsText(const std::string& text);

  // The value of a setting of the database, or `missing`.
  std::string DatabaseOption(const std::string& key,
                             const std::string& missing) const;
  // The name of an object (comparator, merge operator) of a family: the text
  // itself or its id; empty for none, or when the family is not there.
  std::string FamilyObject(const std::string& family,
                           const std::string& key) const;
  // The whole value of a setting of a family; empty when it is not there.
  std::string FamilyText(const std::string& family,
                         const std::string& key) const;
  bool HasFamily(const std::string& family) const;

 private:
  using Section = std::map<std::string, std::string>;
  Section database_;
  std::map<std::string, Section> families_;
};

// The text of each family's sections (its options, its table's) as written.
std::map<std::string, std::string> FamilySections(const std::string& text);

}  // namespace sstferry
