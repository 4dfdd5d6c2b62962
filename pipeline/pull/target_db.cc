#include "pipeline/pull/target_db.h"

#include <algorithm>
#include <unordered_map>

#include "format/clone_file.h"
#include "format/end_state.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/base/silent_logger.h"
#include "pipeline/disk/durable.h"
#include "pipeline/pull/closed_files.h"
#include "rocksdb/metadata.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Maximum number of open tables. It limits their memory, regardless of the size
// of the database.
constexpr int kMaxOpenFiles = 64;

Status AtPlace(const Status& status, const std::string& where) {
  return WithContext(status, EndStateOf(status), where);
}

}  // namespace

Status TargetDb::Create(const std::string& dir,
                        const TargetDbOptions& options,
                        const std::vector<std::string>& names,
                        std::vector<BuiltFamily> families,
                        std::shared_ptr<rocksdb::FileSystem> file_system,
                        std::unique_ptr<TargetDb>* result) {
  return Make(/*create=*/true, dir, options, names, std::move(families),
              std::move(file_system), result);
}

Status TargetDb::Reopen(const std::string& dir,
                        const TargetDbOptions& options,
                        const std::vector<std::string>& names,
                        std::vector<BuiltFamily> families,
                        std::shared_ptr<rocksdb::FileSystem> file_system,
                        std::unique_ptr<TargetDb>* result) {
  return Make(/*create=*/false, dir, options, names, std::move(families),
              std::move(file_system), result);
}

Status TargetDb::Make(bool create, const std::string& dir,
                      const TargetDbOptions& options,
                      const std::vector<std::string>& names,
                      std::vector<BuiltFamily> families,
                      std::shared_ptr<rocksdb::FileSystem> file_system,
                      std::unique_ptr<TargetDb>* result) {
  std::unique_ptr<TargetDb> created(new TargetDb);
  created->dir_ = dir;
  created->options_ = options;
  created->names_ = names;
  created->families_ = std::move(families);
  created->asked_ = names.size();
  created->file_system_ = std::move(file_system);
  created->env_ = rocksdb::NewCompositeEnv(created->file_system_);
  if (std::find(names.begin(), names.end(),
                rocksdb::kDefaultColumnFamilyName) == names.end()) {
    created->names_.push_back(rocksdb::kDefaultColumnFamilyName);
    BuiltFamily plain;
    plain.pull_options.disable_auto_compactions = true;
    created->families_.push_back(std::move(plain));
  }
  const Status status = created->Open(create);
  if (status.ok()) {
    *result = std::move(created);
  }
  return status;
}

TargetDb::~TargetDb() {
  if (db_ != nullptr) {
    // If the database is still open, the pull has failed. The next pull opens
    // or removes it.
    CloseHandles().PermitUncheckedError();
    db_->Close().PermitUncheckedError();
  }
}

Status TargetDb::Open(bool create) {
  rocksdb::DBOptions options;
  options.env = env_.get();
  options.info_log = std::make_shared<SilentLogger>();
  options.max_open_files = kMaxOpenFiles;
  options.create_if_missing = create;
  options.create_missing_column_families = create;
  options.max_background_jobs = 2;
  options.listeners = options_.listeners;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.max_file_opening_threads = 1;
  options.write_dbid_to_manifest = options_.write_dbid_to_manifest;
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  for (size_t i = 0; i < names_.size(); ++i) {
    descriptors.emplace_back(names_[i], families_[i].pull_options);
  }
  handles_.clear();
  Status status = rocksdb::DB::Open(options, dir_, descriptors, &handles_,
                                    IntoDb(&db_));
  if (status.IsIOError() && !status.IsNoSpace()) {
    // RocksDB 8.8 and later fail here if they cannot write their OPTIONS file,
    // but do not report that the disk is full. So write our own OPTIONS file,
    // which reports it.
    const Status left =
        LeaveOnlyOptions(file_system_.get(), dir_, options_.options_text);
    status = EndStateOf(left) == EndState::kNoSpace ? left : status;
  }
  if (!create && status.IsPathNotFound()) {
    return WithContext(status, EndState::kCorrupt, "reopen " + dir_);
  }
  return AtPlace(status, (create ? "create " : "reopen ") + dir_);
}

Status LeaveOnlyOptions(rocksdb::FileSystem* file_system,
                        const std::string& dir, const std::string& text) {
  std::vector<std::string> names;
  Status status =
      file_system->GetChildren(dir, rocksdb::IOOptions(), &names, nullptr);
  // If RocksDB wrote no OPTIONS file, because the disk was full, use 5, the
  // number that the file would have.
  CloneFile kept{CloneFileKind::kOptions, 5, 0, 0};
  std::vector<CloneFile> found;
  for (const std::string& name : names) {
    CloneFile file;
    if (ParseCloneFileName(name, &file) &&
        file.kind == CloneFileKind::kOptions) {
      found.push_back(file);
      kept.number = std::max(kept.number, file.number);
    }
  }
  for (const CloneFile& file : found) {
    if (status.ok() && file.number != kept.number) {
      status = file_system->DeleteFile(dir + "/" + CloneFileName(file),
                                       rocksdb::IOOptions(), nullptr);
    }
  }
  if (status.ok()) {
    status = WriteDurably(file_system, dir + "/" + CloneFileName(kept), text);
  }
  return AtPlace(status, "OPTIONS of " + dir);
}

Status TargetDb::CountLevels(std::map<int, uint64_t>* levels) {
  for (size_t i = 0; i < asked_; ++i) {
    rocksdb::ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(handles_[i], &metadata);
    for (const rocksdb::LevelMetaData& level : metadata.levels) {
      if (!level.files.empty()) {
        (*levels)[level.level] += level.files.size();
      }
      for (const rocksdb::SstFileMetaData& file : level.files) {
        const bool last =
            level.level == static_cast<int>(metadata.levels.size()) - 1;
        if (!families_[i].keeps_level0 &&
            (file.largest_seqno != 0 || !last)) {
          return MakeStatus(EndState::kInternal,
                            "column family '" + names_[i] + "' file " +
                                file.relative_filename +
                                ": expected the last level and sequence 0, "
                                "found level " + std::to_string(level.level) +
                                " and sequence " +
                                std::to_string(file.largest_seqno));
        }
      }
    }
  }
  return Status::OK();
}

Status TargetDb::CloseHandles() {
  Status status;
  for (rocksdb::ColumnFamilyHandle* handle : handles_) {
    const Status destroyed = db_->DestroyColumnFamilyHandle(handle);
    status = status.ok() ? destroyed : status;
  }
  handles_.clear();
  return AtPlace(status, "close " + dir_);
}

Status TargetDb::Close() {
  rocksdb::VectorLogPtr wals;
  Status status = AtPlace(db_->GetSortedWalFiles(wals), "WAL of " + dir_);
  for (const std::unique_ptr<rocksdb::LogFile>& wal : wals) {
    bool is_empty = false;
    if (status.ok()) {
      status = IsEmptyWal(file_system_.get(), dir_ + wal->PathName(),
                          wal->LogNumber(), &is_empty);
    }
    if (status.ok() && !is_empty) {
      status = MakeStatus(EndState::kInternal,
                          "WAL of " + dir_ + ": expected no entry, found " +
                              std::to_string(wal->SizeFileBytes()) + " bytes");
    }
  }
  const Status handles = CloseHandles();
  const Status closed = AtPlace(db_->Close(), "close " + dir_);
  db_.reset();
  status = status.ok() ? handles : status;
  status = status.ok() ? closed : status;
  return status.ok() ? LeaveOnlyOptions(file_system_.get(), dir_,
                                        options_.options_text)
                     : status;
}

}  // namespace sstferry
