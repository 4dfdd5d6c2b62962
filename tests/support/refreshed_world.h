// A source and a target that somebody plays with between refreshes: writes,
// copies that are put back, clones, other databases in the same place.
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
    kPlay,      // steps
    kSave,      // the directory is copied
    kRestore,   // that copy comes back; at a target, with or without its memory
    kExchange,  // the copy and the directory change places
    kOther,     // the same with a database of another origin
    kForget,    // a target loses its memory
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

// A database directory, its copies beside it, and who plays there.
class PlayedSite {
 public:
  PlayedSite(const std::string& dir, const std::vector<uint32_t>& kinds,
             const std::string& kept_dir);

  Player* player() { return &player_; }
  const Families& families() const { return player_.families(); }
  const std::string& database() const { return database_; }
  bool exists() const;
  // Everything but kPlay and kOther needs a database, and is nothing without.
  void Do(const Deed& deed);
  void Do(const std::vector<Deed>& deeds);
  // What the application's names are, and nothing else may be beside.
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

// Its OPTIONS name an order of this family that nobody knows, as long as this
// lives.
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
