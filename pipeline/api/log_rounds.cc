#include "pipeline/api/log_rounds.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "format/end_state.h"
#include "pipeline/archive/archive.h"
#include "pipeline/archive/log_index.h"
#include "pipeline/archive/log_writer.h"
#include "pipeline/archive/push.h"
#include "pipeline/archive/remote_source.h"
#include "pipeline/archive/seal.h"
#include "pipeline/base/start_thread.h"
#include "pipeline/base/this_machine.h"
#include "pipeline/snapshot/options_text.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// Time for the last segment of a follower that is told to end.
constexpr std::chrono::seconds kLastPut{10};
// A file that is kept in memory while its set is pushed.
constexpr uint64_t kMaxKeptBytes = 1ull << 30;
constexpr size_t kReadBytes = 1u << 20;
// Logs that a follower tries to continue.
constexpr size_t kMaxCandidates = 8;

// A file in memory.
class MemoryFile : public SetFile {
 public:
  MemoryFile(const CloneFile& file, uint64_t unit_bytes,
             const std::string& bytes)
      : file_(file), unit_bytes_(unit_bytes), bytes_(bytes) {}
  uint64_t size() const override { return bytes_.size(); }
  [[nodiscard]] Status Read(uint64_t offset, size_t n, std::string* scratch,
                            Slice* out) const override {
    return SliceSource(bytes_).Read(offset, n, scratch, out);
  }
  [[nodiscard]] Status Digest(uint64_t offset, uint64_t bytes,
                              FileDigests* digests) override {
    digests->pieces.push_back(Sha256Of(Slice(bytes_.data() + offset, bytes)));
    if (offset + bytes == bytes_.size()) {
      UnitDigester units(file_, unit_bytes_);
      units.Add(bytes_);
      digests->units = units.units();
    }
    return Status::OK();
  }

 private:
  const CloneFile& file_;
  const uint64_t unit_bytes_;
  const std::string& bytes_;
};

// A source whose MANIFEST and OPTIONS were read before: they say where the cut
// is, and what it promises.
class CutSource : public SetSource {
 public:
  explicit CutSource(SetSource* source) : source_(source) {}

  [[nodiscard]] Status ReadPosition() {
    const std::vector<ArchivedFile>& files = source_->set().files;
    for (size_t i = 0; i < files.size(); ++i) {
      const CloneFile& file = files[i].file;
      if (file.kind == CloneFileKind::kManifest) {
        manifest_ = i;
        position_.manifest_number = file.number;
        position_.manifest_bytes = file.records_end;
      } else if (file.kind == CloneFileKind::kWal &&
                 file.number > position_.wal_number) {
        position_.wal_number = file.number;
        position_.wal_bytes = file.records_end;
      }
    }
    for (size_t i = 0; i < files.size(); ++i) {
      if (i == manifest_ || files[i].file.kind == CloneFileKind::kOptions) {
        RETURN_IF_ERROR(Keep(i));
      }
    }
    position_.manifest = ManifestBegin(position_.manifest_bytes);
    return Status::OK();
  }
  const FollowPosition& position() const { return position_; }
  // True if the MANIFEST begins as another cut's.
  bool Continues(const FollowPosition& earlier) const {
    return earlier.manifest_number == position_.manifest_number &&
           earlier.manifest_bytes <= position_.manifest_bytes &&
           ManifestBegin(earlier.manifest_bytes) == earlier.manifest;
  }
  std::vector<std::string> FilteredFamilies() const {
    std::string options;
    for (const auto& [file, bytes] : kept_) {
      if (file != manifest_) options += bytes;
    }
    return OptionsText(options).FilteredFamilies();
  }

  const ArchiveSet& set() const override { return source_->set(); }
  [[nodiscard]] Status Open(size_t file,
                            std::unique_ptr<SetFile>* opened) override {
    const auto kept = kept_.find(file);
    if (kept == kept_.end()) {
      return source_->Open(file, opened);
    }
    *opened = std::make_unique<MemoryFile>(set().files[file].file,
                                           set().unit_bytes, kept->second);
    return Status::OK();
  }
  [[nodiscard]] Status Finish() override { return source_->Finish(); }

 private:
  Digest128 ManifestBegin(uint64_t bytes) const {
    return DigestOf(Slice(kept_.at(manifest_).data(), bytes));
  }

  [[nodiscard]] Status Keep(size_t index) {
    const uint64_t bytes_of_it = source_->set().files[index].file.bytes;
    if (bytes_of_it > kMaxKeptBytes) {
      return MakeStatus(EndState::kRefused,
                        "cut: expected a MANIFEST and OPTIONS of at most " +
                            std::to_string(kMaxKeptBytes) +
                            " bytes, found " + std::to_string(bytes_of_it));
    }
    std::string& kept = kept_[index];
    std::unique_ptr<SetFile> file;
    RETURN_IF_ERROR(source_->Open(index, &file));
    FileDigests digests;
    std::string scratch;
    return ForEachPiece(file->size(), [&](uint64_t offset, uint64_t bytes) {
      RETURN_IF_ERROR(file->Digest(offset, bytes, &digests));
      for (uint64_t at = 0; at < bytes;) {
        Slice piece;
        RETURN_IF_ERROR(file->Read(
            offset + at,
            static_cast<size_t>(std::min<uint64_t>(kReadBytes, bytes - at)),
            &scratch, &piece));
        kept.append(piece.data(), piece.size());
        at += piece.size();
      }
      return Status::OK();
    });
  }

  SetSource* const source_;
  size_t manifest_ = 0;  // its place among the files
  std::map<size_t, std::string> kept_;  // files, by place
  FollowPosition position_;
};

class LogRounds : public RoundTarget {
 public:
  LogRounds(const FollowOptions& options,
            const std::unique_ptr<Endpoint>* endpoint, StoreOpener open)
      : options_(options), endpoint_(endpoint), open_(std::move(open)) {}
  ~LogRounds() override {
    Cancel();
    JoinPush();
  }
  [[nodiscard]] Status Open();

  bool exists() const override { return writer() != nullptr; }
  FollowPosition position() const override;
  bool exact_filters() const override { return options_.exact_filters; }
  FollowJudged judged() const override;
  Status Append(const FollowPosition& asked, const Round& round) override;
  Status Sync() override;
  // A log does not tell.
  Status ForgetClosed() override { return Status::OK(); }
  Status Cut(const CutRequest& request) override;
  // A cut only pins.
  void DropCut() override {}
  void Renew() override {}
  void Cancel() override;
  uint64_t cut_micros() const override { return cut_micros_; }
  uint64_t replay_bytes() const override { return replay_bytes_; }
  StandbyState state() const override;

 private:
  // The end of a log that may be continued.
  struct Candidate {
    LogHead head;
    Sha256Digest digest{};
  };
  // A snapshot that is pushed.
  struct Push {
    std::unique_ptr<BorrowedDialer> dialer;
    std::unique_ptr<RemoteSource> remote;
    std::unique_ptr<CutSource> source;
    SetId id{};
    SetLog log;
    uint64_t moment = 0;
    std::shared_ptr<LogWriter> writer;  // of the log
  };

  std::shared_ptr<LogWriter> writer() const {
    const std::lock_guard<std::mutex> lock(mu_);
    return writer_;
  }
  LogWriterOptions WriterOptions() const;
  [[nodiscard]] Status FindCandidates();
  [[nodiscard]] Status Pin(Push* push);
  void RunPush();
  void JoinPush() {
    if (pusher_.joinable()) pusher_.join();
  }
  // Returns the failure of a push once.
  [[nodiscard]] Status TakeFailure() {
    const std::lock_guard<std::mutex> lock(mu_);
    return std::exchange(failed_, Status::OK());
  }
  void Log(LogLevel level, const std::string& text) const {
    if (options_.pull.log) options_.pull.log(level, text);
  }

  const FollowOptions& options_;
  const std::unique_ptr<Endpoint>* const endpoint_;
  const StoreOpener open_;
  std::unique_ptr<ObjectStore> store_;
  std::shared_ptr<SealKey> key_;  // null: nothing is sealed
  ArchiveHead head_;
  std::string place_;
  std::atomic<bool> cancelled_{false};
  std::atomic<uint64_t> cut_micros_{0};
  std::atomic<uint64_t> replay_bytes_{0};

  std::mutex cut_mu_;  // one cut at a time
  std::thread pusher_;
  std::unique_ptr<Push> push_;  // of the thread, while it runs

  mutable std::mutex mu_;
  // Under mu_, all below.
  std::deque<Candidate> candidates_;
  std::shared_ptr<LogWriter> writer_;  // null: a candidate, or a cut, is next
  RemoteSource* remote_ = nullptr;     // that may be cancelled
  Status failed_;
  uint64_t set_micros_ = 0;  // of the newest set that was pushed
  std::string source_database_id_;
  std::optional<std::vector<std::string>> filtered_families_;
  CutReason reason_ = CutReason::kNone;
  std::map<std::string, uint64_t> cuts_;
  LogState earlier_;  // of the lineages of this run that ended
};

LogWriterOptions LogRounds::WriterOptions() const {
  LogWriterOptions writer;
  writer.segment_bytes = options_.segment_bytes;
  writer.has_if_absent = head_.has_if_absent;
  writer.key = key_.get();
  writer.max_gap_micros = static_cast<uint64_t>(
      std::chrono::microseconds(options_.max_gap).count());
  writer.host = HostName();
  writer.software = "sstferry " SSTFERRY_VERSION;
  return writer;
}

Status LogRounds::Open() {
  if (!options_.store.key_file.empty()) {
    RETURN_IF_ERROR(SealKey::Read(options_.store.key_file, &key_));
  }
  RETURN_IF_ERROR(open_(Clock::time_point::max(), &store_));
  place_ = store_->place();
  RETURN_IF_ERROR(Archive(store_.get()).ReadHead(&head_));
  return FindCandidates();
}

// The ends of all paths, the latest first.
Status LogRounds::FindCandidates() {
  const Archive archive(store_.get(), key_.get());
  ArchiveLog log;
  RETURN_IF_ERROR(ReadLog(archive, &log));
  std::map<LogKey, uint64_t> ends;  // by the moment of their newest sets
  for (const LoggedSet& set : log.sets) {
    for (const LogPath& path : log.PathsOf(set.log)) {
      if (!path.segments.empty() && path.ended == CutReason::kNone) {
        ends[path.segments.back()] = set.log.moment_micros;
      }
    }
  }
  std::vector<std::pair<uint64_t, LogKey>> newest;
  for (const auto& [key, moment] : ends) {
    newest.emplace_back(moment, key);
  }
  std::sort(newest.rbegin(), newest.rend());
  for (const auto& [moment, key] : newest) {
    Candidate candidate;
    uint64_t bytes = 0;
    const Status status = ReadLogHead(archive, key, &candidate.head,
                                      &candidate.digest, &bytes);
    if (EndStateOf(status) == EndState::kCorrupt) {
      Log(LogLevel::kWarning, MessageOf(status));
      continue;
    }
    RETURN_IF_ERROR(status);
    if (candidate.head.is_sealed && key_ == nullptr) {
      continue;
    }
    if (candidates_.size() < kMaxCandidates) {
      candidates_.push_back(std::move(candidate));
      cut_micros_ = std::max<uint64_t>(cut_micros_, moment);
    }
  }
  return Status::OK();
}

FollowPosition LogRounds::position() const {
  const std::lock_guard<std::mutex> lock(mu_);
  return writer_ != nullptr       ? writer_->position()
         : candidates_.empty() ? FollowPosition()
                               : candidates_.front().head.end();
}

FollowJudged LogRounds::judged() const {
  const std::lock_guard<std::mutex> lock(mu_);
  return writer_ != nullptr       ? writer_->judged()
         : candidates_.empty() ? FollowJudged()
                               : candidates_.front().head.judged;
}

Status LogRounds::Append(const FollowPosition& asked, const Round& round) {
  RETURN_IF_ERROR(TakeFailure());
  std::shared_ptr<LogWriter> writer;
  {
    const std::lock_guard<std::mutex> lock(mu_);
    if (writer_ == nullptr && !candidates_.empty() &&
        asked == candidates_.front().head.end()) {
      writer_ = std::make_shared<LogWriter>(
          RandomSetId(), candidates_.front().head, candidates_.front().digest,
          WriterOptions());
      Log(LogLevel::kInfo, "continues the log behind " +
                               LogKeyText(candidates_.front().head.key));
      candidates_.clear();
    }
    writer = writer_;
  }
  if (writer == nullptr || writer->position() != asked) {
    return Status::OK();
  }
  if (writer->is_full()) {
    RETURN_IF_ERROR(writer->Put(store_.get()));
  }
  std::vector<LogPart> parts;
  for (const LogBytes& log : round.logs) {
    parts.push_back({log.wal_number, log.offset_bytes, log.bytes});
    replay_bytes_ += log.bytes.size();
  }
  return writer->Append(parts, round.end);
}

Status LogRounds::Sync() {
  const std::shared_ptr<LogWriter> log = writer();
  if (log == nullptr) {
    return Status::OK();
  }
  if (!cancelled_) {
    const Status status = log->Put(store_.get());
    const EndState state = EndStateOf(status);
    if (status.ok() || state == EndState::kCorrupt ||
        state == EndState::kRefused || state == EndState::kBusy) {
      return status;
    }
    // The next one tries again.
    if (!cancelled_) {
      Log(LogLevel::kWarning, MessageOf(status) + "; tries again");
    }
    return Status::OK();
  }
  std::unique_ptr<ObjectStore> last;
  RETURN_IF_ERROR(open_(Clock::now() + kLastPut, &last));
  return log->Put(last.get());
}

Status LogRounds::Pin(Push* push) {
  push->dialer = std::make_unique<BorrowedDialer>((*endpoint_)->dialer());
  RemoteSourceOptions remote;
  remote.database = (*endpoint_)->name();
  remote.place = place_;
  remote.lanes = options_.pull.lanes;
  remote.timeouts = options_.pull.timeouts;
  remote.log = options_.pull.log;
  push->remote = std::make_unique<RemoteSource>(push->dialer.get(), remote);
  {
    const std::lock_guard<std::mutex> lock(mu_);
    if (cancelled_) {
      return MakeStatus(EndState::kCancelled, "stopped on request");
    }
    remote_ = push->remote.get();
  }
  RETURN_IF_ERROR(push->remote->Connect());
  push->source = std::make_unique<CutSource>(push->remote.get());
  return push->source->ReadPosition();
}

Status LogRounds::Cut(const CutRequest& request) {
  const std::lock_guard<std::mutex> one(cut_mu_);
  {
    const std::lock_guard<std::mutex> lock(mu_);
    if (writer_ == nullptr && !candidates_.empty()) {
      Log(LogLevel::kInfo,
          "cannot continue the log behind " +
              LogKeyText(candidates_.front().head.key) + " (" +
              CutReasonName(request.reason) + ")");
      candidates_.pop_front();
      return Status::OK();  // the next position is asked for
    }
  }
  JoinPush();
  RETURN_IF_ERROR(TakeFailure());
  std::shared_ptr<LogWriter> log = writer();
  const bool continues = request.continues() && log != nullptr;
  if (log != nullptr && !continues) {
    RETURN_IF_ERROR(log->End(store_.get(), request.reason, request.note));
    const std::lock_guard<std::mutex> lock(mu_);
    const LogState state = log->state();
    earlier_.segments += state.segments;
    earlier_.bytes += state.bytes;
    earlier_.gaps += state.gaps + 1;
    writer_.reset();
  }
  auto push = std::make_unique<Push>();
  // The set holds all that was gathered before this segment.
  const uint64_t segment = continues ? log->segment() : 1;
  const Status pinned = Pin(push.get());
  const std::lock_guard<std::mutex> lock(mu_);
  if (!pinned.ok()) {
    remote_ = nullptr;
    return pinned;
  }
  const uint64_t moment = MicrosNow();
  push->id = RandomSetId();
  push->moment = moment;
  if (!continues) {
    push->log = {push->id, 1, moment};
    writer_ = std::make_shared<LogWriter>(push->id, push->source->position(),
                                          moment, WriterOptions());
  } else if (push->source->Continues(log->position())) {
    push->log = {log->lineage(), segment, moment};
  }
  push->writer = writer_;
  source_database_id_ = push->source->set().database_id;
  filtered_families_ = options_.exact_filters
                           ? std::vector<std::string>()
                           : push->source->FilteredFamilies();
  reason_ = request.reason;
  ++cuts_[CutReasonName(request.reason)];
  cut_micros_ = moment;
  replay_bytes_ = 0;
  push_ = std::move(push);
  return StartThread([this] { RunPush(); }, &pusher_);
}

void LogRounds::RunPush() {
  PushOptions push;
  push.label = options_.label;
  push.adopt = options_.adopt;
  push.host = HostName();
  push.software = "sstferry " SSTFERRY_VERSION;
  push.lanes = static_cast<int>(options_.pull.lanes);
  push.new_id = [this] { return push_->id; };
  push.log = push_->log;
  const std::shared_ptr<LogWriter> log = push_->writer;
  push.next_segment = [log] { return log->next_to_put(); };
  push.cancelled = [this] { return cancelled_.load(); };
  PushSummary summary;
  const Status status = PushSet(Archive(store_.get(), key_.get()),
                                push_->source.get(), push, &summary);
  std::unique_ptr<Push> done = std::move(push_);
  {
    const std::lock_guard<std::mutex> lock(mu_);
    remote_ = nullptr;
    if (!status.ok() && !cancelled_) {
      failed_ = status;
      // Nothing can be restored of a log whose set is not there.
      if (writer_ != nullptr && writer_->lineage() == done->id) {
        writer_.reset();
      }
    }
    if (status.ok()) set_micros_ = done->moment;
  }
  if (status.ok()) {
    Log(LogLevel::kInfo, "pushed the set " + SetNameText(summary.name));
  }
}

void LogRounds::Cancel() {
  cancelled_ = true;
  const std::lock_guard<std::mutex> lock(mu_);
  if (remote_ != nullptr) remote_->Cancel();
  if (store_ != nullptr) store_->Cancel();
}

StandbyState LogRounds::state() const {
  StandbyState state;
  state.is_archive = true;
  state.dir = place_;
  state.source = options_.pull.source.ToString();
  state.cut_micros = cut_micros_;
  const std::lock_guard<std::mutex> lock(mu_);
  state.is_pushing = remote_ != nullptr;
  state.filtered_families = filtered_families_;
  state.source_database_id = source_database_id_;
  state.cut_reason = CutReasonName(reason_);
  state.cuts = cuts_;
  const LogState log = writer_ != nullptr ? writer_->state() : LogState();
  state.sequence = log.last_sequence;
  state.durable_sequence = log.put_sequence;
  state.moment_micros = log.seen_micros;
  // A source that does not write has no segments behind its set.
  state.put_micros = std::max(log.put_micros, set_micros_);
  state.segments = earlier_.segments + log.segments;
  state.segment_bytes = earlier_.bytes + log.bytes;
  state.gaps = earlier_.gaps + log.gaps;
  state.unput_bytes = log.unput_bytes;
  state.unput_micros = log.unput_micros;
  return state;
}

}  // namespace

Status OpenLogRounds(const FollowOptions& options,
                     const std::unique_ptr<Endpoint>* endpoint,
                     const StoreOpener& open,
                     std::unique_ptr<RoundTarget>* target) {
  auto rounds = std::make_unique<LogRounds>(options, endpoint, open);
  RETURN_IF_ERROR(rounds->Open());
  *target = std::move(rounds);
  return Status::OK();
}

}  // namespace sstferry
