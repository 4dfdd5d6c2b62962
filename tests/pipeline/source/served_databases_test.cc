// The databases below a directory that a server knows.
#include "pipeline/serve/served_databases.h"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::served_databases_test {
namespace {

namespace fs = std::filesystem;

// Makes what the server's scan takes for a database.
void MakeDirectory(const std::string& path) {
  fs::create_directories(path);
  std::ofstream(path + "/CURRENT") << "MANIFEST-000001\n";
}

TEST_CASE("A list of databases has all that were made before the request",
          "[serve][databases]") {
  const ScratchDir dir;
  // With so many directories, a scan takes long, and its result is cached for
  // some time.
  for (int i = 0; i < 1000; ++i) {
    MakeDirectory(dir / ("db" + std::to_string(i)));
  }
  ServeOptions options;
  options.tree.directory = dir.path();
  ServedDatabases databases(&options);
  for (int i = 0; i < 5; ++i) {
    const std::string name = "new" + std::to_string(i);
    MakeDirectory(dir / name);
    REQUIRE(databases.AfterNow()->Find(name) != nullptr);
    fs::remove_all(dir / name);
    REQUIRE(databases.AfterNow()->Find(name) == nullptr);
  }
}

DatabaseTree Search(const std::string& directory) {
  DatabaseTree tree;
  REQUIRE_OK(FindDatabases(directory, &tree));
  return tree;
}

// Searches as an account that may not read everything. Requires the names.
bool IsCompleteForOthers(const std::string& directory,
                         const std::vector<std::string>& names) {
  constexpr uid_t kNobody = 65534;
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && (setgid(kNobody) != 0 || setuid(kNobody) != 0)) {
      _exit(3);
    }
    DatabaseTree tree;
    const bool found =
        FindDatabases(directory, &tree).ok() && tree.names == names;
    _exit(!found ? 2 : tree.is_complete ? 1 : 0);
  }
  int result = -1;
  REQUIRE(waitpid(child, &result, 0) == child);
  REQUIRE(WIFEXITED(result));
  REQUIRE(WEXITSTATUS(result) < 2);
  return WEXITSTATUS(result) == 1;
}

TEST_CASE("A search says whether it may have overlooked a database",
          "[serve][databases]") {
  const ScratchDir dir;
  fs::permissions(dir.path(), fs::perms{0755});
  MakeDirectory(dir / "a");
  const std::vector<std::string> names = {"a"};
  REQUIRE(IsCompleteForOthers(dir.path(), names));
  SECTION("because it may not read a directory") {
    fs::create_directories(dir / "deep/b");
    fs::permissions(dir / "deep/b", fs::perms::none);
    REQUIRE_FALSE(IsCompleteForOthers(dir.path(), names));
    fs::permissions(dir / "deep/b", fs::perms{0755});
    fs::permissions(dir / "deep", fs::perms{0644});
    REQUIRE_FALSE(IsCompleteForOthers(dir.path(), names));
    fs::permissions(dir / "deep", fs::perms{0755});
  }
  SECTION("but not below a name that is not valid") {
    fs::create_directory(dir / "lost+found");
    fs::permissions(dir / "lost+found", fs::perms::none);
    REQUIRE(IsCompleteForOthers(dir.path(), names));
  }
  SECTION("but not because of directories and links without a database") {
    fs::create_directories(dir / "b/c");
    fs::create_directory_symlink(dir / "a", dir / "link");
    fs::create_directory(dir / "a.sstferry");
    const DatabaseTree tree = Search(dir.path());
    REQUIRE(tree.is_complete);
    REQUIRE(tree.names == names);
    REQUIRE(tree.others == std::set<std::string>{"b", "b/c", "link"});
  }
  SECTION("and finds one that has lost its CURRENT") {
    fs::create_directories(dir / "b");
    std::ofstream(dir / "b/MANIFEST-000005") << "bytes";
    REQUIRE(Search(dir.path()).names == names);  // it may be part of an archive
    std::ofstream(dir / "b/LOCK") << "";
    const DatabaseTree tree = Search(dir.path());
    REQUIRE(tree.is_complete);
    REQUIRE(tree.names == std::vector<std::string>{"a", "b"});
  }
}

TEST_CASE("Databases whose directory cannot be searched now stay, and the list "
          "says so",
          "[serve][databases]") {
  const ScratchDir dir;
  MakeDirectory(dir / "top/a");
  ServeOptions options;
  options.tree.directory = dir / "top";
  ServedDatabases databases(&options);
  REQUIRE(databases.AfterNow()->is_complete);
  fs::rename(dir / "top", dir / "aside");
  const std::shared_ptr<const ServedSet> set = databases.AfterNow();
  REQUIRE(set->Find("a") != nullptr);
  REQUIRE_FALSE(set->is_complete);
  fs::rename(dir / "aside", dir / "top");
  REQUIRE(databases.AfterNow()->is_complete);
}

}  // namespace
}  // namespace sstferry::served_databases_test
