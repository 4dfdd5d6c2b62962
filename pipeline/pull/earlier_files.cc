#include "pipeline/pull/earlier_files.h"

#include <unordered_map>
#include <vector>

#include "format/end_state.h"
#include "pipeline/disk/durable.h"
#include "pipeline/pull/file_check.h"

namespace sstferry {
namespace {

using rocksdb::Status;

class Taker {
 public:
  Taker(const std::string& directory, const JournalState& journal,
        const CloneLayout& layout, rocksdb::FileSystem* file_system)
      : directory_(directory),
        journal_(journal),
        layout_(layout),
        file_system_(file_system) {}

  // Finds the files whose units are all recorded.
  void FindWhole() {
    const std::vector<Part>& units = journal_.plan.parts;
    const std::vector<CloneFile>& files = journal_.plan.clone->files;
    std::vector<bool> whole(files.size(), true);
    units_.resize(files.size());
    for (size_t id = 0; id < units.size(); ++id) {
      const std::vector<JournalChunk>& chunks = journal_.chunks[id];
      const bool recorded = chunks.size() == 1 && !chunks.front().unchecked &&
                            chunks.front().kind == PartKind::kUnit;
      if (recorded) {
        units_[units[id].file].push_back({units[id], chunks.front().content});
      } else {
        whole[units[id].file] = false;
      }
    }
    for (size_t i = 0; i < files.size(); ++i) {
      // The identity of a blob file depends on its modification time. The
      // unfinished pull has not set that time yet.
      if (whole[i] && files[i].kind == CloneFileKind::kTable &&
          !(files[i].identity == Digest128())) {
        by_identity_.emplace(ToHex(files[i].identity), i);
      }
    }
  }

  // Moves the complete file that has the same identity as `file`. Sets *took to
  // false if there is no such file, or if its bytes do not match the journal.
  Status Take(const CloneFile& file, bool* took) {
    *took = false;
    const auto found = by_identity_.find(ToHex(file.identity));
    if (found == by_identity_.end()) {
      return Status::OK();
    }
    const CloneFile& earlier = journal_.plan.clone->files[found->second];
    const std::string path = directory_ + "/" + CloneFileName(earlier);
    if (earlier.kind != file.kind || earlier.bytes != file.bytes ||
        !IsAsRecorded(path, units_[found->second])) {
      return Status::OK();
    }
    by_identity_.erase(found);
    *took = true;
    const Status status =
        file_system_->RenameFile(path, layout_.LinkPathOf(file),
                                 rocksdb::IOOptions(), nullptr);
    return WithContext(status, EndStateOf(status), "rename " + path);
  }

 private:
  struct Recorded {
    Part unit;
    Digest128 content;
  };

  bool IsAsRecorded(const std::string& path,
                    const std::vector<Recorded>& units) const {
    for (const Recorded& recorded : units) {
      Digest128 content;
      if (!DigestFromDisk(file_system_, path, recorded.unit.offset,
                          recorded.unit.bytes, &content)
               .ok() ||
          !(content == recorded.content)) {
        return false;
      }
    }
    return true;
  }

  const std::string& directory_;
  const JournalState& journal_;
  const CloneLayout& layout_;
  rocksdb::FileSystem* const file_system_;
  std::vector<std::vector<Recorded>> units_;             // by file
  std::unordered_map<std::string, size_t> by_identity_;  // complete files
};

}  // namespace

Status TakeEarlierFiles(const std::string& earlier_dir,
                        const JournalState& journal, const CloneLayout& layout,
                        rocksdb::FileSystem* file_system,
                        const std::function<bool()>& cancelled,
                        std::set<uint64_t>* numbers) {
  numbers->clear();
  Status status;
  std::set<std::string> taken;
  if (journal.plan.clone.has_value()) {
    Taker taker(earlier_dir, journal, layout, file_system);
    taker.FindWhole();
    for (const CloneFile& file : layout.files()) {
      if (status.ok() && cancelled()) {
        status = MakeStatus(EndState::kCancelled, "stopped on request");
      }
      bool took = false;
      if (status.ok() && !layout.IsReused(file)) {
        status = taker.Take(file, &took);
      }
      if (took) {
        numbers->insert(file.number);
        taken.insert(layout.LinkPathOf(file));
      }
    }
  }
  if (status.ok()) status = RemoveTree(file_system, earlier_dir);
  // Sync the moved files. The process that recorded them may have crashed
  // before it synced them.
  return status.ok() ? SyncAll(file_system, taken, {layout.staging_dir()})
                     : status;
}

}  // namespace sstferry
