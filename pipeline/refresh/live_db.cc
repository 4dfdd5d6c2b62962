#include "pipeline/refresh/live_db.h"

#include <algorithm>
#include <atomic>

#include "format/end_state.h"
#include "format/options_line.h"
#include "pipeline/base/database_open.h"
#include "pipeline/base/readable_tables.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/base/silent_logger.h"
#include "pipeline/options/directories.h"
#include "pipeline/options/operators.h"
#include "pipeline/options/options_file.h"
#include "pipeline/options/replica_options.h"
#include "pipeline/pull/closed_files.h"
#include "pipeline/refresh/delta_filter.h"
#include "pipeline/refresh/replica_files.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/convenience.h"
#include "rocksdb/listener.h"
#include "rocksdb/memtablerep.h"
#include "rocksdb/table.h"

namespace sstferry {

using rocksdb::ColumnFamilyDescriptor;
using rocksdb::Status;

// Counts the bytes of tables and blob files that RocksDB writes. Ingested
// tables do not count.
class WrittenFiles : public rocksdb::EventListener {
 public:
  void OnTableFileCreated(const rocksdb::TableFileCreationInfo& info) override {
    bytes_ += info.status.ok() ? info.file_size : 0;
  }
  void OnBlobFileCreated(const rocksdb::BlobFileCreationInfo& info) override {
    bytes_ += info.status.ok() ? info.total_blob_bytes : 0;
  }
  uint64_t bytes() const { return bytes_; }

 private:
  std::atomic<uint64_t> bytes_{0};
};

namespace {

Status At(const Status& status, const std::string& where) {
  return WithContext(status, EndStateOf(status), where);
}

// Returns the name of the compaction filter, or of its factory, in the family's
// OPTIONS. Returns an empty string if the family has neither.
std::string FilterIn(const FamilyDescription& family) {
  for (const NamedValue& option : family.options) {
    if ((option.name == "compaction_filter" ||
         option.name == "compaction_filter_factory") &&
        !IsNullObject(option.value)) {
      const size_t id = option.value.find("id=");
      return id == std::string::npos
                 ? option.value
                 : option.value.substr(id + 3,
                                       option.value.find_first_of(";}", id) -
                                           id - 3);
    }
  }
  return "";
}

// Sets comparators and merge operators, which RocksDB's loader cannot create.
Status ResolveObjects(const DatabaseDescription& description,
                      const OperatorRegistry& registry,
                      std::vector<ColumnFamilyDescriptor>* families) {
  for (const FamilyDescription& told : description.families) {
    for (ColumnFamilyDescriptor& family : *families) {
      if (family.name != told.name) {
        continue;
      }
      RETURN_IF_ERROR(FindComparator(told.name, told.comparator, registry,
                                     &family.options.comparator));
      std::shared_ptr<rocksdb::MergeOperator> merge;
      std::vector<std::string> unknown;
      RETURN_IF_ERROR(FindMergeOperator(told.name, told.merge_operator,
                                        registry, &merge, &unknown));
      if (merge != nullptr) {
        family.options.merge_operator = merge;
      }
      if (!unknown.empty()) {
        // Refuse an unknown merge operator, because compactions would fail
        // without it.
        return MakeStatus(EndState::kIncompatible, unknown.front());
      }
    }
  }
  return Status::OK();
}

// Refuses a WAL directory outside of `dir`, because RocksDB deletes files
// there. The directory may belong to another database: in a copied database,
// OPTIONS still name the WAL directory of the original.
Status CheckWalDir(const std::string& dir, rocksdb::DBOptions* options) {
  if (options->wal_dir.empty() || IsSameDirectory(options->wal_dir, dir)) {
    options->wal_dir.clear();
    return Status::OK();
  }
  if (LiesIn(options->wal_dir, dir)) {
    return Status::OK();
  }
  return MakeStatus(
      EndState::kRefused,
      "target " + dir + ": expected its write-ahead log in the directory "
                        "itself, but its OPTIONS name " + options->wal_dir +
          ", which may belong to another database; the process that owns the "
          "target can refresh it with the library; if it needs no WAL there, "
          "remove wal_dir from its newest OPTIONS file");
}

Status ReadOptionsText(const std::string& dir, rocksdb::Env* env,
                       std::string* text) {
  const Status status = ReadNewestOptions(env, dir, text);
  if (status.ok() && text->find("[DBOptions") == std::string::npos) {
    // Do not report damage. A source may have such an OPTIONS file after it
    // lost power, and a clone gets a copy of the file.
    return MakeStatus(
        EndState::kRefused,
        "target " + dir +
            ": its newest OPTIONS file is empty or truncated, so its options "
            "are unknown; its application rewrites that file when it opens the "
            "database, and a swap with --method clone replaces it");
  }
  return status.IsNotFound() || status.IsPathNotFound()
             ? MakeStatus(EndState::kRefused,
                          "target " + dir +
                              ": expected a database with an OPTIONS file, "
                              "found none")
             : status;
}

// Turns off what RocksDB would do by itself with the application's options:
// info logs, recycled WALs, compaction filters and automatic compactions.
// Replaces hashed memtables and the hash index: RocksDB aborts if they get a
// key outside of the prefix extractor's domain, and a WAL or a chunk may
// contain one. Makes flushes and compactions write tables that the release
// `application` can read.
void LeaveAlone(const RocksDbRelease& application, rocksdb::DBOptions* options,
                std::vector<ColumnFamilyDescriptor>* families) {
  options->info_log = std::make_shared<SilentLogger>();
  options->db_log_dir.clear();
  options->create_if_missing = false;
  options->create_missing_column_families = false;
  options->error_if_exists = false;
  options->recycle_log_file_num = 0;  // a hard link may share a WAL
  options->avoid_flush_during_recovery = false;
  for (ColumnFamilyDescriptor& family : *families) {
    family.options.compaction_filter = nullptr;
    family.options.compaction_filter_factory = nullptr;
    family.options.disable_auto_compactions = true;
    family.options.memtable_factory =
        std::make_shared<rocksdb::SkipListFactory>();
    const auto* own = family.options.table_factory
                          ->GetOptions<rocksdb::BlockBasedTableOptions>();
    if (own != nullptr) {
      rocksdb::BlockBasedTableOptions table = *own;
      UseStandardIndex(&table);
      if (application.is_known()) {
        table.format_version =
            std::min(table.format_version, MaxFormatVersion(application));
        if (application < kReadsMarkedBlocks) {
          UnmarkBlocks(&table);
        }
      }
      family.options.table_factory.reset(
          rocksdb::NewBlockBasedTableFactory(table));
    }
  }
}

}  // namespace

Status LiveDb::Open(const std::string& dir, const OperatorRegistry& registry,
                    std::shared_ptr<rocksdb::FileSystem> file_system,
                    std::unique_ptr<LiveDb>* live,
                    std::vector<std::string>* notes) {
  return OpenAt(dir, registry, /*to_read=*/false, std::move(file_system), live,
                notes);
}

uint64_t LiveDb::written_bytes() const {
  return written_ != nullptr ? written_->bytes() : 0;
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
  opened->offered_ = std::make_shared<std::string>();
  if (to_read) {
    file_system = MakeReadOnlyFileSystem(std::move(file_system));
  }
  opened->env_ = rocksdb::NewCompositeEnv(file_system);
  std::string text;
  DatabaseDescription description;
  Status status = ReadOptionsText(dir, opened->env_.get(), &text);
  if (status.ok()) {
    status = ParseOptionsText(text, &description, notes);
  }
  if (status.ok() && !to_read) {
    opened->env_ = rocksdb::NewCompositeEnv(
        MakeReplicaFileSystem(file_system, dir, text, opened->offered_));
  }
  rocksdb::DBOptions options;
  std::vector<ColumnFamilyDescriptor> descriptors;
  if (status.ok()) {
    status = LoadOptionsText(text, &options, &descriptors, /*cache=*/nullptr);
  }
  if (status.ok()) {
    status = CheckWalDir(dir, &options);
  }
  if (status.ok()) {
    status = CheckFilesAreHere(file_system.get(), dir);
  }
  if (status.ok()) {
    status = CheckTablesReadable(file_system.get(), dir, description.release);
    if (!status.ok()) {  // a clone can still copy them
      status = OnlyAsFiles(EndStateOf(status), MessageOf(status));
    }
  }
  if (status.ok()) {
    status = ResolveObjects(description, registry, &descriptors);
  }
  if (!status.ok()) {
    return At(status, "open " + dir);
  }
  if (!to_read) {
    // Check the WALs before DB::Open(), which would flush wrongly replayed
    // entries.
    WalFacts facts;
    bool known = false;
    status = ReadNeededWals(file_system.get(), dir, options, &facts, &known);
    if (EndStateOf(status) == EndState::kRefused) {
      return At(status, "open " + dir);
    }
  }
  options.env = opened->env_.get();
  LeaveAlone(ReleaseOfOptions(text), &options, &descriptors);
  for (ColumnFamilyDescriptor& family : descriptors) {
    const rocksdb::ColumnFamilyOptions own = family.options;
    UseDeltaFilters(own, &family.options);
  }
  opened->written_ = std::make_shared<WrittenFiles>();
  options.listeners = {opened->written_};
  for (const FamilyDescription& family : description.families) {
    const std::string filter = FilterIn(family);
    if (!filter.empty()) {
      opened->compaction_filters_[family.name] = filter;
    }
  }
  status = to_read ? rocksdb::DB::OpenForReadOnly(
                         options, dir, descriptors, &opened->owned_handles_,
                         IntoDb(&opened->owned_))
                   : rocksdb::DB::Open(options, dir, descriptors,
                                       &opened->owned_handles_,
                                       IntoDb(&opened->owned_));
  if (!status.ok() && to_read) {
    // RocksDB 11 reports some good WALs as damaged: WALs in which sequence
    // numbers count batches. Find out if this is the case.
    WalFacts facts;
    bool known = false;
    const Status wals =
        ReadNeededWals(file_system.get(), dir, options, &facts, &known);
    status = EndStateOf(wals) == EndState::kRefused ? wals : status;
  }
  if (!status.ok()) {
    // Report kBusy if another process holds the LOCK. RocksDB takes the LOCK
    // before it does anything else, so the lock then caused the error.
    const bool locked =
        !to_read && status.IsIOError() && IsDatabaseOpen(dir);
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
  if (to_read) {
    status = FindUnflushed(file_system.get(), opened->db_, &opened->families_,
                           &opened->wals_hold_single_deletes_);
  }
  *live = std::move(opened);
  return At(status, "open " + dir);
}

// Recognizes a DBWithTTL by its compaction filters. A dynamic_cast would need
// type information, without which RocksDB may be built.
std::unique_ptr<LiveDb> LiveDb::Borrow(const OpenReplica& replica) {
  std::unique_ptr<LiveDb> live(new LiveDb);
  live->replica_ = replica;
  live->db_ = replica.db;
  for (rocksdb::ColumnFamilyHandle* handle : replica.families) {
    live->families_.push_back({handle->GetName(), handle});
    const rocksdb::Options options = replica.db->GetOptions(handle);
    if (options.compaction_filter != nullptr) {
      live->compaction_filters_[handle->GetName()] =
          options.compaction_filter->Name();
    } else if (options.compaction_filter_factory != nullptr) {
      live->compaction_filters_[handle->GetName()] =
          options.compaction_filter_factory->Name();
    }
  }
  for (const auto& [family, filter] : live->compaction_filters_) {
    if (filter == "TtlCompactionFilter" ||
        filter == "TtlCompactionFilterFactory") {
      live->db_ = replica.db->GetRootDB();
    }
  }
  return live;
}

LiveDb::~LiveDb() {
  // Ignore errors: the database is still open here only after another failure.
  Close().PermitUncheckedError();
}

const FamilyHandle* LiveDb::FindFamily(const std::string& name) const {
  const auto found = std::find_if(
      families_.begin(), families_.end(),
      [&name](const FamilyHandle& family) { return family.name == name; });
  return found != families_.end() ? &*found : nullptr;
}

rocksdb::ColumnFamilyHandle* LiveDb::Find(const std::string& name) const {
  const FamilyHandle* const found = FindFamily(name);
  return found != nullptr ? found->handle : nullptr;
}

Status LiveDb::Create(const std::string& name,
                      const rocksdb::ColumnFamilyOptions& options,
                      const std::string& options_text) {
  if (!is_borrowed()) {
    *offered_ = options_text;
  }
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  // Create the family through the DBWithTTL if there is one, because it changes
  // the family's options.
  rocksdb::DB* const creator = is_borrowed() ? replica_.db : db_;
  const Status status = creator->CreateColumnFamily(options, name, &handle);
  if (!status.ok()) {
    return At(status, "create column family '" + name + "'");
  }
  families_.push_back({name, handle});
  owned_handles_.push_back(handle);
  // Disable automatic compactions, as LeaveAlone() does for existing families.
  // The OPTIONS file keeps the application's value.
  return is_borrowed() ? status
                       : At(db_->SetOptions(
                                handle, {{"disable_auto_compactions", "true"}}),
                            "column family '" + name + "'");
}

Status LiveDb::Drop(const std::string& name) {
  const auto found = std::find_if(
      families_.begin(), families_.end(),
      [&name](const FamilyHandle& family) { return family.name == name; });
  if (found == families_.end()) {
    return Status::OK();
  }
  const Status status = db_->DropColumnFamily(found->handle);
  families_.erase(found);  // its owner destroys the handle
  return At(status, "drop column family '" + name + "'");
}

Status LiveDb::Flush(const std::vector<FamilyHandle>& families) {
  const std::vector<rocksdb::ColumnFamilyHandle*> handles = HandlesOf(families);
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
