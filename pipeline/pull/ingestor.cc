#include "pipeline/pull/ingestor.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "format/end_state.h"
#include "format/key_for_message.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/disk/durable.h"
#include "pipeline/pull/first_sequence.h"
#include "pipeline/pull/live_tables.h"
#include "rocksdb/comparator.h"
#include "rocksdb/metadata.h"
#include "rocksdb/snapshot.h"

namespace sstferry {

using rocksdb::IngestExternalFileArg;
using rocksdb::Status;

namespace {

// Minimum number of chunks in a call. They share its five syncs: one of the
// staging directory, one of the journal, two of the MANIFEST, and one of the
// database's directory.
constexpr size_t kLeastTogether = 2;
// A single chunk is ingested if this many times the duration of the last call
// have passed since that call. Single calls then take only a small share of the
// time.
constexpr int kRareCalls = 8;
// Assumed duration of a call before the first call, and minimum duration of any
// call.
constexpr std::chrono::milliseconds kCallGuess{50};
constexpr std::chrono::milliseconds kLeastCall{1};

// Returns true if a snapshot must be taken before the ingest. The snapshot
// makes RocksDB assign a new sequence number to every file. Without it, a file
// that overlaps no entry gets sequence 0. A range deletion at sequence 0
// deletes nothing, and RocksDB 7.8 fails an assertion when it compacts one.
// Returns false if a family uses universal compaction, because RocksDB would
// then put that family's files into level 0.
bool NeedsSequences(const std::vector<IngestExternalFileArg>& args,
                    rocksdb::DB* db) {
  return std::none_of(
      args.begin(), args.end(), [db](const IngestExternalFileArg& arg) {
        return db->GetOptions(arg.column_family).compaction_style ==
               rocksdb::kCompactionStyleUniversal;
      });
}

}  // namespace

Ingestor::Ingestor(rocksdb::DB* db, std::vector<IngestFamily> families,
                   JournalFile* journal, bool sync_journal, size_t max_waiting,
                   const IngestRules& rules)
    : db_(db),
      families_(std::move(families)),
      journal_(journal),
      sync_journal_(sync_journal),
      max_waiting_(max_waiting),
      rules_(rules),
      last_end_(Now()),
      last_duration_(kCallGuess) {}

std::chrono::steady_clock::time_point Ingestor::Now() const {
  return rules_.now ? rules_.now() : std::chrono::steady_clock::now();
}

// Over existing data, never ingests a single chunk, because each call blocks
// writers.
size_t Ingestor::LeastTogether() const {
  const bool is_rare = !rules_.over_data &&
                       Now() - last_end_ >= kRareCalls * last_duration_;
  return is_rare ? 1 : kLeastTogether;
}

Status Ingestor::Add(StagedChunk chunk, StageClock* clock) {
  // Append before status_ is checked. That is safe, because the journal returns
  // its own first failure.
  const Status recorded =
      journal_->Append(JournalRecordType::kChunk, chunk.record);
  std::unique_lock<std::mutex> lock(mu_);
  if (status_.ok() && !recorded.ok()) {
    status_ = recorded;
    changed_.notify_all();
  }
  {
    StageScope scope(clock, Stage::kIngest);
    changed_.wait(lock, [this] {
      return !status_.ok() || stopped_ || !ingesting_ ||
             waiting_.size() < max_waiting_;
    });
  }
  RETURN_IF_ERROR(status_);
  waiting_.push_back(std::move(chunk));
  if (!ingesting_) {
    IngestWaiting(LeastTogether(), &lock, clock);
  }
  return Verdict();
}

Status Ingestor::Flush(StageClock* clock) {
  std::unique_lock<std::mutex> lock(mu_);
  StageScope scope(clock, Stage::kIngest);
  changed_.wait(lock, [this] { return !ingesting_; });
  if (status_.ok() && !waiting_.empty()) {
    IngestWaiting(1, &lock, clock);
  }
  return Verdict();
}

void Ingestor::Stop() {
  std::lock_guard<std::mutex> lock(mu_);
  stopped_ = true;
  changed_.notify_all();
}

Status Ingestor::Verdict() const {
  return status_.ok() && stopped_
             ? MakeStatus(EndState::kCancelled, "ingest: stopped on request")
             : status_;
}

void Ingestor::FillSummary(Summary* summary) const {
  summary->ingest_calls = ingest_calls();
  summary->write_blocked_micros = CallMicros();
  summary->ingested_levels = IngestedLevels();
}

size_t Ingestor::deferred() const {
  std::lock_guard<std::mutex> lock(mu_);
  return received_.size();
}

uint64_t Ingestor::ingest_calls() const {
  std::lock_guard<std::mutex> lock(mu_);
  return ingest_calls_;
}

void Ingestor::IngestWaiting(size_t least, std::unique_lock<std::mutex>* lock,
                             StageClock* clock) {
  ingesting_ = true;
  while (status_.ok() && waiting_.size() >= (stopped_ ? 1 : least)) {
    std::vector<StagedChunk> batch;
    batch.swap(waiting_);
    const bool ingests = !stopped_;
    ingest_calls_ += ingests && !rules_.over_data ? 1 : 0;
    const auto begin = Now();
    lock->unlock();
    changed_.notify_all();
    Status status = CheckDisjoint(batch);
    if (status.ok()) {
      status = SyncRecords(batch, clock);
    }
    if (status.ok() && rules_.over_data) {
      Hold(batch);
    } else if (status.ok() && ingests) {
      status = Ingest(batch, clock);
    }
    lock->lock();
    status_ = status_.ok() ? status : status_;
    last_end_ = Now();
    last_duration_ = std::max<std::chrono::steady_clock::duration>(
        last_end_ - begin, kLeastCall);
  }
  ingesting_ = false;
  changed_.notify_all();
}

Status Ingestor::CheckDisjoint(const std::vector<StagedChunk>& batch) const {
  std::map<uint32_t, std::vector<const StagedChunk*>> by_family;
  for (const StagedChunk& chunk : batch) {
    by_family[chunk.family].push_back(&chunk);
  }
  for (auto& [family, chunks] : by_family) {
    const rocksdb::Comparator* order =
        families_[family].handle->GetComparator();
    std::sort(chunks.begin(), chunks.end(),
              [order](const StagedChunk* a, const StagedChunk* b) {
                return order->Compare(a->record.chunk.smallest,
                                      b->record.chunk.smallest) < 0;
              });
    for (size_t i = 1; i < chunks.size(); ++i) {
      const ChunkEnd& before = chunks[i - 1]->record.chunk;
      const ChunkEnd& after = chunks[i]->record.chunk;
      if (order->Compare(before.largest, after.smallest) >= 0) {
        return MakeStatus(EndState::kInternal,
                          "ingest: expected chunks that do not overlap, "
                          "found " + chunks[i - 1]->path + ", which ends at " +
                              KeyForMessage(before.largest) + ", and " +
                              chunks[i]->path + ", which begins at " +
                              KeyForMessage(after.smallest));
      }
    }
  }
  return Status::OK();
}

Status Ingestor::EndPart(const JournalPartDone& done) {
  return journal_->Append(JournalRecordType::kPartDone, done);
}

Status Ingestor::AddRecorded(const std::vector<StagedChunk>& chunks,
                                StageClock* clock) {
  if (chunks.empty()) {
    return Status::OK();
  }
  if (rules_.over_data) {
    Hold(chunks);
    return Status::OK();
  }
  {
    std::lock_guard<std::mutex> lock(mu_);
    ingest_calls_++;
  }
  RETURN_IF_ERROR(CheckDisjoint(chunks));
  return Ingest(chunks, clock);
}

void Ingestor::Hold(const std::vector<StagedChunk>& batch) {
  std::lock_guard<std::mutex> lock(mu_);
  received_.insert(received_.end(), batch.begin(), batch.end());
}

Status Ingestor::IngestDeferred(StageClock* clock) {
  std::vector<StagedChunk> received;
  {
    std::lock_guard<std::mutex> lock(mu_);
    received.swap(received_);
    ingest_calls_ += received.empty() ? 0 : 1;
  }
  const Status status = CheckDisjoint(received);
  return status.ok() && !received.empty() ? Ingest(received, clock) : status;
}

std::map<std::string, uint64_t> Ingestor::CallMicros() const {
  std::vector<uint64_t> micros;
  {
    std::lock_guard<std::mutex> lock(mu_);
    micros = call_micros_;
  }
  if (micros.empty()) {
    return {};
  }
  std::sort(micros.begin(), micros.end());
  return {{"p50", micros[(micros.size() - 1) / 2]},
          {"p99", micros[(micros.size() - 1) * 99 / 100]},
          {"max", micros.back()}};
}

std::map<int, uint64_t> Ingestor::IngestedLevels() const {
  std::lock_guard<std::mutex> lock(mu_);
  return ingested_levels_;
}

// Counts the levels of the batch's files after their ingest. RocksDB renames
// ingested files, so the files are found by their bounds and size. If an older
// file has the same bounds and size, the file with the lower level number is
// the new one.
void Ingestor::CountLevels(const std::vector<StagedChunk>& batch) {
  using Key = std::tuple<uint32_t, std::string, std::string, uint64_t>;
  std::set<Key> wanted;
  std::set<uint32_t> families;
  for (const StagedChunk& chunk : batch) {
    const ChunkEnd& end = chunk.record.chunk;
    wanted.emplace(chunk.family, end.smallest, end.largest, end.file_bytes);
    families.insert(chunk.family);
  }
  std::map<int, uint64_t> found;
  for (const uint32_t family : families) {
    rocksdb::ColumnFamilyMetaData metadata;
    db_->GetColumnFamilyMetaData(families_[family].handle, &metadata);
    for (const rocksdb::LevelMetaData& level : metadata.levels) {
      for (const rocksdb::SstFileMetaData& file : level.files) {
        if (wanted.erase({family, file.smallestkey, file.largestkey,
                          file.size}) != 0) {
          ++found[level.level];
        }
      }
    }
  }
  std::lock_guard<std::mutex> lock(mu_);
  for (const auto& [level, chunks] : found) {
    ingested_levels_[level] += chunks;
  }
}

Status Ingestor::SyncRecords(const std::vector<StagedChunk>& batch,
                             StageClock* clock) {
  StageScope scope(clock, Stage::kSync);
  FaultPoint("Ingestor:JournalAppended");
  Status status;
  if (sync_journal_) {
    // Sync the names of the files first. A record in the journal says that its
    // file exists.
    status = SyncDirectory(
        db_->GetFileSystem(),
        std::filesystem::path(batch.front().path).parent_path().string());
    FaultPoint("Ingestor:NamesSynced");
    status = status.ok() ? journal_->Sync() : status;
  }
  FaultPoint("Ingestor:JournalSynced");
  return status;
}

std::vector<IngestExternalFileArg> Ingestor::ArgumentsOf(
    const std::vector<StagedChunk>& batch) const {
  std::map<uint32_t, IngestExternalFileArg> by_family;
  for (const StagedChunk& chunk : batch) {
    const IngestFamily& family = families_[chunk.family];
    IngestExternalFileArg& arg = by_family[chunk.family];
    arg.column_family = family.handle;
    arg.options.move_files = true;
    arg.options.failed_move_fall_back_to_copy = false;
    arg.options.write_global_seqno = false;
    arg.options.allow_global_seqno = rules_.over_data || family.keeps_level0;
    arg.options.snapshot_consistency = true;
    arg.options.allow_blocking_flush = !rules_.over_data;
    arg.options.fail_if_not_bottommost_level =
        !rules_.over_data && !family.keeps_level0;
    arg.external_files.push_back(chunk.path);
  }
  std::vector<IngestExternalFileArg> args;
  for (auto& entry : by_family) {
    args.push_back(std::move(entry.second));
  }
  return args;
}

Status Ingestor::RecordIngested(const std::vector<StagedChunk>& batch) {
  for (const StagedChunk& chunk : batch) {
    JournalIngested ingested;
    ingested.part_id = chunk.record.chunk.part_id;
    ingested.ordinal = chunk.record.chunk.ordinal;
    RETURN_IF_ERROR(
        journal_->Append(JournalRecordType::kIngested, ingested));
  }
  return Status::OK();
}

Status Ingestor::Ingest(const std::vector<StagedChunk>& batch,
                        StageClock* clock) {
  StageScope scope(clock, Stage::kIngest);
  const std::vector<IngestExternalFileArg> args = ArgumentsOf(batch);
  Status status = Admit(batch);
  if (status.ok()) {
    status = rules_.over_data ? IngestOver(args)
                              : db_->IngestExternalFiles(args);
  }
  FaultPoint("Ingestor:Ingested");
  if (status.ok() && rules_.over_data) {
    CountLevels(batch);
    status = RecordIngested(batch);
  }
  return WithContext(status, EndStateOf(status),
                     "ingest of " + std::to_string(batch.size()) +
                         " chunks, the first " + batch.front().path);
}

Status Ingestor::Admit(const std::vector<StagedChunk>& batch) {
  uint64_t bytes = 0;
  for (const StagedChunk& chunk : batch) {
    bytes += chunk.record.chunk.file_bytes;
  }
  return rules_.admit ? rules_.admit(bytes) : Status::OK();
}

Status Ingestor::FlushFamilies(const std::vector<IngestExternalFileArg>& args) {
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  for (const IngestExternalFileArg& arg : args) {
    handles.push_back(arg.column_family);
  }
  rocksdb::FlushOptions options;
  options.allow_write_stall = false;
  options.wait = true;
  return db_->Flush(options, handles);
}

Status Ingestor::IngestOver(std::vector<IngestExternalFileArg> args) {
  // Raise the last sequence before a snapshot is taken below. While a snapshot
  // at sequence 0 exists, RocksDB's compactions drop entries.
  bool spent = false;
  RETURN_IF_ERROR(SpendFirstSequence(db_, HandlesOf(families_), &spent));
  std::optional<rocksdb::ManagedSnapshot> sequences;
  if (NeedsSequences(args, db_)) {
    sequences.emplace(db_);
  }
  // The first try fails with InvalidArgument if RocksDB must flush first, or,
  // since 9.9, with TryAgain if a write came between its flush and its ingest.
  // RocksDB has no status code for "flush first". So flush and try again after
  // both errors; a second error is final.
  Status status;
  for (const bool is_last : {false, true}) {
    if (is_last || !kIngestsOverMemtables) {
      RETURN_IF_ERROR(FlushFamilies(args));
    }
    for (IngestExternalFileArg& arg : args) {
      // In the last try, let RocksDB stall writers. Otherwise they may write
      // faster than a non-stalling flush can follow.
      arg.options.allow_blocking_flush = is_last;
    }
    const auto start = std::chrono::steady_clock::now();
    status = db_->IngestExternalFiles(args);
    const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::steady_clock::now() - start);
    if (status.ok()) {
      std::lock_guard<std::mutex> lock(mu_);
      call_micros_.push_back(static_cast<uint64_t>(micros.count()));
    }
    if (!status.IsInvalidArgument() && !status.IsTryAgain()) {
      break;
    }
  }
  return status;
}

}  // namespace sstferry
