#include "tests/support/standby_world.h"

#include <filesystem>
#include <optional>

#include "format/rocksdb/log_follower.h"
#include "pipeline/base/file_source.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/base/stop_signal.h"
#include "pipeline/follow/promote.h"
#include "pipeline/snapshot/posix_files.h"
#include "pipeline/snapshot/snapshot_wals.h"
#include "tests/support/catch.h"

namespace sstferry::test {

using rocksdb::Status;

namespace {

Families TwoFamilies() {
  return {{"default", Quiet()}, {"other", Quiet()}};
}

std::map<uint64_t, std::string> WalsOf(const std::string& dir) {
  std::vector<std::string> names;
  REQUIRE_OK(ListDirectory(dir, &names));
  return WalsIn(names);
}

}  // namespace

bool AwaitThat(const std::function<bool()>& holds,
               std::chrono::seconds limit) {
  constexpr std::chrono::milliseconds kPause{20};
  const auto end = std::chrono::steady_clock::now() + limit;
  StopSignal pause;
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    pause.WaitFor(kPause);
  }
  return true;
}

Round ReadRoundOf(const std::string& source_dir, const FollowPosition& at,
                  uint64_t most_records) {
  Round round;
  uint64_t left = most_records;
  for (const auto& [number, name] : WalsOf(source_dir)) {
    if (number < at.wal_number || left == 0) {
      continue;
    }
    WalBytes log;
    log.wal_number = number;
    log.offset_bytes = number == at.wal_number ? at.wal_bytes : 0;
    std::unique_ptr<FileSource> source;
    REQUIRE_OK(FileSource::Open(rocksdb::FileSystem::Default().get(),
                                source_dir + "/" + name, &source));
    LogFollower follower(LogKind::kWal, number);
    uint64_t end = log.offset_bytes;
    REQUIRE_OK(follower.Follow(
        *source, [&](const rocksdb::Slice&, uint64_t record_end) {
          if (record_end > log.offset_bytes && left > 0) {
            end = record_end;
            left--;
          }
          return Status::OK();
        }));
    if (end == log.offset_bytes) {
      continue;
    }
    std::string scratch;
    rocksdb::Slice bytes;
    REQUIRE_OK(source->Read(log.offset_bytes,
                            static_cast<size_t>(end - log.offset_bytes),
                            &scratch, &bytes));
    log.bytes = bytes.ToString();
    REQUIRE_OK(source->Read(0, static_cast<size_t>(end), &scratch, &bytes));
    round.end.wal = DigestOf(bytes);
    round.logs.push_back(std::move(log));
  }
  round.end.read_micros = 1'000'000;
  return round;
}

Status CutStandby(const PullOptions& options, const CutRequest& request,
                  Standby* standby, StandbyAudit* audit) {
  std::unique_ptr<Endpoint> endpoint;
  RETURN_IF_ERROR(
      Endpoint::Open(EndpointFor(options.source, 1, options), &endpoint));
  WorkerSlot<Puller> slot;
  Summary summary;
  const Status status =
      MakeStandbyCut(options, request, endpoint->name(), endpoint->dialer(),
                     standby, &slot, &summary, audit);
  if (status.ok() && audit != nullptr) audit->Begin();
  return status;
}

Status PromoteIn(const std::string& dir, rocksdb::FileSystem* file_system) {
  Descriptor lock;
  RETURN_IF_ERROR(LockStandby(dir, &lock));
  Promotion promotion;
  return PromoteStandby(file_system, dir, /*force=*/false, std::nullopt,
                        &promotion);
}

uint64_t RequirePrefixIn(const std::string& path,
                         const rocksdb::DBOptions& given) {
  rocksdb::DBOptions options = given;
  options.create_if_missing = false;
  Families families = TwoFamilies();
  std::vector<std::string> names;
  REQUIRE_OK(rocksdb::DB::ListColumnFamilies(options, path, &names));
  for (const std::string& name : names) {
    if (name != "default" && name != "other") {
      families.push_back({name, Quiet()});
    }
  }
  OpenDb db(path, families, options);
  const uint64_t sequence = db->GetLatestSequenceNumber();
  HistoryModel model(2);
  INFO("sequence " << sequence);
  REQUIRE(model.AdvanceTo(sequence));
  for (size_t i = 0; i < 2; ++i) {
    std::map<std::string, std::string> found;
    const std::unique_ptr<rocksdb::Iterator> it(
        db->NewIterator(rocksdb::ReadOptions(), db.family(i)));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      found[it->key().ToString()] = it->value().ToString();
    }
    REQUIRE_OK(it->status());
    REQUIRE(found == model.family(i));
  }
  return sequence;
}

std::string ReadView(const std::string& link, HistoryModel* model,
                     uint64_t* sequence) {
  std::error_code error;
  const std::string path = std::filesystem::canonical(link, error).string();
  if (error) {
    return link + ": " + error.message();
  }
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  std::unique_ptr<rocksdb::DB> db;
  const Status opened = rocksdb::DB::OpenForReadOnly(
      rocksdb::DBOptions(), path, TwoFamilies(), &handles, IntoDb(&db));
  if (!opened.ok()) {
    return path + ": " + opened.ToString();
  }
  *sequence = db->GetLatestSequenceNumber();
  std::string wrong;
  if (!model->AdvanceTo(*sequence)) {
    wrong = path + ": no batch ends at sequence " + std::to_string(*sequence);
  }
  for (size_t i = 0; i < handles.size() && wrong.empty(); ++i) {
    std::map<std::string, std::string> found;
    const std::unique_ptr<rocksdb::Iterator> it(
        db->NewIterator(rocksdb::ReadOptions(), handles[i]));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      found[it->key().ToString()] = it->value().ToString();
    }
    if (!it->status().ok()) {
      wrong = path + ": " + it->status().ToString();
    } else if (found != model->family(i)) {
      wrong = path + ": other entries than at sequence " +
              std::to_string(*sequence);
    }
  }
  for (rocksdb::ColumnFamilyHandle* const handle : handles) {
    db->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  }
  return wrong;
}

uint64_t RequireView(const std::string& link) {
  HistoryModel model(2);
  uint64_t sequence = 0;
  REQUIRE(ReadView(link, &model, &sequence) == "");
  return sequence;
}

StandbyWorld::StandbyWorld(const rocksdb::DBOptions& options)
    : options_(options) {
  std::filesystem::create_directory(root());
  OpenSource();
}

void StandbyWorld::OpenSource() {
  rocksdb::DBOptions options = options_;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  db_ = std::make_unique<OpenDb>(source_dir(), TwoFamilies(), options);
}

void StandbyWorld::Write(uint64_t batches) {
  for (uint64_t i = 0; i < batches; ++i) {
    rocksdb::WriteBatch batch =
        ToWriteBatch(HistoryBatch(next_batch_++, 2), db_->families());
    REQUIRE_OK((*db_)->Write(rocksdb::WriteOptions(), &batch));
  }
}

PullOptions StandbyWorld::Options() const {
  PullOptions options;
  options.source.directory = source_dir();
  options.target_dir = dir();
  options.file_system = disk_;
  options.lanes = 1;
  return options;
}

Status StandbyWorld::Open() {
  standby_.reset();
  return Standby::Open(
      dir(), disk_ != nullptr ? disk_ : rocksdb::FileSystem::Default(),
      &standby_);
}

Status StandbyWorld::Cut(CutReason reason) {
  return CutStandby(Options(), {reason}, standby_.get());
}

Status StandbyWorld::Promote() const {
  const auto disk =
      disk_ != nullptr ? disk_ : rocksdb::FileSystem::Default();
  return PromoteIn(dir(), disk.get());
}

std::string StandbyWorld::newest_wal() const {
  return dir() + "/" + WalsOf(dir()).rbegin()->second;
}

FailedOver::FailedOver() {
  for (int i = 0; i < 4; ++i) {
    world_.Write(50);
    world_.source()->Flush();
  }
  world_.Write(10);
  REQUIRE_OK(world_.Open());
  REQUIRE_OK(world_.Cut());
  world_.CloseStandby();
  world_.Write(20);  // the standby never gets these
  old_sequence_ = world_.sequence();
  world_.CloseSource();
  REQUIRE_OK(world_.Promote());
  OpenDb promoted(new_dir(), TwoFamilies());
  promoted.Put("written since", "flushed");
  promoted.Flush();
  promoted.Put("written since", "logged", "other");
}

std::vector<std::string> FailedOver::KeptBeside(const std::string& dir) {
  namespace fs = std::filesystem;
  std::vector<std::string> kept;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(fs::path(dir).parent_path())) {
    if (entry.path().string().starts_with(dir + ".sstferry-old-")) {
      kept.push_back(entry.path().string());
    }
  }
  return kept;
}

void FailedOver::RequireSame(const std::string& a, const std::string& b) {
  for (const std::string family : {"default", "other"}) {
    INFO(family);
    REQUIRE(EntriesOf(a, TwoFamilies(), family) ==
            EntriesOf(b, TwoFamilies(), family));
  }
}

}  // namespace sstferry::test
