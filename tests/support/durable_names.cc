#include "tests/support/durable_names.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <tuple>

#include "sstferry/descriptor.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;
constexpr DurableNames::Id kRoot = 1;

// Aborts on failure. REQUIRE is not possible: RocksDB's threads call this.
void MustBeZero(int result, const std::string& what) {
  if (result != 0) {
    std::perror(what.c_str());
    std::abort();
  }
}

ino_t InodeOf(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

}  // namespace

bool DurableNames::Place::operator<(const Place& other) const {
  return std::tie(dir, name) < std::tie(other.dir, other.name);
}

DurableNames::DurableNames(const std::string& root, const std::string& limbo)
    : root_(root), limbo_(limbo) {
  fs::remove_all(limbo_);
  fs::create_directory(limbo_);
  last_ = kRoot;
  things_[kRoot].is_dir = true;
  Scan(kRoot);
}

DurableNames::~DurableNames() {
  std::error_code error;
  fs::remove_all(limbo_, error);
}

void DurableNames::Scan(Id dir) {
  for (const auto& entry : fs::directory_iterator(DirPath(dir))) {
    const Id id = Register(entry.is_directory(), entry.path().string());
    Set({dir, entry.path().filename().string()}, id);
    if (entry.is_directory()) {
      Scan(id);
    }
  }
}

DurableNames::Id DurableNames::Register(bool is_dir, const std::string& path) {
  const Id id = ++last_;
  things_[id].is_dir = is_dir;
  if (!is_dir) {
    MustBeZero(link(path.c_str(), LimboPath(id).c_str()), "link " + path);
  }
  return id;
}

bool DurableNames::IsBelowRoot(const std::string& path) const {
  const std::string normal =
      fs::path(ShownPath(path)).lexically_normal().string();
  return normal.rfind(root_ + "/", 0) == 0;
}

bool DurableNames::Find(const std::string& path, Place* place) const {
  if (!IsBelowRoot(path)) {
    return false;
  }
  Id dir = kRoot;
  const fs::path below =
      fs::path(ShownPath(path)).lexically_normal().lexically_relative(root_);
  std::string name;
  for (const fs::path& part : below) {
    if (part.empty() || part == ".") {
      continue;  // a slash at the end
    }
    if (!name.empty()) {
      dir = At(Place{dir, name});
      if (!IsDir(dir)) {
        return false;
      }
    }
    name = part.string();
  }
  *place = {dir, name};
  return !name.empty();
}

DurableNames::Id DurableNames::At(const Place& place) const {
  const auto& children = things_.at(place.dir).children;
  const auto found = children.find(place.name);
  return found == children.end() ? 0 : found->second;
}

DurableNames::Id DurableNames::At(const std::string& path) const {
  Place place;
  if (Find(path, &place)) {
    return At(place);
  }
  const fs::path normal = fs::path(path + "/").lexically_normal();
  return normal == fs::path(root_ + "/") ? kRoot : 0;
}

bool DurableNames::IsDir(Id id) const {
  return id != 0 && things_.at(id).is_dir;
}

bool DurableNames::IsEmptyDir(Id id) const {
  return IsDir(id) && things_.at(id).children.empty();
}

std::string DurableNames::LimboPath(Id id) const {
  return limbo_ + "/" + std::to_string(id);
}

std::string DurableNames::DirPath(Id id) const {
  if (id == kRoot) {
    return root_;
  }
  const Place& place = things_.at(id).place;
  return place.dir == 0 ? LimboPath(id) : PathOf(place);
}

std::string DurableNames::PathOf(const Place& place) const {
  return DirPath(place.dir) + "/" + place.name;
}

void DurableNames::Set(const Place& place, Id id) {
  auto& children = things_.at(place.dir).children;
  const Id gone = At(place);
  if (gone != 0 && things_[gone].place == place) {
    things_[gone].place = {};
  }
  if (id == 0) {
    children.erase(place.name);
    return;
  }
  children[place.name] = id;
  if (things_.at(id).is_dir) {
    things_.at(id).place = place;
  }
}

void DurableNames::Record(Operation operation) {
  for (const Change& change : operation.changes) {
    Set(change.place, change.after);
  }
  operations_.push_back(std::move(operation));
}

DurableNames::Id DurableNames::Created(const Place& place, bool is_dir) {
  const Id id = Register(is_dir, PathOf(place));
  Record({"create", {{place, 0, id}}, {place.dir}});
  return id;
}

void DurableNames::Linked(const Place& place, Id file) {
  Record({"link", {{place, 0, file}}, {place.dir}});
}

void DurableNames::Removed(const Place& place) {
  Record({"remove", {{place, At(place), 0}}, {place.dir}});
}

void DurableNames::Renamed(const Place& from, const Place& to) {
  const Id id = At(from);
  Record({"rename", {{from, id, 0}, {to, At(to), id}}, {to.dir}});
}

void DurableNames::Exchanged(const Place& a, const Place& b) {
  const Id at_a = At(a);
  const Id at_b = At(b);
  Record({"exchange", {{a, at_a, at_b}, {b, at_b, at_a}}, {a.dir, b.dir}});
}

void DurableNames::Synced(Id dir) {
  std::set<Place> kept;
  std::vector<Operation> left;
  for (auto it = operations_.rbegin(); it != operations_.rend(); ++it) {
    const bool durable =
        std::count(it->synced_by.begin(), it->synced_by.end(), dir) != 0 ||
        std::any_of(it->changes.begin(), it->changes.end(),
                    [&kept](const Change& change) {
                      return kept.count(change.place) != 0;
                    });
    if (!durable) {
      left.push_back(std::move(*it));
      continue;
    }
    for (const Change& change : it->changes) {
      kept.insert(change.place);
    }
  }
  std::reverse(left.begin(), left.end());
  operations_ = std::move(left);
}

std::vector<std::string> DurableNames::Undo(
    const std::function<bool()>& survives) {
  std::vector<std::string> undone;
  std::set<Place> kept;
  for (auto it = operations_.rbegin(); it != operations_.rend(); ++it) {
    const bool pinned = std::any_of(
        it->changes.begin(), it->changes.end(), [&kept](const Change& change) {
          return kept.count(change.place) != 0;
        });
    if (pinned || survives()) {
      for (const Change& change : it->changes) {
        kept.insert(change.place);
      }
    } else {
      undone.push_back(UndoOne(*it));
    }
  }
  operations_.clear();
  return undone;
}

std::string DurableNames::UndoOne(const Operation& operation) {
  std::string line = std::string("undo ") + operation.what;
  for (const Change& change : operation.changes) {
    line += " " + PathOf(change.place);
  }
  for (const Change& change : operation.changes) {
    Detach(change.place);
  }
  for (const Change& change : operation.changes) {
    Attach(change.place, change.before);
  }
  return line;
}

void DurableNames::Detach(const Place& place) {
  const Id id = At(place);
  const std::string path = PathOf(place);
  if (id == 0) {
    return;
  }
  MustBeZero(IsDir(id) ? rename(path.c_str(), LimboPath(id).c_str())
                       : unlink(path.c_str()),
             "detach " + path);
  Set(place, 0);
}

void DurableNames::Attach(const Place& place, Id id) {
  const std::string path = PathOf(place);
  if (id == 0) {
    return;
  }
  MustBeZero(IsDir(id) ? rename(LimboPath(id).c_str(), path.c_str())
                       : link(LimboPath(id).c_str(), path.c_str()),
             "attach " + path);
  Set(place, id);
}

std::vector<DurableNames::Id> DurableNames::files() const {
  std::vector<Id> found;
  for (const auto& [id, thing] : things_) {
    if (!thing.is_dir) {
      found.push_back(id);
    }
  }
  return found;
}

std::vector<std::string> DurableNames::Differences() const {
  std::vector<std::string> found;
  Compare(kRoot, &found);
  return found;
}

void DurableNames::Compare(Id dir, std::vector<std::string>* found) const {
  const std::string path = DirPath(dir);
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    names.insert(entry.path().filename().string());
  }
  for (const std::string& name : names) {
    if (At(Place{dir, name}) == 0) {
      found->push_back("unknown: " + path + "/" + name);
    }
  }
  for (const auto& [name, id] : things_.at(dir).children) {
    const std::string full = path + "/" + name;
    if (names.count(name) == 0) {
      found->push_back("gone: " + full);
    } else if (!IsDir(id) && InodeOf(full) != InodeOf(LimboPath(id))) {
      found->push_back("another: " + full);
    } else if (IsDir(id) != fs::is_directory(full)) {
      found->push_back("of another kind: " + full);
    } else if (IsDir(id)) {
      Compare(id, found);
    }
  }
}

}  // namespace sstferry
