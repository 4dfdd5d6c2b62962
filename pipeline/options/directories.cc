#include "pipeline/options/directories.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "format/coding.h"
#include "format/digest.h"
#include "format/end_state.h"
#include "format/limits.h"
#include "format/options_line.h"
#include "format/release.h"
#include "pipeline/base/open_file.h"
#include "pipeline/options/seen_options.h"
#include "rocksdb/db.h"
#include "sstferry/descriptor.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;

// Maximum number of digests for one directory. Database directories do not have
// more parents.
constexpr size_t kMaxPlacesEach = kMaxPlaces / 8;

// Returns an id that changes at each boot of the machine; empty if the system
// has no such id.
std::string BootId() {
  const std::string id = ReadProc("sys/kernel/random/boot_id");
  return id.substr(0, id.find('\n'));
}

// Returns `dir` without symbolic links. If `dir` does not exist, returns its
// nearest parent that exists.
std::string NearestThere(const std::string& dir, bool* is_there) {
  std::error_code error;
  fs::path path = fs::absolute(dir, error);
  *is_there = fs::exists(path, error);
  while (!fs::exists(path, error) && path.has_relative_path()) {
    path = path.parent_path();
  }
  return fs::canonical(path, error).string();
}

// Returns the digests of a directory and of all its parents, nearest first.
// Sets *is_there to true if the directory exists. If it does not exist, the
// first digest is that of its nearest existing parent.
std::vector<Digest128> ChainOf(const std::string& dir,
                               const std::string& machine, bool* is_there) {
  std::vector<Digest128> chain;
  fs::path path = NearestThere(dir, is_there);
  while (!path.empty() && chain.size() < kMaxPlacesEach) {
    struct stat info;
    if (stat(path.c_str(), &info) == 0) {
      std::string text = machine;
      PutFixed64(&text, info.st_dev);
      PutFixed64(&text, info.st_ino);
      chain.push_back(DigestOf(text));
    }
    path = path.has_relative_path() ? path.parent_path() : fs::path();
  }
  return chain;
}

std::vector<Place> PlacesOn(const std::string& machine,
                            const std::vector<std::string>& dirs) {
  std::vector<Place> places;
  for (const std::string& dir : dirs) {
    bool is_own = false;
    for (const Digest128& id : ChainOf(dir, machine, &is_own)) {
      if (places.size() < kMaxPlaces) {
        places.push_back({id, is_own});
      }
      is_own = false;
    }
  }
  return places;
}

Status CheckApartOn(const std::string& machine, const std::string& source,
                    const std::vector<Place>& source_places,
                    const std::string& target,
                    const std::vector<std::string>& target_dirs) {
  const auto is_source = [&source_places](const Digest128& id, bool only_own) {
    return std::any_of(source_places.begin(), source_places.end(),
                       [&](const Place& place) {
                         return place.id == id && (place.is_own || !only_own);
                       });
  };
  for (const std::string& dir : target_dirs) {
    bool is_there = false;
    const std::vector<Digest128> chain = ChainOf(dir, machine, &is_there);
    const bool lies_in_source =
        std::any_of(chain.begin(), chain.end(), [&](const Digest128& id) {
          return is_source(id, /*only_own=*/true);
        });
    const bool holds_source =
        is_there && !chain.empty() && is_source(chain.front(), false);
    if (lies_in_source || holds_source) {
      return MakeStatus(
          EndState::kRefused,
          "target " + target + ": expected a directory outside of the source " +
              source + ", found that " +
              (dir == target ? "it" : "its " + dir) +
              (lies_in_source ? " is, or is inside, a directory of the source"
                              : " contains a directory of the source") +
              " (with all links resolved); sstferry never writes into a "
              "source: choose another TARGET_DIR");
    }
  }
  return Status::OK();
}

Status UnknownWalDir(const std::string& dir, const std::string& why) {
  return MakeStatus(EndState::kRefused,
                    dir + ": cannot find out where its write-ahead log is: " +
                        why);
}

}  // namespace

Status FindNamedWalDir(const std::string& dir, std::string* wal_dir,
                       bool as_opened) {
  wal_dir->clear();
  std::error_code error;
  const std::string real = fs::canonical(dir, error).string();
  if (error == std::errc::no_such_file_or_directory ||
      error == std::errc::not_a_directory) {
    return Status::OK();
  }
  if (error) {
    return UnknownWalDir(dir, error.message());
  }
  SeenOptions options(real);
  const Status looked = options.Look();
  if (!looked.ok()) {
    return UnknownWalDir(dir, MessageOf(looked));
  }
  *wal_dir = options.database().DatabaseOption("wal_dir", "");
  // An old RocksDB also writes wal_dir if the WALs are in the database's own
  // directory. It uses the path that its application used. If the directory was
  // renamed, or if the application runs in a container, this path does not
  // exist here.
  const RocksDbRelease release = ReleaseOfOptions(options.TextFor({}));
  if (!wal_dir->empty() && release.is_known() &&
      release < kNamesOnlyOtherWalDirs && !fs::exists(*wal_dir, error) &&
      !error) {
    std::vector<std::string> names;
    RETURN_IF_ERROR(ListDirectory(real, &names));
    if (std::any_of(names.begin(), names.end(), [](const std::string& name) {
          return name.ends_with(".log");
        })) {
      wal_dir->clear();
    }
  }
  // Without a LOCK, no process has opened the database, so its WALs cannot be
  // in another directory. Incomplete OPTIONS then do not matter.
  return options.name().empty() || options.database().HasDatabase() ||
                 !(as_opened || fs::exists(real + "/LOCK", error))
             ? Status::OK()
             : UnknownWalDir(dir, "it has no complete OPTIONS file; its "
                                  "application writes one when it opens the "
                                  "database");
}

std::vector<std::string> DirectoriesOf(rocksdb::DB* db) {
  const rocksdb::DBOptions options = db->GetDBOptions();
  std::vector<std::string> dirs = {db->GetName()};
  if (!options.wal_dir.empty()) {
    dirs.push_back(options.wal_dir);
  }
  for (const rocksdb::DbPath& path : options.db_paths) {
    dirs.push_back(path.path);
  }
  return dirs;
}

Status DirectoriesOf(const std::string& dir, std::vector<std::string>* dirs) {
  *dirs = {dir};
  std::string wal_dir;
  RETURN_IF_ERROR(FindNamedWalDir(dir, &wal_dir));
  if (!wal_dir.empty()) {
    dirs->push_back(wal_dir);
  }
  return Status::OK();
}

bool IsSameDirectory(const std::string& a, const std::string& b) {
  std::error_code error;
  return fs::equivalent(a, b, error) && !error;
}

bool LiesIn(const std::string& inner, const std::string& outer) {
  std::error_code error;
  const std::string begin = fs::canonical(outer, error).string() + "/";
  return !error && fs::is_directory(inner, error) &&
         fs::canonical(inner, error).string().rfind(begin, 0) == 0;
}

std::vector<Place> PlacesOf(const std::vector<std::string>& dirs) {
  const std::string machine = BootId();
  return machine.empty() ? std::vector<Place>() : PlacesOn(machine, dirs);
}

Status CheckApart(const std::string& source,
                  const std::vector<Place>& source_places,
                  const std::string& target,
                  const std::vector<std::string>& target_dirs) {
  const std::string machine = BootId();
  return machine.empty() ? Status::OK()
                         : CheckApartOn(machine, source, source_places, target,
                                        target_dirs);
}

Status CheckApart(const std::vector<std::string>& source_dirs,
                  const std::string& snapshot_dir, const std::string& target,
                  const std::vector<std::string>& target_dirs) {
  std::vector<Place> places = PlacesOn("", source_dirs);
  if (!snapshot_dir.empty()) {
    for (const Place& place : PlacesOn("", {snapshot_dir})) {
      places.push_back({place.id, /*is_own=*/false});
    }
  }
  return CheckApartOn("", source_dirs.front(), places, target, target_dirs);
}

}  // namespace sstferry
