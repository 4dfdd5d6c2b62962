#include "pipeline/target/live_db.h"

#include <algorithm>

#include "format/end_state.h"
#include "pipeline/operators.h"
#include "pipeline/options_file.h"
#include "pipeline/rocksdb_compat.h"
#include "pipeline/target/silent_logger.h"
#include "rocksdb/convenience.h"
#include "rocksdb/utilities/options_util.h"

namespace sstferry {
namespace {

using rocksdb::ColumnFamilyDescriptor;
using rocksdb::Status;

Status At(const Status& status, const std::string& where) {
  return WithContext(status, EndStateOf(status), where);
}

// What the loader left out because only the application knows it.
Status ResolveObjects(const std::string& text, const OperatorRegistry& registry,
                      std::vector<ColumnFamilyDescriptor>* families,
                      std::vector<std::string>* notes) {
  DatabaseDescription description;
  Status status = ParseOptionsText(text, &description, notes);
  for (const FamilyDescription& told : description.families) {
    for (ColumnFamilyDescriptor& family : *families) {
      if (!status.ok() || family.name != told.name) {
        continue;
      }
      status = FindComparator(told.name, told.comparator, registry,
                              &family.options.comparator);
      std::shared_ptr<rocksdb::MergeOperator> merge;
      std::vector<std::string> unknown;
      if (status.ok()) {
        status = FindMergeOperator(told.name, told.merge_operator, registry,
                                   &merge, &unknown);
      }
      if (merge != nullptr) {
        family.options.merge_operator = merge;
      }
      if (status.ok() && !unknown.empty()) {
        // Its OPTIONS would be without it afterwards.
        status = MakeStatus(EndState::kIncompatible, unknown.front());
      }
    }
  }
  return status;
}

Status LoadOptions(const std::string& dir, rocksdb::Env* env,
                   const OperatorRegistry& registry, rocksdb::DBOptions* db,
                   std::vector<ColumnFamilyDescriptor>* families,
                   std::vector<std::string>* notes) {
  std::string name;
  std::string text;
  Status status = rocksdb::GetLatestOptionsFileName(dir, env, &name);
  if (status.ok()) {
    status = rocksdb::ReadFileToString(env, dir + "/" + name, &text);
  }
  if (status.IsNotFound() || status.IsPathNotFound()) {
    return MakeStatus(EndState::kRefused,
                      "target " + dir +
                          ": expected a database with an OPTIONS file, found "
                          "none");
  }
  rocksdb::ConfigOptions config;
  config.ignore_unknown_options = true;
  config.ignore_unsupported_options = true;
  config.env = env;
  if (status.ok()) {
    status = rocksdb::LoadOptionsFromFile(config, dir + "/" + name, db,
                                          families);
  }
  return status.ok() ? ResolveObjects(text, registry, families, notes) : status;
}

}  // namespace

Status LiveDb::Open(const std::string& dir, const OperatorRegistry& registry,
                    std::shared_ptr<rocksdb::FileSystem> file_system,
                    std::unique_ptr<LiveDb>* live,
                    std::vector<std::string>* notes) {
  return OpenAt(dir, registry, /*to_read=*/false, std::move(file_system), live,
                notes);
}

Status LiveDb::OpenToRead(const std::string& dir,
                          const OperatorRegistry& registry,
                          std::unique_ptr<LiveDb>* live,
                          std::vector<std::string>* notes) {
  return OpenAt(dir, registry, /*to_read=*/true,
                rocksdb::FileSystem::Default(), live, notes);
}

Status LiveDb::OpenAt(const std::string& dir, const OperatorRegistry& registry,
                      bool to_read,
                      std::shared_ptr<rocksdb::FileSystem> file_system,
                      std::unique_ptr<LiveDb>* live,
                      std::vector<std::string>* notes) {
  std::unique_ptr<LiveDb> opened(new LiveDb);
  opened->env_ = rocksdb::NewCompositeEnv(std::move(file_system));
  rocksdb::DBOptions options;
  std::vector<ColumnFamilyDescriptor> descriptors;
  Status status = LoadOptions(dir, opened->env_.get(), registry, &options,
                              &descriptors, notes);
  if (!status.ok()) {
    return At(status, "open " + dir);
  }
  options.env = opened->env_.get();
  options.info_log = std::make_shared<SilentLogger>();
  options.create_if_missing = false;
  options.error_if_exists = false;
  status = to_read ? rocksdb::DB::OpenForReadOnly(
                         options, dir, descriptors, &opened->owned_handles_,
                         IntoDb(&opened->owned_))
                   : rocksdb::DB::Open(options, dir, descriptors,
                                       &opened->owned_handles_,
                                       IntoDb(&opened->owned_));
  if (!status.ok()) {
    const bool locked = status.ToString().find("/LOCK") != std::string::npos;
    return locked ? MakeStatus(EndState::kBusy, "target " + dir +
                                                    ": a process holds its "
                                                    "LOCK (" +
                                                    MessageOf(status) + ")")
                  : At(status, "open " + dir);
  }
  opened->db_ = opened->owned_.get();
  for (rocksdb::ColumnFamilyHandle* handle : opened->owned_handles_) {
    opened->families_.push_back({handle->GetName(), handle});
  }
  *live = std::move(opened);
  return status;
}

std::unique_ptr<LiveDb> LiveDb::Borrow(const OpenReplica& replica) {
  std::unique_ptr<LiveDb> live(new LiveDb);
  live->replica_ = replica;
  live->db_ = replica.db;
  for (rocksdb::ColumnFamilyHandle* handle : replica.families) {
    live->families_.push_back({handle->GetName(), handle});
  }
  return live;
}

LiveDb::~LiveDb() {
  Close().PermitUncheckedError();  // only after a failure: nothing is lost
}

rocksdb::ColumnFamilyHandle* LiveDb::Find(const std::string& name) const {
  const auto found = std::find_if(
      families_.begin(), families_.end(),
      [&name](const FamilyHandle& family) { return family.name == name; });
  return found != families_.end() ? found->handle : nullptr;
}

Status LiveDb::Create(const std::string& name,
                      const rocksdb::ColumnFamilyOptions& options) {
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  const Status status = db_->CreateColumnFamily(options, name, &handle);
  if (!status.ok()) {
    return At(status, "create column family '" + name + "'");
  }
  families_.push_back({name, handle});
  owned_handles_.push_back(handle);
  return status;
}

Status LiveDb::Drop(const std::string& name) {
  const auto found = std::find_if(
      families_.begin(), families_.end(),
      [&name](const FamilyHandle& family) { return family.name == name; });
  if (found == families_.end()) {
    return Status::OK();
  }
  const Status status = db_->DropColumnFamily(found->handle);
  families_.erase(found);  // whoever opened it destroys the handle
  return At(status, "drop column family '" + name + "'");
}

Status LiveDb::Flush(const std::vector<FamilyHandle>& families) {
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  for (const FamilyHandle& family : families) {
    handles.push_back(family.handle);
  }
  rocksdb::FlushOptions options;
  options.allow_write_stall = false;
  return handles.empty() ? Status::OK()
                         : At(db_->Flush(options, handles), "flush");
}

Status LiveDb::Close() {
  Status status;
  for (rocksdb::ColumnFamilyHandle* handle : owned_handles_) {
    if (owned_ == nullptr && replica_.on_created) {
      replica_.on_created(handle);
      continue;
    }
    const Status destroyed = db_->DestroyColumnFamilyHandle(handle);
    status = status.ok() ? destroyed : status;
  }
  owned_handles_.clear();
  families_.clear();
  if (owned_ != nullptr) {
    const Status closed = owned_->Close();
    status = status.ok() ? closed : status;
    owned_.reset();
  }
  db_ = nullptr;
  return At(status, "close the target");
}

}  // namespace sstferry
