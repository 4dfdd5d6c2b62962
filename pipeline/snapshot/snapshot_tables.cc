#include "pipeline/snapshot/snapshot_tables.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "format/end_state.h"
#include "format/file_name.h"
#include "pipeline/snapshot/posix_files.h"

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr char kTable[] = ".sst";
constexpr char kBlob[] = ".blob";
constexpr char kLevelDbTable[] = ".ldb";

// Returns the possible names of a file with this number. The first one is
// RocksDB's own name.
std::vector<std::string> NamesOf(uint64_t number, const char* suffix) {
  std::vector<std::string> names = {NumberedName(number, suffix)};
  if (std::string_view(suffix) == kTable) {
    names.push_back(NumberedName(number, kLevelDbTable));
  }
  return names;
}

}  // namespace

// Links one file. If the file does not exist, linked->exists() is false. After
// the link was made, the name must still belong to the same file; otherwise the
// link is removed. RocksDB may truncate a file after it has removed its name.
Status PinnedTables::LinkOne(const std::string& from, const std::string& to,
                             FileId* linked) {
  *linked = FileId();
  bool found = false;
  RETURN_IF_ERROR(LinkFile(from, to, &found));
  if (!found) {
    return Status::OK();
  }
  FileId made;
  FileId named;
  RETURN_IF_ERROR(FileIdOf(to, &made));
  RETURN_IF_ERROR(FileIdOf(from, &named));
  if (!named.IsSameFile(made)) {
    return RemoveFile(to);
  }
  *linked = made;
  return Status::OK();
}

Status PinnedTables::HoldOne(uint64_t number, const char* suffix,
                             Numbers* pinned, std::string* missing) {
  if (pinned->count(number) != 0) {
    return Status::OK();
  }
  const std::string name = NumberedName(number, suffix);
  const std::string to = pinned_ + "/" + name;
  for (const std::string& other : NamesOf(number, suffix)) {
    for (const std::string& directory : directories_) {
      FileId linked;
      RETURN_IF_ERROR(LinkOne(directory + "/" + other, to, &linked));
      if (linked.exists()) {
        pinned->emplace(number, linked);
        linked_++;
        return Status::OK();
      }
    }
  }
  if (missing->empty()) {
    *missing = directories_.front() + "/" + name;
  }
  return Status::OK();
}

Status PinnedTables::Hold(const ManifestState& state, std::string* missing) {
  missing->clear();
  for (const auto& [id, family] : state.families) {
    for (const auto& [number, file] : family.files) {
      if (file.path_id != 0) {
        return MakeStatus(
            EndState::kRefused,
            NumberedName(number, kTable) +
                " is outside the database directory (db_paths or cf_paths): "
                "sstferry refuses a source with files elsewhere");
      }
      RETURN_IF_ERROR(HoldOne(number, kTable, &tables_, missing));
    }
    for (const auto& [number, blob] : family.blobs) {
      RETURN_IF_ERROR(HoldOne(number, kBlob, &blobs_, missing));
    }
  }
  return Status::OK();
}

// Removes links if their names now belong to other files. A source may have
// 100,000 files, and meanwhile the MANIFEST must not change. To be fast, the
// function opens each directory only once, and compares with remembered file
// ids.
Status PinnedTables::DropOthersOf(const char* suffix, Numbers* pinned) {
  std::vector<Descriptor> parents;
  for (const std::string& directory : directories_) {
    parents.push_back(OpenDirectory(directory));
  }
  for (auto file = pinned->begin(); file != pinned->end();) {
    // A file that cannot be looked up at the moment will be linked again.
    const auto has_it = [&](const Descriptor& parent) {
      const std::vector<std::string> names = NamesOf(file->first, suffix);
      return parent.is_open() &&
             std::any_of(names.begin(), names.end(),
                         [&](const std::string& name) {
                           FileId named;
                           return FileIdOfNameIn(parent, name, &named).ok() &&
                                  named.IsSameFile(file->second);
                         });
    };
    const std::string name = NumberedName(file->first, suffix);
    if (std::any_of(parents.begin(), parents.end(), has_it)) {
      ++file;
      continue;
    }
    RETURN_IF_ERROR(RemoveFile(pinned_ + "/" + name));
    file = pinned->erase(file);
  }
  return Status::OK();
}

Status PinnedTables::DropOthers() {
  RETURN_IF_ERROR(DropOthersOf(kTable, &tables_));
  return DropOthersOf(kBlob, &blobs_);
}

Status PinnedTables::Move(const std::string& name, uint64_t bytes,
                        const std::string& directory,
                        const std::string& manifest) const {
  const std::string from = pinned_ + "/" + name;
  // RocksDB completes a file before it adds the file to the MANIFEST, so the
  // size must already be right.
  FileId found;
  RETURN_IF_ERROR(FileIdOf(from, &found));
  if (found.bytes != bytes) {
    return MakeStatus(EndState::kCorrupt,
                      directories_.front() + "/" + name + ": expected " +
                          std::to_string(bytes) + " bytes as " + manifest +
                          " says, found " + std::to_string(found.bytes));
  }
  return rename(from.c_str(), (directory + "/" + name).c_str()) == 0
             ? Status::OK()
             : ErrnoStatus(EndState::kSourceError, "cannot move", from, errno);
}

Status PinnedTables::MoveTo(const std::string& directory,
                          const ManifestState& state,
                          const std::string& manifest) const {
  for (const auto& [id, family] : state.families) {
    for (const auto& [number, file] : family.files) {
      RETURN_IF_ERROR(Move(NumberedName(number, kTable), file.bytes, directory,
                           manifest));
    }
    for (const auto& [number, blob] : family.blobs) {
      RETURN_IF_ERROR(Move(NumberedName(number, kBlob), blob.file_bytes(),
                           directory, manifest));
    }
  }
  return Status::OK();
}

}  // namespace sstferry
