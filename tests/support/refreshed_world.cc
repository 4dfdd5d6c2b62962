#include "tests/support/refreshed_world.h"

#include <algorithm>
#include <filesystem>
#include <ostream>

#include "tests/support/catch.h"
#include "tests/support/edited_options.h"
#include "tests/support/sample_database.h"

namespace sstferry::test {
namespace {

namespace fs = std::filesystem;

constexpr char kMemory[] = "last_transfer.json";

rc::Gen<Act> SourceActs() {
  return rc::gen::weightedElement<Act>(
      {{8, Act::kPut}, {4, Act::kDelete}, {4, Act::kPutOnce},
       {2, Act::kSingleDelete}, {2, Act::kDeleteRange}, {4, Act::kMerge},
       {3, Act::kFlush}, {2, Act::kCompact}, {1, Act::kIngest},
       {1, Act::kReopen}, {1, Act::kSnapshot}, {3, Act::kPutMany},
       {4, Act::kIngestKept}, {1, Act::kDrop}});
}

// Makes no kSingleDelete: a refresh may have replaced the keys that the target
// itself put once. kRemoveOnce deletes only keys that the source put once.
rc::Gen<Act> TargetActs() {
  return rc::gen::weightedElement<Act>(
      {{8, Act::kPut}, {4, Act::kDelete}, {2, Act::kDeleteRange},
       {3, Act::kMerge}, {4, Act::kFlush}, {4, Act::kCompact},
       {1, Act::kIngest}, {1, Act::kReopen}, {1, Act::kSnapshot},
       {2, Act::kPutMany}, {4, Act::kIngestKept}, {1, Act::kDrop},
       {2, Act::kDeleteFiles}, {4, Act::kRemoveOnce}});
}

// Returns mostly small counts, so that one deed does not hide the effect of
// another.
rc::Gen<size_t> FewGen(size_t most) {
  return rc::gen::weightedOneOf<size_t>(
      {{3, rc::gen::just<size_t>(1)},
       {3, rc::gen::resize(100, rc::gen::inRange<size_t>(0, 4))},
       {1, rc::gen::resize(100, rc::gen::inRange<size_t>(0, most + 1))}});
}

rc::Gen<std::vector<Step>> StepsGen(const rc::Gen<Act>& act, size_t most) {
  const auto step = StepGen(act);
  return rc::gen::mapcat(FewGen(most), [step](size_t count) {
    return rc::gen::container<std::vector<Step>>(
        count, rc::gen::resize(100, step));
  });
}

rc::Gen<std::vector<Deed>> DeedsGen(const rc::Gen<Deed::Kind>& kind,
                                    const rc::Gen<Act>& act) {
  const auto deed = rc::gen::build<Deed>(
      rc::gen::set(&Deed::kind, kind),
      rc::gen::set(&Deed::which, rc::gen::inRange<uint32_t>(0, 12)),
      rc::gen::set(&Deed::steps, StepsGen(act, 12)));
  return rc::gen::mapcat(FewGen(5), [deed](size_t count) {
    return rc::gen::container<std::vector<Deed>>(count, deed);
  });
}

void CopyDirectory(const std::string& from, const std::string& to) {
  fs::remove_all(to);
  fs::copy(from, to, fs::copy_options::recursive);
}

}  // namespace

void LeaveOutSingleDeletes(std::vector<Step>* steps) {
  std::erase_if(*steps, [](const Step& step) {
    return step.act == Act::kSingleDelete || step.act == Act::kRemoveOnce;
  });
}

void LeaveOutSingleDeletes(std::vector<Deed>* deeds) {
  for (Deed& deed : *deeds) {
    LeaveOutSingleDeletes(&deed.steps);
  }
}

void showValue(const Deed& deed, std::ostream& os) {
  static constexpr const char* kNames[] = {
      "play", "save", "restore", "exchange", "other", "forget", "filter"};
  os << "[" << kNames[static_cast<int>(deed.kind)];
  if (deed.kind == Deed::Kind::kRestore || deed.kind == Deed::Kind::kFilter ||
      deed.kind == Deed::Kind::kForget) {
    os << " " << deed.which;
  }
  if (deed.kind == Deed::Kind::kPlay) {
    for (const Step& step : deed.steps) {
      os << " ";
      showValue(step, os);
    }
  }
  os << "]";
}

rc::Gen<std::vector<Step>> SourceSteps() { return StepsGen(SourceActs(), 30); }

rc::Gen<std::vector<Deed>> SourceDeeds() {
  using Kind = Deed::Kind;
  return DeedsGen(rc::gen::weightedElement<Kind>({{12, Kind::kPlay},
                                                  {3, Kind::kSave},
                                                  {2, Kind::kRestore},
                                                  {3, Kind::kExchange},
                                                  {1, Kind::kOther}}),
                  SourceActs());
}

rc::Gen<std::vector<Deed>> TargetDeeds() {
  using Kind = Deed::Kind;
  return DeedsGen(rc::gen::weightedElement<Kind>({{10, Kind::kPlay},
                                                  {3, Kind::kSave},
                                                  {4, Kind::kRestore},
                                                  {1, Kind::kExchange},
                                                  {1, Kind::kForget},
                                                  {1, Kind::kFilter}}),
                  TargetActs());
}

PlayedSite::PlayedSite(const std::string& dir,
                       const std::vector<uint32_t>& kinds,
                       const std::string& kept_dir)
    : dir_(dir),
      database_(dir + "/database"),
      player_(database_, kinds, kept_dir) {
  fs::create_directories(dir);
}

bool PlayedSite::exists() const { return fs::exists(database_ + "/CURRENT"); }

void PlayedSite::Do(const std::vector<Deed>& deeds) {
  for (const Deed& deed : deeds) {
    Do(deed);
  }
}

void PlayedSite::Do(const Deed& deed) {
  switch (deed.kind) {
    case Deed::Kind::kPlay:
      player_.Play(deed.steps);
      break;
    case Deed::Kind::kSave:
      Save();
      break;
    case Deed::Kind::kRestore:
      Restore(deed.which);
      break;
    case Deed::Kind::kExchange:
      if (fs::exists(dir_ + "/copy")) {
        ExchangeWith(dir_ + "/copy");
      }
      break;
    case Deed::Kind::kOther:
      ExchangeWith(dir_ + "/other");
      player_.Play({});
      break;
    case Deed::Kind::kForget:
      Forget();
      break;
    case Deed::Kind::kFilter:
      Filter(deed.which % families().size());
      break;
  }
}

// Does nothing for a family with automatic compactions, which would run the
// filter at unpredictable times.
void PlayedSite::Filter(size_t family) {
  if (!families()[family].options.disable_auto_compactions) {
    return;
  }
  player_.RemovesEmptyValues(family);
  if (exists()) {
    player_.Play({});  // reopens it, so that OPTIONS name the filter
  }
}

void PlayedSite::Save() {
  if (exists()) {
    CopyDirectory(database_, dir_ + "/copy");
  }
}

// Restores the copy. `how` modulo 4: 0 restores everything except sstferry's
// record, 1 restores only that record, 2 and 3 restore everything.
void PlayedSite::Restore(uint32_t how) {
  const std::string copy = dir_ + "/copy";
  if (!fs::exists(copy) || !exists()) {
    return;
  }
  player_.ForgetOnce();
  if (how % 4 > 1) {
    CopyDirectory(copy, database_);
    return;
  }
  const std::string& data = how % 4 == 0 ? copy : database_;
  const std::string& memory = how % 4 == 0 ? database_ : copy;
  const std::string made = dir_ + "/made";
  CopyDirectory(data, made);
  fs::remove(made + "/" + kMemory);
  if (fs::exists(memory + "/" + kMemory)) {
    fs::copy_file(memory + "/" + kMemory, made + "/" + kMemory);
  }
  fs::remove_all(database_);
  fs::rename(made, database_);
}

void PlayedSite::ExchangeWith(const std::string& other) {
  player_.ForgetOnce();
  const std::string aside = dir_ + "/aside";
  if (fs::exists(database_)) {
    fs::rename(database_, aside);
  }
  if (fs::exists(other)) {
    fs::rename(other, database_);
  }
  if (fs::exists(aside)) {
    fs::rename(aside, other);
  }
}

void PlayedSite::Forget() { fs::remove(database_ + "/" + kMemory); }

std::vector<std::string> PlayedSite::strangers() const {
  std::vector<std::string> names = NamesOf(dir_);
  std::erase_if(names, [](const std::string& name) {
    return name == "database" || name == "copy" || name == "other";
  });
  return names;
}

HiddenFamily::HiddenFamily(const std::string& database,
                           const std::string& family)
    : path_(NewestOptions(database)), text_(BytesOf(path_)) {
  const size_t section = text_.find("[CFOptions \"" + family + "\"]");
  if (section == std::string::npos) {
    return;  // the family was dropped
  }
  const size_t line = text_.find("  comparator=", section);
  REQUIRE(line != std::string::npos);
  std::string changed = text_;
  changed.replace(line, text_.find('\n', line) - line,
                  "  comparator=app.Order");
  WriteBytes(path_, changed);
}

HiddenFamily::~HiddenFamily() { WriteBytes(path_, text_); }

}  // namespace sstferry::test
