// What the names in a directory tree stand for, and which of them a power cut
// may take back.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace sstferry {

// A model of one real directory tree. The caller makes each change on disk
// and then tells it here; Undo() makes changes on disk itself.
//
// A change of names is durable once the directory that got the new name (or
// lost one) was synced; of an exchange, either of the two. Until then a power
// cut may undo it, alone or with others, in any order but one: what was done
// to a name before is never lost while something later done to it survives.
// A directory whose own name is lost is lost with all that is in it.
//
// Everything that has ever had a name is kept below `limbo`, so that it can
// get its name back: files as a second hard link, removed directories whole.
//
// Threads: one at a time.
class DurableNames {
 public:
  using Id = uint64_t;  // of a file or directory; 0: none
  struct Place {
    Id dir = 0;
    std::string name;
    bool operator<(const Place& other) const;
    bool operator==(const Place& other) const = default;
  };

  // Takes all that is below `root` for durable. Both are absolute; `limbo`
  // lies on the same file system and is made here.
  DurableNames(const std::string& root, const std::string& limbo);
  ~DurableNames();  // removes limbo

  // False when the path is not below the root, or its directory is unknown. A
  // path by a descriptor of a directory (PathOfOpen()) is that of the directory.
  bool Find(const std::string& path, Place* place) const;
  bool IsBelowRoot(const std::string& path) const;
  Id At(const Place& place) const;
  Id At(const std::string& path) const;  // of a directory the root, too
  bool IsDir(Id id) const;
  bool IsEmptyDir(Id id) const;
  // Of a file: a name that it always has.
  std::string LimboPath(Id id) const;

  // After the name was made; the new file's or directory's id.
  Id Created(const Place& place, bool is_dir);
  void Linked(const Place& place, Id file);
  // A directory that is removed, or replaced by a rename, must be moved to
  // LimboPath() instead.
  void Removed(const Place& place);
  void Renamed(const Place& from, const Place& to);
  void Exchanged(const Place& a, const Place& b);
  void Synced(Id dir);

  // Takes back changes that are not durable, newest first: those for which
  // `survives` is false, as far as later ones allow. Returns a line for each.
  std::vector<std::string> Undo(const std::function<bool()>& survives);
  // Where the disk differs: names, what they stand for, unknown files.
  std::vector<std::string> Differences() const;
  size_t unsynced() const { return operations_.size(); }
  // All files that have or had a name.
  std::vector<Id> files() const;
  std::string PathOf(const Place& place) const;
  const std::string& limbo() const { return limbo_; }

 private:
  struct Thing {
    bool is_dir = false;
    Place place;  // of a directory that has a name
    std::map<std::string, Id> children;
  };
  struct Change {
    Place place;
    Id before = 0;
    Id after = 0;
  };
  struct Operation {
    const char* what;
    std::vector<Change> changes;
    std::vector<Id> synced_by;
  };

  void Scan(Id dir);
  Id Register(bool is_dir, const std::string& path);
  std::string DirPath(Id id) const;
  void Set(const Place& place, Id id);
  void Record(Operation operation);
  std::string UndoOne(const Operation& operation);
  void Detach(const Place& place);
  void Attach(const Place& place, Id id);
  void Compare(Id dir, std::vector<std::string>* found) const;

  const std::string root_;
  const std::string limbo_;
  std::map<Id, Thing> things_;
  std::vector<Operation> operations_;  // not durable, oldest first
  Id last_ = 0;
};

}  // namespace sstferry
