#include "pipeline/target/ingestor.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "format/end_state.h"
#include "format/key_for_message.h"
#include "pipeline/target/durable.h"
#include "rocksdb/comparator.h"

namespace sstferry {

using rocksdb::Status;

namespace {

// The journal's sync, two of the MANIFEST and one of the directory are shared
// by at least so many chunks.
constexpr size_t kLeastTogether = 2;

}  // namespace

Ingestor::Ingestor(rocksdb::DB* db, std::vector<IngestFamily> families,
                   JournalFile* journal, bool sync_journal, size_t max_waiting)
    : db_(db),
      families_(std::move(families)),
      journal_(journal),
      sync_journal_(sync_journal),
      max_waiting_(max_waiting) {}

Status Ingestor::Add(StagedChunk chunk, StageClock* clock) {
  // A failure stays with the journal.
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
  if (!status_.ok()) {
    return status_;
  }
  waiting_.push_back(std::move(chunk));
  if (!ingesting_) {
    IngestWaiting(kLeastTogether, &lock, clock);
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
    ingest_calls_ += ingests ? 1 : 0;
    lock->unlock();
    changed_.notify_all();
    Status status = CheckDisjoint(batch);
    if (status.ok()) {
      status = SyncRecords(batch, clock);
    }
    if (status.ok() && ingests) {
      status = Ingest(batch, clock);
    }
    lock->lock();
    status_ = status;
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
                          "ingest: expected chunks that share no key, found " +
                              chunks[i - 1]->path + " up to " +
                              KeyForMessage(before.largest) + " and " +
                              chunks[i]->path + " from " +
                              KeyForMessage(after.smallest));
      }
    }
  }
  return Status::OK();
}

Status Ingestor::EndRange(const JournalRangeDone& done) {
  return journal_->Append(JournalRecordType::kRangeDone, done);
}

Status Ingestor::IngestRecorded(const std::vector<StagedChunk>& chunks,
                                StageClock* clock) {
  if (chunks.empty()) {
    return Status::OK();
  }
  {
    std::lock_guard<std::mutex> lock(mu_);
    ingest_calls_++;
  }
  const Status status = CheckDisjoint(chunks);
  return status.ok() ? Ingest(chunks, clock) : status;
}

Status Ingestor::SyncRecords(const std::vector<StagedChunk>& batch,
                             StageClock* clock) {
  StageScope scope(clock, Stage::kSync);
  FaultPoint("Ingestor:JournalAppended");
  Status status;
  if (sync_journal_) {
    // A record promises its file: the file's name must be durable, too.
    status = SyncDirectory(
        db_->GetFileSystem(),
        std::filesystem::path(batch.front().path).parent_path().string());
    FaultPoint("Ingestor:NamesSynced");
    status = status.ok() ? journal_->Sync() : status;
  }
  FaultPoint("Ingestor:JournalSynced");
  return status;
}

Status Ingestor::Ingest(const std::vector<StagedChunk>& batch,
                        StageClock* clock) {
  StageScope scope(clock, Stage::kIngest);
  std::map<uint32_t, rocksdb::IngestExternalFileArg> by_family;
  for (const StagedChunk& chunk : batch) {
    const IngestFamily& family = families_[chunk.family];
    rocksdb::IngestExternalFileArg& arg = by_family[chunk.family];
    arg.column_family = family.handle;
    arg.options.move_files = true;
    arg.options.failed_move_fall_back_to_copy = false;
    arg.options.write_global_seqno = false;
    arg.options.allow_global_seqno = family.keeps_level0;
    arg.options.fail_if_not_bottommost_level = !family.keeps_level0;
    arg.external_files.push_back(chunk.path);
  }
  std::vector<rocksdb::IngestExternalFileArg> args;
  for (auto& entry : by_family) {
    args.push_back(std::move(entry.second));
  }
  const Status status = db_->IngestExternalFiles(args);
  FaultPoint("Ingestor:Ingested");
  return WithContext(status, EndStateOf(status),
                     "ingest of " + std::to_string(batch.size()) +
                         " chunks, the first " + batch.front().path);
}

}  // namespace sstferry
