#include "pipeline/base/readable_tables.h"

#include <memory>
#include <vector>

#include "format/end_state.h"
#include "format/rocksdb/sst_reader.h"
#include "pipeline/base/file_source.h"
#include "pipeline/base/rocksdb_compat.h"

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr char kTableSuffix[] = ".sst";

// Adds to *needs what a reader of the table must support. Ignores errors: the
// code that reads the table's entries later reports them.
void AddNeeds(rocksdb::FileSystem* file_system, const std::string& path,
              Needs* needs) {
  std::unique_ptr<FileSource> source;
  if (!FileSource::Open(file_system, path, &source).ok()) {
    return;
  }
  SstReader reader;
  reader.Open(source.get()).PermitUncheckedError();
  AddTableNeeds(reader, needs);
}

}  // namespace

Status CheckTablesReadable(rocksdb::FileSystem* file_system,
                           const std::string& dir,
                           const RocksDbRelease& writer) {
  if (writer.is_known() && writer <= kLinkedRelease) {
    return Status::OK();
  }
  std::vector<std::string> names;
  Status status =
      file_system->GetChildren(dir, rocksdb::IOOptions(), &names, nullptr);
  for (const std::string& name : names) {
    if (!status.ok() || !name.ends_with(kTableSuffix)) {
      continue;
    }
    Needs needs;
    AddNeeds(file_system, dir + "/" + name, &needs);
    if (needs.release() > kLinkedRelease) {
      status = MakeStatus(
          EndState::kIncompatible,
          name + ": expected a table that RocksDB " + RocksDbVersion() +
              " in this sstferry reads, found " + needs.what() +
              ", which RocksDB reads since " + ReleaseName(needs.release()) +
              "; use an sstferry built with that release or a later one");
    }
  }
  return status;
}

}  // namespace sstferry
