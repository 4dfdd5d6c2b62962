#include "pipeline/pull/present_files.h"

#include <sys/stat.h>

#include <memory>
#include <unordered_map>
#include <utility>

#include "format/end_state.h"
#include "pipeline/disk/durable.h"
#include "pipeline/pull/linked_copy.h"
#include "pipeline/snapshot/snapshot.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Takes a snapshot of the database. If that fails, no file is linked, and the
// source sends all of them.
Status TakeSnapshot(const PresentDatabase& database,
                    const std::string& private_parent,
                    std::unique_ptr<Snapshot>* snapshot) {
  SnapshotOptions options;
  options.database_dir = database.directory;
  options.snapshot_dir = private_parent;
  options.as_files = true;
  options.deadline = kOwnerPause;
  options.cancelled = database.cancelled;
  return database.looks || database.is_closed
             ? Snapshot::Look(options, snapshot)
             : Snapshot::Create(options, snapshot);
}

// Links the files of one database.
class Linker {
 public:
  Linker(const PresentDatabase& database, const CloneLayout& layout,
         const Snapshot& snapshot, rocksdb::FileSystem* file_system)
      : database_(database),
        layout_(layout),
        pinned_(database.looks || database.is_closed
                    ? database.directory
                    : snapshot.directory() + "/db"),
        file_system_(file_system) {
    for (const CloneFile& file : snapshot.files()->files) {
      if (!(file.identity == Digest128())) {
        known_[Key(file)] = &file;
      }
    }
  }

  // Links `file` if the database has the same file. Does nothing if the
  // database deletes its file meanwhile, or if the file must not be linked; the
  // source then sends `file`.
  [[nodiscard]] Status Link(const CloneFile& file, PresentFiles* present) {
    const auto found = known_.find(Key(file));
    if (!IsDataFile(file) || found == known_.end()) {
      return Status::OK();
    }
    const std::string name = CloneFileName(*found->second);
    struct stat pinned;
    if (lstat((pinned_ + "/" + name).c_str(), &pinned) != 0 ||
        !S_ISREG(pinned.st_mode) || found->second->kind != file.kind ||
        static_cast<uint64_t>(pinned.st_size) != file.bytes) {
      return Status::OK();
    }
    if (!HasAccess(pinned, database_.file_access)) {
      present->other_access++;
      return Status::OK();
    }
    if (database_.looks) {
      present->numbers.insert(file.number);
      return Status::OK();
    }
    const std::string link = layout_.LinkPathOf(file);
    const Status linked = file_system_->LinkFile(
        database_.directory + "/" + name, link, rocksdb::IOOptions(), nullptr);
    struct stat info;
    if (!linked.ok() && !linked.IsNoSpace() && database_.is_closed) {
      present->links_none = true;
      return MakeStatus(EndState::kRefused, "link " + database_.directory +
                                                "/" + name + ": " +
                                                MessageOf(linked));
    }
    if (!linked.ok() || lstat(link.c_str(), &info) != 0) {
      return Status::OK();
    }
    if (info.st_dev == pinned.st_dev && info.st_ino == pinned.st_ino) {
      present->numbers.insert(file.number);
      return Status::OK();
    }
    // The name in the database now belongs to another file, so remove the link.
    return RemoveTree(file_system_, link);
  }

 private:
  static std::string Key(const CloneFile& file) {
    return ToHex(file.identity);
  }

  const PresentDatabase& database_;
  const CloneLayout& layout_;
  const std::string pinned_;
  rocksdb::FileSystem* const file_system_;
  std::unordered_map<std::string, const CloneFile*> known_;  // by identity
};

}  // namespace

Status LinkPresentFiles(const PresentDatabase& database,
                        const CloneLayout& layout,
                        rocksdb::FileSystem* file_system,
                        PresentFiles* present) {
  *present = PresentFiles();
  std::unique_ptr<Snapshot> snapshot;
  RETURN_IF_ERROR(TakeSnapshot(database, layout.staging_dir(), &snapshot));
  PresentFiles found;
  Linker linker(database, layout, *snapshot, file_system);
  Status status;
  for (const CloneFile& file : layout.files()) {
    if (status.ok()) status = linker.Link(file, &found);
  }
  present->links_none = found.links_none;
  if (status.ok() && !database.looks) {
    status = SyncDirectory(file_system, layout.staging_dir());
  }
  if (status.ok()) {
    found.content = snapshot->files()->content;
    found.database_id = snapshot->database_id();
    *present = std::move(found);
  }
  return status;
}

}  // namespace sstferry
