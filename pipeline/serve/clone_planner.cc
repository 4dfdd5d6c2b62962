#include "pipeline/serve/clone_planner.h"

#include <algorithm>

#include "format/end_state.h"
#include "format/limits.h"
#include "format/options_line.h"
#include "pipeline/snapshot/chunk_estimate.h"
#include "pipeline/snapshot/file_snapshot.h"
#include "rocksdb/db.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Number of chunks that make up one unit. A table of the usual size is larger
// than a chunk, but fits into one unit.
constexpr uint64_t kChunksPerUnit = 2;

uint64_t UnitBytes(const OpenRequest& request) {
  const uint64_t bytes = std::clamp(request.chunk_bytes * kChunksPerUnit,
                                    kMinChunkBytes, kMaxChunkBytes);
  return bytes - bytes % kCloneTailAlignment;  // direct writes need it
}

// Sets only the names of the column families. The target of a clone gets the
// options as a file.
void DescribeFamilies(const Snapshot& snapshot, TransferPlan* plan) {
  for (const SnapshotFamily& named : snapshot.families()) {
    TransferFamily& family = plan->sources.emplace_back();
    family.index = static_cast<uint32_t>(plan->families.size());
    Family& told = plan->families.emplace_back();
    told.index = family.index;
    told.description.name = named.name;
    const auto entries = snapshot.files()->entries.find(named.name);
    told.estimated_entries =
        entries != snapshot.files()->entries.end() ? entries->second : 0;
  }
}

// Adds a note if the tables may have wide-column entities that the application
// cannot read. No property of a table shows the kinds of its entries. (For
// entries in WALs, Needs has the release.)
void NoteBlobColumns(const FileSet& files, const RocksDbRelease& writer,
                     const RocksDbRelease& application,
                     std::vector<std::string>* notes) {
  const bool may_write = !writer.is_known() || writer >= kReadsBlobColumns;
  const bool has_blobs = std::any_of(
      files.files.begin(), files.files.end(), [](const CloneFile& file) {
        return file.kind == CloneFileKind::kBlob;
      });
  if (application.is_known() && application < kReadsBlobColumns && may_write &&
      has_blobs) {
    notes->push_back(
        "the source has blob files: if they hold columns of wide-column "
        "entities, as RocksDB since " + ReleaseName(kReadsBlobColumns) +
        " may write them, RocksDB " + ReleaseName(application) +
        " cannot read these entities");
  }
}

}  // namespace

Status CheckCloneRequest(const OpenRequest& request) {
  if (request.interval.begin || request.interval.end) {
    return MakeStatus(EndState::kRefused,
                      "a clone contains all keys of its column families (no "
                      "--begin, --end)");
  }
  // A verify makes no database, so the request need not include `default`.
  return IsAmong(request.families, rocksdb::kDefaultColumnFamilyName) ||
                 request.purpose == Purpose::kVerify
             ? Status::OK()
             : MakeStatus(EndState::kRefused,
                          "a clone must contain the column family 'default', "
                          "which RocksDB cannot drop (add --cf default)");
}

Status PlanClone(const Snapshot& snapshot, const OpenRequest& request,
                 TransferPlan* plan) {
  if (snapshot.files() == nullptr) {
    return MakeStatus(EndState::kInternal,
                      "clone: expected a snapshot of files, found a "
                      "snapshot of entries");
  }
  const ClonedFiles& files = *snapshot.files();
  plan->opened.notes = snapshot.notes();
  plan->needs = files.needs;
  RocksDbRelease asked;
  RETURN_IF_ERROR(ReleaseAsked(request, &asked));
  // The source's application can read these files. Check another release only
  // if the request names one.
  if (request.purpose != Purpose::kVerify) {
    RETURN_IF_ERROR(CheckOpens(files.needs, asked));
  }
  const RocksDbRelease writer = ReleaseOfOptions(snapshot.options_text());
  plan->application = asked.is_known() ? asked : writer;
  if (request.purpose != Purpose::kVerify) {
    NoteBlobColumns(files, writer, asked, &plan->opened.notes);
  }
  RETURN_IF_ERROR(CheckNames(snapshot));
  if (files.files.size() > kMaxParts) {
    return MakeStatus(EndState::kRefused,
                      "clone: expected at most " + std::to_string(kMaxParts) +
                          " files, found " +
                          std::to_string(files.files.size()));
  }
  DescribeFamilies(snapshot, plan);
  FileSet clone = files;
  if (files.unit_bytes == 0) clone.unit_bytes = UnitBytes(request);
  Status status = CutIntoUnits(clone.files, clone.unit_bytes, &plan->parts);
  while (!status.ok() && files.unit_bytes == 0 &&
         clone.unit_bytes < kMaxChunkBytes) {
    clone.unit_bytes = std::min(2 * clone.unit_bytes, kMaxChunkBytes);
    status = CutIntoUnits(clone.files, clone.unit_bytes, &plan->parts);
  }
  if (!status.ok() && files.unit_bytes == 0) {
    clone.unit_bytes = kUntailedUnitBytes;
    status = CutIntoUnits(clone.files, clone.unit_bytes, &plan->parts);
  }
  plan->clone = std::move(clone);
  return status.ok() ? status
                     : MakeStatus(EndStateOf(status),
                                  MessageOf(status) +
                                      "; --method ingest pulls this database "
                                      "as chunks");
}

}  // namespace sstferry
