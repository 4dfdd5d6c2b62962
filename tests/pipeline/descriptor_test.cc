// The functions that open all files: they follow no link, do not leave their
// directory, and do not wait.
#include "sstferry/descriptor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>

#include "tests/support/catch.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::test {
namespace {

namespace fs = std::filesystem;

TEST_CASE("Opening a file follows no link, accepts no slash and does not wait",
          "[descriptor]") {
  const ScratchDir dir;
  fs::create_directory(dir / "below");
  std::ofstream(dir / "file") << "text";
  fs::create_symlink(dir / "file", dir / "link");
  fs::create_directory_symlink(dir / "below", dir / "way");
  REQUIRE(mkfifo((dir / "fifo").c_str(), 0600) == 0);
  const Descriptor top = OpenDirectory(dir.path());
  REQUIRE(top.is_open());

  REQUIRE(OpenIn(top.get(), "file", O_RDONLY).is_open());
  REQUIRE(OpenDirectoryIn(top.get(), "below").is_open());
  REQUIRE(OpenDirectoryIn(top.get(), ".").is_open());
  REQUIRE_FALSE(OpenIn(top.get(), "link", O_RDONLY).is_open());
  REQUIRE(errno == ELOOP);
  REQUIRE_FALSE(OpenPath(dir / "link", O_RDONLY).is_open());
  REQUIRE_FALSE(OpenDirectoryIn(top.get(), "way").is_open());
  REQUIRE(OpenLinked(dir / "link", O_RDONLY).is_open());
  for (const char* name : {"", "..", "below/..", "/etc", "./file"}) {
    INFO(name);
    REQUIRE_FALSE(OpenIn(top.get(), name, O_RDONLY).is_open());
    REQUIRE(errno == EINVAL);
  }
  // A FIFO without a writer or a reader.
  REQUIRE(OpenIn(top.get(), "fifo", O_RDONLY).is_open());
  REQUIRE_FALSE(OpenPath(dir / "fifo", O_WRONLY).is_open());
  REQUIRE(errno == ENXIO);

  const Descriptor made =
      OpenIn(top.get(), "made", O_WRONLY | O_CREAT | O_EXCL, 0600);
  REQUIRE(made.is_open());
  REQUIRE((fcntl(made.get(), F_GETFD) & FD_CLOEXEC) != 0);
  REQUIRE_FALSE(
      OpenIn(top.get(), "link", O_WRONLY | O_CREAT | O_EXCL, 0600).is_open());
}

TEST_CASE("The names of an open directory may be read twice", "[descriptor]") {
  const ScratchDir dir;
  std::ofstream(dir / "one") << "";
  const Descriptor top = OpenPath(dir.path(), O_RDONLY | O_DIRECTORY);
  for (int i = 0; i < 2; ++i) {
    const DirectoryStream names = NamesIn(top.get());
    REQUIRE(names != nullptr);
    std::set<std::string> found;
    while (const dirent* const entry = readdir(names.get())) {
      found.insert(entry->d_name);
    }
    REQUIRE(found == std::set<std::string>{".", "..", "one"});
  }
  REQUIRE(NamesIn(-1) == nullptr);
  REQUIRE(ReadProc("self/status").find("Umask:") != std::string::npos);
  REQUIRE(ReadProc("no/such/file").empty());
}

}  // namespace
}  // namespace sstferry::test
