#include "format/rocksdb/wal_end.h"

#include <algorithm>
#include <map>

#include "format/end_state.h"
#include "format/rocksdb/log_follower.h"
#include "format/rocksdb/manifest_reader.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

Status HasRecord(const ByteSource& wal, uint64_t number, uint64_t end,
                 bool* has_record) {
  *has_record = false;
  if (end == 0) {
    return Status::OK();
  }
  LogFollower follower(LogKind::kWal, number);
  const Status status = follower.Follow(
      SourcePart(wal, 0, std::min(end, wal.size())),
      [has_record](const Slice&, uint64_t) {
        *has_record = true;
        return Status::Aborted("one is enough");
      });
  return *has_record ? Status::OK() : status;
}

Status FindWalEnd(const std::vector<CloneFile>& files, const OpenWal& open,
                  WalEnd* end) {
  *end = WalEnd();
  std::map<uint64_t, const CloneFile*> wals;
  for (const CloneFile& file : files) {
    if (file.kind == CloneFileKind::kWal) {
      wals[file.number] = &file;
    }
  }
  for (auto wal = wals.rbegin(); wal != wals.rend(); ++wal) {
    const CloneFile& file = *wal->second;
    bool has_record = false;
    if (file.records_end > 0) {
      std::unique_ptr<ByteSource> source;
      RETURN_IF_ERROR(open(file, &source));
      RETURN_IF_ERROR(
          HasRecord(*source, file.number, file.records_end, &has_record));
    }
    *end = {file.number, has_record ? file.records_end : 0};
    if (has_record) {
      break;
    }
  }
  return Status::OK();
}

Status IsFlushedBy(const ByteSource& manifest, uint64_t bytes,
                   uint64_t wal_number, bool* is_flushed) {
  ManifestReader reader;
  RETURN_IF_ERROR(reader.Follow(
      SourcePart(manifest, 0, std::min(bytes, manifest.size()))));
  *is_flushed =
      reader.end() == bytes &&
      wal_number < OldestNeededWal(reader.state(), /*allow_2pc=*/false);
  return Status::OK();
}

}  // namespace sstferry
