#include "tests/pipeline/source/snapshot_support.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "pipeline/base/rocksdb_compat.h"
#include "tests/support/catch.h"

extern char** environ;

namespace sstferry {
namespace {

namespace fs = std::filesystem;
constexpr char kPipeVariable[] = "SSTFERRY_TEST_PIPE";

}  // namespace

std::string Fingerprint(const std::string& directory) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::ostringstream text;
  for (const fs::path& path : paths) {
    struct stat info;
    REQUIRE(stat(path.c_str(), &info) == 0);
    text << path.string() << " " << info.st_ino << " " << info.st_size << " "
         << info.st_mtim.tv_sec << "." << info.st_mtim.tv_nsec << "\n";
    if (S_ISREG(info.st_mode)) {
      std::ifstream file(path, std::ios::binary);
      text << file.rdbuf() << "\n";
      text.clear();  // reading an empty file makes the stream fail
    }
  }
  return text.str();
}

std::vector<std::string> NamesIn(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> FilesWith(const std::string& directory,
                                   const std::string& suffix) {
  std::vector<std::string> found;
  for (const std::string& name : NamesIn(directory)) {
    if (name.size() >= suffix.size() &&
        name.compare(name.size() - suffix.size(), suffix.size(), suffix) ==
            0) {
      found.push_back(name);
    }
  }
  return found;
}

void FlipByte(const std::string& path, uint64_t offset, uint8_t bits) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  char byte = 0;
  REQUIRE(file.get(byte));
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(byte ^ bits));
  REQUIRE(file.good());
}

Entries ReadAll(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family) {
  rocksdb::ReadOptions options;
  options.total_order_seek = true;
  options.fill_cache = false;
  Entries entries;
  const std::unique_ptr<rocksdb::Iterator> it(
      db->NewIterator(options, family));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    entries.emplace_hint(entries.end(), it->key().ToString(),
                         it->value().ToString());
  }
  REQUIRE_OK(it->status());
  return entries;
}

Entries ReadAll(const Snapshot& snapshot, const std::string& family) {
  for (const SnapshotFamily& known : snapshot.families()) {
    if (known.name == family) {
      return ReadAll(snapshot.db(), known.handle);
    }
  }
  FAIL("no family " << family);
  return {};
}

ChildCase::ChildCase(const std::string& test_name,
                     const std::map<std::string, std::string>& environment) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  // The child inherits only the writing end.
  REQUIRE(fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0);
  pipe_ = ends[0];
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; variable++) {
    variables.emplace_back(*variable);
  }
  for (const auto& [name, value] : environment) {
    variables.push_back(name + "=" + value);
  }
  variables.push_back(std::string(kPipeVariable) + "=" +
                      std::to_string(ends[1]));
  std::vector<char*> child_environment;
  for (std::string& variable : variables) {
    child_environment.push_back(variable.data());
  }
  child_environment.push_back(nullptr);
  std::string program = "/proc/self/exe";
  std::string name = test_name;
  char* arguments[] = {program.data(), name.data(), nullptr};
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null",
                                   O_WRONLY, 0);
  const int error = posix_spawn(&pid_, program.c_str(), &quiet, nullptr,
                                arguments, child_environment.data());
  posix_spawn_file_actions_destroy(&quiet);
  close(ends[1]);
  REQUIRE(error == 0);
}

ChildCase::~ChildCase() {
  if (pid_ > 0) {
    Kill();
  }
  close(pipe_);
}

std::string ChildCase::Listen() {
  std::string line;
  char byte = 0;
  while (read(pipe_, &byte, 1) == 1 && byte != '\n') {
    line.push_back(byte);
  }
  return line;
}

void ChildCase::Kill() {
  kill(pid_, SIGKILL);
  Wait();
}

int ChildCase::Wait() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string FromParent(const std::string& name) {
  const char* value =
      getenv(kPipeVariable) == nullptr ? nullptr : getenv(name.c_str());
  if (value != nullptr) {
    // Ends the child if its parent is killed.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
  }
  return value == nullptr ? std::string() : std::string(value);
}

void TellParent(const std::string& line) {
  const std::string text = line + "\n";
  const ssize_t done = write(atoi(getenv(kPipeVariable)), text.data(),
                             text.size());
  REQUIRE(done == static_cast<ssize_t>(text.size()));
}

}  // namespace sstferry
