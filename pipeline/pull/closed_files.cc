#include "pipeline/pull/closed_files.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <system_error>

#include "format/end_state.h"
#include "format/file_name.h"
#include "format/limits.h"
#include "format/rocksdb/log_follower.h"
#include "format/rocksdb/manifest_reader.h"
#include "format/rocksdb/wal_facts.h"
#include "pipeline/base/file_source.h"
#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/comparator.h"
#include "rocksdb/iterator.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

constexpr char kManifestPrefix[] = "MANIFEST-";

Status Refused(const std::string& dir, const std::string& what) {
  return MakeStatus(EndState::kRefused,
                    "target " + dir + " " + what +
                        "; the process that owns the database can refresh it "
                        "with the library");
}

Status Lost(const std::string& dir, const std::string& name) {
  return MakeStatus(EndState::kCorrupt,
                    dir + "/" + name +
                        " is missing, although the MANIFEST lists it");
}

bool IsThere(rocksdb::FileSystem* file_system, const std::string& dir,
             const std::string& name) {
  return file_system->FileExists(dir + "/" + name, rocksdb::IOOptions(),
                                 nullptr)
      .ok();
}

// Returns the number in a WAL's file name; 0 for any other name.
uint64_t WalNumber(const std::string& name) {
  const size_t dot = name.find('.');
  return dot != std::string::npos && dot != 0 && name.substr(dot) == ".log" &&
                 name.find_first_not_of("0123456789") == dot
             ? strtoull(name.c_str(), nullptr, 10)
             : 0;
}

}  // namespace

namespace {

// Reads the MANIFEST's name from CURRENT. Accepts only the name of a MANIFEST
// in this directory, because a hostile owner of the directory could make this
// process read another file.
Status ReadCurrent(rocksdb::FileSystem* file_system, const std::string& dir,
                   std::string* manifest) {
  const std::string path = dir + "/CURRENT";
  std::error_code error;
  const std::filesystem::file_status there =
      std::filesystem::symlink_status(path, error);
  const bool is_wrong = std::filesystem::exists(there) &&
                        !std::filesystem::is_regular_file(there);
  const Status status =
      ReadForeignFile(file_system, path, kMaxIdentityBytes, manifest,
                      is_wrong ? EndState::kCorrupt : EndState::kRefused);
  if (EndStateOf(status) == EndState::kRefused) {
    return MakeStatus(EndState::kRefused,
                      "target " + dir + ": expected a database, found none (" +
                          MessageOf(status) + ")");
  }
  RETURN_IF_ERROR(status);
  while (!manifest->empty() && manifest->back() == '\n') {
    manifest->pop_back();
  }
  const size_t prefix = sizeof(kManifestPrefix) - 1;
  return manifest->starts_with(kManifestPrefix) && manifest->size() > prefix &&
                 manifest->find_first_not_of("0123456789", prefix) ==
                     std::string::npos
             ? Status::OK()
             : MakeStatus(EndState::kCorrupt,
                          path + ": expected the name of a MANIFEST, found "
                                 "something else");
}

}  // namespace

Status ReadManifest(rocksdb::FileSystem* file_system, const std::string& dir,
                    ManifestReader* reader, ManifestFileFound* found,
                    EndState when_unreadable) {
  std::string current;
  RETURN_IF_ERROR(ReadCurrent(file_system, dir, &current));
  const std::string path = dir + "/" + current;
  std::error_code error;
  const bool is_missing =
      std::filesystem::symlink_status(path, error).type() ==
      std::filesystem::file_type::not_found;
  std::unique_ptr<FileSource> source;
  Status status = FileSource::OpenForeign(
      file_system, path, &source,
      is_missing ? EndState::kCorrupt : when_unreadable);
  if (status.ok()) {
    status = reader->Follow(*source);
  }
  if (status.ok() && found != nullptr) {
    *found = {path, source->size(), reader->end()};
  }
  return WithContext(status, EndStateOf(status), "MANIFEST " + path);
}

bool ReadWalFacts(rocksdb::FileSystem* file_system, const std::string& dir,
                  uint64_t oldest, WalFacts* facts) {
  std::vector<std::string> names;
  if (!file_system->GetChildren(dir, rocksdb::IOOptions(), &names, nullptr)
           .ok()) {
    return false;
  }
  std::map<uint64_t, std::string> wals;
  for (const std::string& name : names) {
    const uint64_t number = WalNumber(name);
    if (number != 0 && number >= oldest) {
      wals[number] = name;
    }
  }
  for (const auto& [number, name] : wals) {
    std::unique_ptr<FileSource> source;
    LogFollower log(LogKind::kWal, number);
    if (!FileSource::OpenForeign(file_system, dir + "/" + name, &source)
             .ok() ||
        !log.Follow(*source,
                    [&, wal = number](const Slice& record, uint64_t) {
                      return facts->Add(wal, record);
                    })
             .ok()) {
      return false;
    }
  }
  return true;
}

namespace {

bool HoldsUnflushed(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family) {
  uint64_t entries = 0;
  return !db->GetIntProperty(
             family, rocksdb::DB::Properties::kNumEntriesActiveMemTable,
             &entries) ||
         entries > 0;
}

// Checks that the family's tables are in `dir`. If all tables are missing, they
// are lost, or they are in another directory (cf_paths), which the MANIFEST
// does not record.
Status CheckTablesAreHere(rocksdb::FileSystem* file_system,
                          const std::string& dir,
                          const ManifestFamily& family) {
  std::string lost;
  size_t found = 0;
  for (const auto& [number, file] : family.files) {
    const std::string name = NumberedName(number, ".sst");
    if (file.path_id != 0) {
      return Refused(dir, "has files in other directories (" + name +
                              "; db_paths or cf_paths)");
    }
    // Old databases name their tables .ldb.
    const bool here = IsThere(file_system, dir, name) ||
                      IsThere(file_system, dir, NumberedName(number, ".ldb"));
    found += here ? 1 : 0;
    lost = here || !lost.empty() ? lost : name;
  }
  return lost.empty() ? Status::OK()
         : found > 0  ? Lost(dir, lost)
                      : Refused(dir, "lacks " + lost +
                                         " and every other table of column "
                                         "family '" + family.name +
                                         "': they are in another directory "
                                         "(cf_paths), or lost");
}

}  // namespace

Status CheckFilesAreHere(rocksdb::FileSystem* file_system,
                         const std::string& dir) {
  ManifestReader reader;
  RETURN_IF_ERROR(ReadManifest(file_system, dir, &reader, nullptr));
  for (const auto& [id, family] : reader.state().families) {
    RETURN_IF_ERROR(CheckTablesAreHere(file_system, dir, family));
    for (const auto& [number, file] : family.blobs) {
      const std::string name = NumberedName(number, ".blob");
      if (!IsThere(file_system, dir, name)) {
        return Lost(dir, name);
      }
    }
  }
  return Status::OK();
}

Status IsEmptyWal(rocksdb::FileSystem* file_system, const std::string& path,
                  uint64_t number, bool* is_empty) {
  std::unique_ptr<FileSource> source;
  Status status = FileSource::OpenForeign(file_system, path, &source);
  bool any = false;
  LogFollower log(LogKind::kWal, number);
  if (status.ok()) {
    status = log.Follow(*source, [&any](const Slice&, uint64_t) {
      any = true;
      return Status::OK();
    });
  }
  *is_empty = !any && !log.stopped_inside();
  return status;
}

Status ReadNeededWals(rocksdb::FileSystem* file_system, const std::string& dir,
                      const rocksdb::DBOptions& options, WalFacts* facts,
                      bool* known) {
  ManifestReader manifest;
  const Status status = ReadManifest(file_system, dir, &manifest, nullptr);
  *known =
      status.ok() &&
      ReadWalFacts(file_system, options.wal_dir.empty() ? dir : options.wal_dir,
                   OldestNeededWal(manifest.state(), options.allow_2pc), facts);
  std::string wrong;
  if (facts->counts_batches()) {
    wrong = "were written by a TransactionDB with WRITE_PREPARED or "
            "WRITE_UNPREPARED, which plain RocksDB replays with wrong sequence "
            "numbers, so later writes would be lost";
  } else if (facts->prepares_entities() && !kReplaysPreparedEntities) {
    wrong = "prepare transactions with wide-column entities, which RocksDB " +
            RocksDbVersion() + " replays as plain values";
  }
  return wrong.empty()
             ? status
             : MakeStatus(EndState::kRefused,
                          "its WALs " + wrong +
                              "; only a swap can refresh this database until "
                              "its application flushes all column families "
                              "while no transaction is open");
}

Status FindUnflushed(rocksdb::FileSystem* file_system, rocksdb::DB* db,
                     std::vector<FamilyHandle>* families,
                     bool* single_deletes) {
  WalFacts facts;
  bool known = false;
  const Status status = ReadNeededWals(file_system, db->GetName(),
                                       db->GetDBOptions(), &facts, &known);
  *single_deletes = facts.has_single_deletes();
  for (FamilyHandle& family : *families) {
    family.is_unflushed = HoldsUnflushed(db, family.handle);
  }
  return status;
}

}  // namespace sstferry
