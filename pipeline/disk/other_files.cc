#include "pipeline/disk/other_files.h"

#include <filesystem>
#include <memory>
#include <set>
#include <system_error>

#include "format/digest.h"
#include "format/end_state.h"
#include "format/other_file.h"
#include "format/sealed_file.h"
#include "pipeline/base/last_transfer.h"
#include "pipeline/disk/access.h"
#include "pipeline/disk/durable.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;
using rocksdb::Status;

Status AtFile(const std::string& what, const IOStatus& status) {
  return WithContext(status, EndState::kInternal, what);
}

// Lists the files of a directory that belong to the application and not to the
// database.
Status ListApplicationFiles(const std::string& dir,
                            std::vector<std::string>* names) {
  names->clear();
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (IsDatabaseFileName(name)) {
      continue;
    }
    std::error_code unknown;
    const fs::file_type type = it->symlink_status(unknown).type();
    if (type == fs::file_type::regular) {
      names->push_back(name);
    }
    if (type == fs::file_type::none) {
      error = unknown;  // it is unknown whether this is a file
      break;
    }
  }
  return error ? MakeStatus(EndState::kInternal,
                            "list " + dir + ": " + error.message())
               : Status::OK();
}

// Returns true if the source's file replaces the file `here`. Otherwise `here`
// stays. Sets *both_changed if both files have changed since a pull last copied
// this name, or if no pull has copied it. If `here` is too large or cannot be
// read, treats it as changed.
bool TakesSource(const CopiedFile& source, const CopiedFile* copied,
                 const std::string& here, bool* both_changed) {
  *both_changed = false;
  bool is_there = false;
  std::string bytes;
  const Status read =
      ReadRecord(here, kMaxOtherFileBytes + 1, &is_there, &bytes);
  const Digest128 found = DigestOf(bytes);
  if (read.ok() &&
      (!is_there || found == source.content ||
       (copied != nullptr && found == copied->content))) {
    return true;
  }
  *both_changed =
      copied == nullptr || !(copied->content == source.content);
  return false;
}

Status LinkHere(rocksdb::FileSystem* file_system, const std::string& from,
                const std::string& to) {
  return AtFile("link " + from,
                file_system->LinkFile(from, to, IOOptions(), nullptr));
}

// Links a file into the new database. A kernel may protect hard links. Then
// this process can link a file of another account only if it may write the
// file.
Status KeepHere(rocksdb::FileSystem* file_system, const std::string& old_dir,
                const std::string& name, const std::string& db_dir) {
  const Status status = LinkHere(file_system, old_dir + "/" + name,
                                 db_dir + "/" + name);
  return status.ok() || status.IsNoSpace()
             ? status
             : MakeStatus(EndState::kRefused,
                          "target " + old_dir + " holds " + name +
                              ", which is not part of the database and cannot "
                              "be linked into the new one: " +
                              MessageOf(status) +
                              "; run the command as the owner of that file, "
                              "or move it elsewhere");
}

// Gives a file that the source sent the owner and mode of the database.
Status SetCopiedAccess(rocksdb::FileSystem* file_system,
                       const std::string& db_dir, const std::string& name,
                       bool is_private) {
  Access access;
  bool changed = false;
  Status status = AccessBeside(db_dir, &access);
  access.mode &= is_private ? 0600 : 0666;
  if (status.ok()) {
    status = SetAccess(db_dir + "/" + name, access, &changed);
  }
  return status.ok() && changed
             ? SyncFile(file_system, db_dir + "/" + name)
             : status;
}

}  // namespace

Status WriteOtherFile(rocksdb::FileSystem* file_system, const std::string& dir,
                      const std::string& name, const Slice& contents) {
  const std::string path = dir + "/" + name;
  std::unique_ptr<rocksdb::FSWritableFile> file;
  IOStatus status = file_system->NewWritableFile(path, rocksdb::FileOptions(),
                                                 &file, nullptr);
  if (status.ok()) {
    status = file->Append(contents, IOOptions(), nullptr);
  }
  if (status.ok()) {
    status = file->Fsync(IOOptions(), nullptr);
  }
  if (file != nullptr) {
    const IOStatus closed = file->Close(IOOptions(), nullptr);
    status = status.ok() ? closed : status;
  }
  FaultPoint("OtherFiles:Written");
  return AtFile("write " + path, status);
}

Status WriteCopiedFiles(rocksdb::FileSystem* file_system,
                        const std::string& dir, const CopiedFiles& files) {
  std::string sealed;
  EncodeCopiedFiles(files, &sealed);
  return WriteDurably(file_system, dir + "/" + kOtherFilesName, sealed);
}

Status ReadCopiedFiles(const std::string& dir, CopiedFiles* files) {
  bool found = false;
  std::string text;
  RETURN_IF_ERROR(ReadRecord(dir + "/" + kOtherFilesName,
                             kSealedHeaderBytes + kMaxCopiedFilesBytes, &found,
                             &text));
  if (!DecodeCopiedFiles(text, files).ok()) {
    files->clear();
  }
  return Status::OK();
}

Status RemovePlacedFiles(rocksdb::FileSystem* file_system,
                         const std::string& db_dir) {
  std::vector<std::string> names;
  Status status = ListApplicationFiles(db_dir, &names);
  names.push_back(kOtherFilesName);
  for (const std::string& name : names) {
    std::error_code error;
    const std::string path = db_dir + "/" + name;
    if (status.ok() && fs::exists(fs::symlink_status(path, error))) {
      status = AtFile("remove " + path, file_system->DeleteFile(
                                            path, IOOptions(), nullptr));
    }
  }
  return status;
}

Status PlaceOtherFiles(rocksdb::FileSystem* file_system,
                       const std::string& from, const std::string& old_dir,
                       const std::string& db_dir,
                       std::vector<std::string>* kept) {
  kept->clear();
  CopiedFiles came;
  CopiedFiles copied;  // according to the record in old_dir
  std::vector<std::string> here;
  RETURN_IF_ERROR(ReadCopiedFiles(from, &came));
  Status status = RemovePlacedFiles(file_system, db_dir);
  if (status.ok() && !old_dir.empty()) {
    status = ReadCopiedFiles(old_dir, &copied);
  }
  if (status.ok() && !old_dir.empty()) {
    status = ListApplicationFiles(old_dir, &here);
  }
  CopiedFiles placed;
  std::set<std::string> stay;  // names whose file in old_dir is kept
  for (const std::string& name : here) {
    const auto earlier = copied.find(name);
    const CopiedFile* const known =
        earlier == copied.end() ? nullptr : &earlier->second;
    const auto source = came.find(name);
    bool both_changed = false;
    if (!status.ok() ||
        (source != came.end() &&
         TakesSource(source->second, known, old_dir + "/" + name,
                     &both_changed))) {
      continue;
    }
    status = KeepHere(file_system, old_dir, name, db_dir);
    stay.insert(name);
    if (both_changed) kept->push_back(name);
    if (known != nullptr) placed[name] = *known;
  }
  for (const auto& [name, file] : came) {
    if (!status.ok() || stay.count(name) != 0) {
      continue;
    }
    status = LinkHere(file_system, from + "/" + name, db_dir + "/" + name);
    if (status.ok()) {
      status = SetCopiedAccess(file_system, db_dir, name, file.is_private);
    }
    placed[name] = file;
  }
  if (status.ok() && !placed.empty()) {
    status = WriteCopiedFiles(file_system, db_dir, placed);
    if (status.ok()) {
      status = SetCopiedAccess(file_system, db_dir, kOtherFilesName, false);
    }
  }
  FaultPoint("OtherFiles:Placed");
  return status.ok() ? SyncDirectory(file_system, db_dir) : status;
}

}  // namespace sstferry
