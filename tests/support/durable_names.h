// Tracks which file each name in a directory tree refers to, and which changes
// of names a power cut may undo.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace sstferry {

// A model of one real directory tree. The caller makes each change on disk and
// then reports it here; Undo() itself changes the disk.
//
// A change of names is durable after a sync of the directory that got or lost
// the name; after an exchange, a sync of either directory is enough. Before
// that, a power cut may undo the change, alone or with others, in any order
// with one exception: an earlier change of a name is never lost while a later
// change of that name survives. If the name of a directory is lost, everything
// in the directory is lost.
//
// Everything that has ever had a name is kept below `limbo`, so that it can get
// its name back: files as a second hard link, removed directories with their
// contents.
//
// Threads: one at a time.
class DurableNames {
 public:
  using Id = uint64_t;  // identifies a file or directory; 0: none
  struct Place {
    Id dir = 0;
    std::string name;
    bool operator<(const Place& other) const;
    bool operator==(const Place& other) const = default;
  };

  // Treats everything below `root` as durable. Both paths are absolute. Makes
  // `limbo`, which must be on the same file system.
  DurableNames(const std::string& root, const std::string& limbo);
  ~DurableNames();  // removes limbo

  // Finds the place of a path. Returns false if the path is not below the root,
  // or its directory is unknown. A path through a directory's descriptor
  // (PathOfOpen()) counts as the path of that directory.
  bool Find(const std::string& path, Place* place) const;
  bool IsBelowRoot(const std::string& path) const;
  Id At(const Place& place) const;
  Id At(const std::string& path) const;  // also for the root
  bool IsDir(Id id) const;
  bool IsEmptyDir(Id id) const;
  // Returns the path below `limbo` that a file has at all times.
  std::string LimboPath(Id id) const;

  // Called after the name was made. Returns the id of the new file or
  // directory.
  Id Created(const Place& place, bool is_dir);
  void Linked(const Place& place, Id file);
  // Called for a file. A directory that is removed, or replaced by a rename,
  // must be moved to LimboPath() instead.
  void Removed(const Place& place);
  void Renamed(const Place& from, const Place& to);
  void Exchanged(const Place& a, const Place& b);
  void Synced(Id dir);

  // Undoes changes that are not durable, newest first: each one for which
  // `survives` returns false, if later surviving changes allow it. Returns a
  // line for each undone change.
  std::vector<std::string> Undo(const std::function<bool()>& survives);
  // Returns how the disk differs: names, their files, unknown files.
  std::vector<std::string> Differences() const;
  size_t unsynced() const { return operations_.size(); }
  // Returns all files that have or had a name.
  std::vector<Id> files() const;
  std::string PathOf(const Place& place) const;
  const std::string& limbo() const { return limbo_; }

 private:
  struct Thing {
    bool is_dir = false;
    Place place;  // only of a directory that has a name
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
