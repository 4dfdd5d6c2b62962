// A source and a target that change between refreshes: by writes, restored
// copies, clones, and other databases in the same directory.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "tests/support/played_history.h"

namespace sstferry::test {

struct Deed {
  enum class Kind {
    kPlay,      // takes `steps`
    kSave,      // copies the directory
    kRestore,   // restores that copy, or only its data or sstferry's files
    kExchange,  // exchanges the copy and the directory
    kOther,     // exchanges the directory and one of another origin
    kForget,    // removes sstferry's files of a target
    kFilter,    // a target's compactions remove empty values from now on
  };
  Kind kind = Kind::kPlay;
  uint32_t which = 0;
  std::vector<Step> steps;
};

void showValue(const Deed& deed, std::ostream& os);
rc::Gen<std::vector<Step>> SourceSteps();
rc::Gen<std::vector<Deed>> SourceDeeds();
rc::Gen<std::vector<Deed>> TargetDeeds();
void LeaveOutSingleDeletes(std::vector<Step>* steps);
void LeaveOutSingleDeletes(std::vector<Deed>* deeds);

// A database directory, the copies beside it, and the Player of the database.
class PlayedSite {
 public:
  PlayedSite(const std::string& dir, const std::vector<uint32_t>& kinds,
             const std::string& kept_dir);

  Player* player() { return &player_; }
  const Families& families() const { return player_.families(); }
  const std::string& database() const { return database_; }
  bool exists() const;
  // Does the deed. Without a database, only kPlay and kOther do anything.
  void Do(const Deed& deed);
  void Do(const std::vector<Deed>& deeds);
  // Returns unexpected names in the site's directory.
  std::vector<std::string> strangers() const;

 private:
  void Save();
  void Restore(uint32_t how);
  void ExchangeWith(const std::string& other);
  void Forget();
  void Filter(size_t family);

  const std::string dir_;
  const std::string database_;
  Player player_;
};

// Makes the database's OPTIONS name an unknown comparator for this family
// during the object's lifetime.
class HiddenFamily {
 public:
  HiddenFamily(const std::string& database, const std::string& family);
  ~HiddenFamily();
  HiddenFamily(const HiddenFamily&) = delete;
  HiddenFamily& operator=(const HiddenFamily&) = delete;

 private:
  std::string path_;
  std::string text_;
};

}  // namespace sstferry::test
