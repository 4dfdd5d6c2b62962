#include "tests/support/test_db.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "format/digest.h"
#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/convenience.h"
#include "rocksdb/merge_operator.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/sample_database.h"

namespace sstferry::test {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;

std::set<std::string> NamesBeside(const std::string& path) {
  std::set<std::string> names;
  for (const auto& entry :
       fs::directory_iterator(fs::path(path).parent_path())) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

Ferried Run(const PullOptions& options) {
  Ferried result;
  result.status = MakePull(options)->Run(&result.summary);
  return result;
}

// A server on a free loopback port, during the object's lifetime.
class LoopbackServer {
 public:
  explicit LoopbackServer(const ServeOptions& options) {
    std::unique_ptr<Listener> listener;
    REQUIRE_OK(ListenTcp(HostPort{"127.0.0.1", 0}, &listener));
    REQUIRE_OK(MakeSourceServer(options, std::move(listener), &server_));
    REQUIRE_OK(ParseHostPort(server_->address(), &address_));
    thread_ = std::thread([this] { ended_ = server_->Run(); });
  }
  ~LoopbackServer() {
    server_->Stop();
    thread_.join();
    ended_.PermitUncheckedError();
  }
  const HostPort& address() const { return address_; }

 private:
  std::unique_ptr<SourceServer> server_;
  HostPort address_;
  Status ended_;
  std::thread thread_;
};

void RequireNoLeftovers(const Ferried& result, const std::string& target_dir,
                        std::set<std::string> before) {
  const fs::path target(target_dir);
  std::set<std::string> after = NamesBeside(target_dir);
  if (result.status.ok()) {
    before.insert(target.filename().string());
  } else {
    after.erase(target.filename().string() + ".sstferry");
  }
  before.erase(target.filename().string() + ".sstferry");
  INFO("left behind by " << result.message());
  REQUIRE(after == before);
}

}  // namespace

Families OneFamily(const rocksdb::ColumnFamilyOptions& options) {
  return {{rocksdb::kDefaultColumnFamilyName, options}};
}

rocksdb::ColumnFamilyOptions Quiet() {
  rocksdb::ColumnFamilyOptions options;
  options.disable_auto_compactions = true;
  options.level0_slowdown_writes_trigger = 1 << 20;
  options.level0_stop_writes_trigger = 1 << 20;
  return options;
}

rocksdb::ColumnFamilyOptions FamilyWith(const NamedTexts& named,
                                        rocksdb::ColumnFamilyOptions base) {
  for (const auto& [name, value] : named) {
    rocksdb::ColumnFamilyOptions next;
    if (rocksdb::GetColumnFamilyOptionsFromMap(
            rocksdb::ConfigOptions(), base, {{name, value}}, &next)
            .ok()) {
      base = next;
    }
  }
  return base;
}

rocksdb::DBOptions DatabaseWith(const NamedTexts& named) {
  rocksdb::DBOptions made;
  for (const auto& [name, value] : named) {
    rocksdb::DBOptions next;
    if (rocksdb::GetDBOptionsFromMap(rocksdb::ConfigOptions(), made,
                                     {{name, value}}, &next)
            .ok()) {
      made = next;
    }
  }
  return made;
}

std::shared_ptr<rocksdb::MergeOperator> MergeOperatorNamed(
    const std::string& text) {
  std::shared_ptr<rocksdb::MergeOperator> made;
  REQUIRE_OK(rocksdb::MergeOperator::CreateFromString(rocksdb::ConfigOptions(),
                                                      text, &made));
  return made;
}

OpenDb::OpenDb(const std::string& path, const Families& families,
               const rocksdb::DBOptions& options) {
  rocksdb::DBOptions opened = options;
  opened.create_if_missing = true;
  opened.create_missing_column_families = true;
  Families all = families;
  if (std::none_of(all.begin(), all.end(), [](const auto& family) {
        return family.name == rocksdb::kDefaultColumnFamilyName;
      })) {
    all.emplace_back();
  }
  REQUIRE_OK(
      rocksdb::DB::Open(opened, path, all, &listed_, IntoDb(&db_)));
  for (rocksdb::ColumnFamilyHandle* handle : listed_) {
    handles_[handle->GetName()] = handle;
  }
}

OpenDb::OpenDb(const rocksdb::Options& options, const std::string& path,
               Families families)
    : OpenDb(path, families.empty() ? OneFamily(options) : families,
             options) {}

OpenDb::~OpenDb() {
  for (const auto& [name, handle] : handles_) {
    db_->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  }
}

rocksdb::ColumnFamilyHandle* OpenDb::cf(const std::string& name) const {
  return handles_.at(name);
}

void OpenDb::Create(const rocksdb::ColumnFamilyDescriptor& family) {
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  REQUIRE_OK(db_->CreateColumnFamily(family.options, family.name, &handle));
  handles_[family.name] = handle;
}

void OpenDb::Drop(const std::string& name) {
  REQUIRE_OK(db_->DropColumnFamily(cf(name)));
  REQUIRE_OK(db_->DestroyColumnFamilyHandle(cf(name)));
  handles_.erase(name);
}

void OpenDb::Put(const std::string& key, const std::string& value,
                 const std::string& family) {
  const Status status = db_->Put({}, cf(family), key, value);
  if (!status.ok()) {
    FAIL(status.ToString());
  }
}

void OpenDb::Delete(const std::string& key, const std::string& family) {
  REQUIRE_OK(db_->Delete({}, cf(family), key));
}

void OpenDb::Merge(const std::string& key, const std::string& operand,
                   const std::string& family) {
  REQUIRE_OK(db_->Merge({}, cf(family), key, operand));
}

void OpenDb::DeleteRange(const std::string& begin, const std::string& end,
                         const std::string& family) {
  REQUIRE_OK(db_->DeleteRange({}, cf(family), begin, end));
}

void OpenDb::Flush() {
  for (const auto& [name, handle] : handles_) {
    REQUIRE_OK(db_->Flush({}, handle));
  }
}

void OpenDb::Compact(const std::string& family) {
  rocksdb::CompactRangeOptions options;
  options.bottommost_level_compaction =
      rocksdb::BottommostLevelCompaction::kForceOptimized;
  REQUIRE_OK(db_->CompactRange(options, cf(family), nullptr, nullptr));
}

std::string NumberedKey(uint64_t number) {
  char key[32];
  snprintf(key, sizeof(key), "k%08llu",
           static_cast<unsigned long long>(number));
  return key;
}

std::vector<std::string> PathsWith(const std::string& directory,
                                   const std::string& suffix) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().filename().string().ends_with(suffix)) {
      paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

uint64_t FileCount(const std::string& directory, const std::string& suffix) {
  return PathsWith(directory, suffix).size();
}

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
    text << path.string() << " " << info.st_ino;
    if (path.filename() ==
        // An application with the database open may write its LOG at any time.
        "LOG") {
      text << "\n";
      continue;
    }
    text << " " << info.st_size << " " << info.st_mtim.tv_sec << "."
         << info.st_mtim.tv_nsec;
    // A close of LOCK would release the lock that this process holds on it.
    if (S_ISREG(info.st_mode) && path.filename() != "LOCK") {
      std::ifstream file(path, std::ios::binary);
      std::ostringstream contents;
      contents << file.rdbuf();
      text << " " << ToHex(DigestOf(contents.str()));
    }
    text << "\n";
  }
  return text.str();
}

bool Ferried::notes_mention(const std::string& text) const {
  return std::any_of(summary.notes.begin(), summary.notes.end(),
                     [&text](const std::string& note) {
                       return note.find(text) != std::string::npos;
                     });
}

Ferried Ferry(const std::string& source_dir, const std::string& target_dir,
              PullOptions options, Via via) {
  return FerryByRule(source_dir, target_dir, AsChunks(options), via);
}

Ferried FerryByRule(const std::string& source_dir,
                    const std::string& target_dir, PullOptions options,
                    Via via) {
  options.snapshot_ttl = std::chrono::seconds(0);  // any snapshot is a leak
  options.target_dir = target_dir;
  const std::string before = Fingerprint(source_dir);
  const std::set<std::string> names = NamesBeside(target_dir);
  Ferried result;
  if (via == Via::kDirectory) {
    options.source = SourceAddress();
    options.source.directory = source_dir;
    result = Run(options);
  } else {
    ServeOptions serve;
    serve.snapshot_ttl = std::chrono::seconds(0);
    serve.registry = options.registry;
    serve.databases.push_back({"source", source_dir, nullptr, {}});
    const LoopbackServer server(serve);
    options.source = AddressAt(server.address(), "source");
    result = Run(options);
  }
  REQUIRE(Fingerprint(source_dir) == before);
  RequireNoLeftovers(result, target_dir, names);
  return result;
}

Ferried FerryOpen(const ServedDatabase& served, const std::string& target_dir,
                  PullOptions options) {
  options = AsChunks(options);
  options.target_dir = target_dir;
  const std::set<std::string> names = NamesBeside(target_dir);
  Ferried result;
  {
    ServeOptions serve;
    serve.snapshot_ttl = std::chrono::seconds(0);
    serve.databases.push_back(served);
    const LoopbackServer server(serve);
    options.source = AddressAt(server.address(), served.name);
    result = Run(options);
  }
  RequireNoLeftovers(result, target_dir, names);
  return result;
}

}  // namespace sstferry::test

// RocksDB leaks the compaction filters that it makes from OPTIONS.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:rocksdb::CompactionFilter::CreateFromString\n";
}
