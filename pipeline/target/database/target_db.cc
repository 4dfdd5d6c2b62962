#include "pipeline/target/database/target_db.h"

#include <algorithm>
#include <unordered_map>

#include "format/end_state.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/base/silent_logger.h"
#include "pipeline/target/database/closed_files.h"
#include "pipeline/target/disk/durable.h"
#include "rocksdb/metadata.h"
#include "rocksdb/utilities/options_util.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Bounds the memory of open tables, whatever the database's size.
constexpr int kMaxOpenFiles = 64;
// If less than this is free, a missing OPTIONS file means a full disk.
constexpr uint64_t kOptionsFileRoom = 1u << 20;

Status AtPlace(const Status& status, const std::string& where) {
  return WithContext(status, EndStateOf(status), where);
}

}  // namespace

Status TargetDb::Create(const std::string& dir,
                        const rocksdb::DBOptions& final_options,
                        const std::vector<std::string>& names,
                        std::vector<BuiltFamily> families,
                        std::shared_ptr<rocksdb::FileSystem> file_system,
                        std::unique_ptr<TargetDb>* result) {
  return Make(How::kCreate, dir, final_options, names, std::move(families),
              std::move(file_system), result);
}

Status TargetDb::Reopen(const std::string& dir,
                        const rocksdb::DBOptions& final_options,
                        const std::vector<std::string>& names,
                        std::vector<BuiltFamily> families,
                        std::shared_ptr<rocksdb::FileSystem> file_system,
                        std::unique_ptr<TargetDb>* result) {
  return Make(How::kReopen, dir, final_options, names, std::move(families),
              std::move(file_system), result);
}

Status TargetDb::Make(How how, const std::string& dir,
                      const rocksdb::DBOptions& final_options,
                      const std::vector<std::string>& names,
                      std::vector<BuiltFamily> families,
                      std::shared_ptr<rocksdb::FileSystem> file_system,
                      std::unique_ptr<TargetDb>* result) {
  std::unique_ptr<TargetDb> created(new TargetDb);
  created->dir_ = dir;
  created->final_options_ = final_options;
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
  Status status = created->Open(how);
  if (status.ok()) {
    status = created->ExpectNewOptionsFile();
  }
  if (status.ok()) {
    *result = std::move(created);
  }
  return status;
}

TargetDb::~TargetDb() {
  if (db_ != nullptr) {
    // Only open after a failure: the next pull opens or removes the database.
    CloseHandles().PermitUncheckedError();
    db_->Close().PermitUncheckedError();
  }
}

Status TargetDb::Open(How how) {
  const bool final = how == How::kFinal;
  rocksdb::DBOptions options = final ? final_options_ : rocksdb::DBOptions();
  options.env = env_.get();
  options.info_log = std::make_shared<SilentLogger>();
  options.error_if_exists = false;
  if (!final || !NeedsAllFilesOpen()) {
    options.max_open_files = kMaxOpenFiles;
  }
  if (!final) {
    options.create_if_missing = how == How::kCreate;
    options.create_missing_column_families = how == How::kCreate;
    options.max_background_jobs = 2;
    options.listeners = final_options_.listeners;
    options.stats_dump_period_sec = 0;
    options.stats_persist_period_sec = 0;
    options.max_file_opening_threads = 1;
    options.write_dbid_to_manifest = final_options_.write_dbid_to_manifest;
  }
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  for (size_t i = 0; i < names_.size(); ++i) {
    rocksdb::ColumnFamilyOptions family =
        final ? families_[i].final_options : families_[i].pull_options;
    family.disable_auto_compactions = true;
    descriptors.emplace_back(names_[i], family);
  }
  handles_.clear();
  const Status status = rocksdb::DB::Open(options, dir_, descriptors,
                                          &handles_, IntoDb(&db_));
  if (how == How::kReopen && status.IsPathNotFound()) {
    return WithContext(status, EndState::kCorrupt, "reopen " + dir_);
  }
  return AtPlace(status, std::string(how == How::kCreate ? "create " : "reopen ") +
                        dir_);
}

// True with a FIFO family: RocksDB refuses to open one with a TTL unless all
// files may be open.
bool TargetDb::NeedsAllFilesOpen() const {
  return std::any_of(
      families_.begin(), families_.end(), [](const BuiltFamily& family) {
        return family.final_options.compaction_style ==
               rocksdb::kCompactionStyleFIFO;
      });
}

Status TargetDb::Finalize() {
  Status status = CloseHandles();
  if (status.ok()) {
    status = AtPlace(db_->Close(), "close " + dir_);
  }
  db_.reset();
  if (status.ok()) {
    status = Open(How::kFinal);
  }
  if (status.ok()) {
    status = ExpectNewOptionsFile();
  }
  if (status.ok()) {
    status = AtPlace(db_->PauseBackgroundWork(), "pause " + dir_);
  }
  for (size_t i = 0; i < names_.size() && status.ok(); ++i) {
    if (!families_[i].final_options.disable_auto_compactions) {
      status = AtPlace(db_->SetOptions(handles_[i],
                                  {{"disable_auto_compactions", "false"}}),
                  "column family '" + names_[i] + "'");
      if (status.ok()) {
        status = ExpectNewOptionsFile();
      }
    }
  }
  return status;
}

// Writes max_open_files of the final options into the OPTIONS file.
// SetDBOptions would change other options, too (bytes_per_sync), and opening
// with the application's value may load every table.
Status TargetDb::RestoreMaxOpenFiles() {
  if (final_options_.max_open_files == kMaxOpenFiles || NeedsAllFilesOpen()) {
    return Status::OK();
  }
  std::string name;
  Status status = rocksdb::GetLatestOptionsFileName(dir_, env_.get(), &name);
  std::string text;
  if (status.ok()) {
    status = rocksdb::ReadFileToString(env_.get(), dir_ + "/" + name, &text);
  }
  if (!status.ok()) {
    return AtPlace(status, "OPTIONS of " + dir_);
  }
  const std::string line =
      "\n  max_open_files=" + std::to_string(kMaxOpenFiles) + "\n";
  const size_t at = text.find(line);
  if (at == std::string::npos) {
    return MakeStatus(EndState::kInternal,
                      name + ": expected max_open_files, found none");
  }
  text.replace(at, line.size(),
               "\n  max_open_files=" +
                   std::to_string(final_options_.max_open_files) + "\n");
  return WriteDurably(file_system_.get(), dir_ + "/" + name, text);
}

Status TargetDb::ExpectNewOptionsFile() {
  std::string newest;
  const Status status =
      rocksdb::GetLatestOptionsFileName(dir_, env_.get(), &newest);
  if (status.ok() && newest != options_file_) {
    options_file_ = newest;
    return Status::OK();
  }
  uint64_t free_bytes = 1;
  const rocksdb::IOStatus asked = file_system_->GetFreeSpace(
      dir_, rocksdb::IOOptions(), &free_bytes, nullptr);
  const bool full = asked.ok() && free_bytes < kOptionsFileRoom;
  return MakeStatus(full ? EndState::kNoSpace : EndState::kInternal,
                    "OPTIONS of " + dir_ +
                        ": RocksDB could not write the file" +
                        (full ? ", the disk is full" : ""));
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
  return status.ok() ? RestoreMaxOpenFiles() : status;
}

}  // namespace sstferry
