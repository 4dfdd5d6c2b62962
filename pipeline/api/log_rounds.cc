#include "pipeline/api/log_rounds.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "format/end_state.h"
#include "format/history.h"
#include "format/rocksdb/log_follower.h"
#include "format/rocksdb/wal_end.h"
#include "pipeline/archive/archive.h"
#include "pipeline/archive/log_index.h"
#include "pipeline/archive/log_writer.h"
#include "pipeline/archive/push.h"
#include "pipeline/archive/remote_source.h"
#include "pipeline/archive/seal.h"
#include "pipeline/base/start_thread.h"
#include "pipeline/base/this_machine.h"
#include "pipeline/options/options_text.h"
#include "pipeline/options/unknown_options.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// When a follower is stopped, it may take this long to store its last segments.
// Must be less than TimeoutStopSec of sstferry-follow@.service and the grace
// period of MakePod().
constexpr std::chrono::seconds kLastPut{40};
// If a file of a set is larger, it is not kept in memory while the set is
// pushed.
constexpr uint64_t kMaxKeptBytes = 1ull << 30;
// If a WAL is larger, it is not kept in memory, but read twice.
constexpr uint64_t kMaxKeptWalBytes = 64u << 20;
constexpr size_t kReadBytes = 1u << 20;
// A follower tries to continue at most this many logs.
constexpr size_t kMaxCandidates = 8;
// After so many segments, counts the segments in the archive again. The number
// may have changed, because other followers put segments and prunes delete
// them.
constexpr uint64_t kCountEvery = 1u << 16;

// The source of a set. Reads the MANIFEST, the OPTIONS and the newest WAL
// before the set is pushed, to find the cut's position and history.
class CutSource : public SetSource, public History {
 public:
  explicit CutSource(SetSource* source) : source_(source) {}

  // Reads the cut's position. Also computes the digests of the cut's WALs up to
  // each place in `places`; these are places that a log has reached.
  [[nodiscard]] Status ReadPosition(const std::vector<LogPlace>& places) {
    position_.database_id = set().database_id;
    const std::vector<ArchivedFile>& files = set().files;
    std::vector<CloneFile> listed;
    for (size_t i = 0; i < files.size(); ++i) {
      const CloneFile& file = files[i].file;
      listed.push_back(file);
      if (file.kind == CloneFileKind::kManifest) {
        manifest_ = i;
        position_.manifest_number = file.number;
        position_.cut_bytes = file.records_end;
        position_.manifest_bytes = file.records_end;
      }
      if (file.kind == CloneFileKind::kManifest ||
          file.kind == CloneFileKind::kOptions) {
        RETURN_IF_ERROR(Keep(i));
      }
    }
    position_.manifest = DigestOf(
        Slice(kept_.at(manifest_).data(), position_.manifest_bytes));
    for (const LogPlace& place : places) {
      wanted_[place.wal_number].insert(place.wal_bytes);
    }
    WalEnd end;
    const OpenWal open = [this](const CloneFile& file,
                                std::unique_ptr<ByteSource>* wal) {
      RETURN_IF_ERROR(ScanWal(file.number));
      *wal = std::make_unique<SliceSource>(wals_[file.number].begin);
      return Status::OK();
    };
    RETURN_IF_ERROR(FindWalEnd(listed, open, &end));
    position_.wal_number = end.number;
    position_.wal_bytes = end.bytes;
    if (end.bytes > 0) position_.wal = wals_[end.number].digests[end.bytes];
    return Status::OK();
  }
  const FollowPosition& position() const { return position_; }
  // Returns the first block of the cut's last WAL.
  Slice WalBegin() const {
    const auto wal = wals_.find(position_.wal_number);
    return wal == wals_.end()
               ? Slice()
               : Slice(wal->second.begin.data(),
                       std::min<size_t>(wal->second.begin.size(),
                                        kLogBlockBytes));
  }
  // Checks if the cut continues a log. `from` is the position that the log had
  // reached before the cut was taken. Compares the digests at the newest place
  // of the log that the cut contains.
  [[nodiscard]] Status FindStandingOf(FollowPosition from,
                                      const std::vector<LogPlace>& places,
                                      Standing* standing) {
    *standing = Standing::kNotHeld;
    for (auto place = places.rbegin(); place != places.rend(); ++place) {
      const std::optional<size_t> file = FileOf(place->wal_number);
      if (file.has_value() &&
          place->wal_bytes <= set().files[*file].file.records_end) {
        from.wal_number = place->wal_number;
        from.wal_bytes = place->wal_bytes;
        from.wal = place->wal;
        break;
      }
    }
    RETURN_IF_ERROR(ScanWal(from.wal_number));
    return FindStanding(from, *this, standing);
  }
  const std::string& database_id() const override {
    return set().database_id;
  }
  uint64_t manifest_number() const override {
    return position_.manifest_number;
  }
  [[nodiscard]] Status ManifestBegin(uint64_t bytes, FileBegin* begin,
                                     Digest128* digest) const override {
    *begin = bytes > position_.manifest_bytes ? FileBegin::kShort
                                              : FileBegin::kKnown;
    if (*begin == FileBegin::kKnown) {
      *digest = DigestOf(Slice(kept_.at(manifest_).data(), bytes));
    }
    return Status::OK();
  }
  [[nodiscard]] Status WalBegin(uint64_t number, uint64_t bytes,
                                FileBegin* begin,
                                Digest128* digest) const override {
    *begin = FileBegin::kGone;
    if (const auto wal = wals_.find(number); wal != wals_.end()) {
      const auto found = wal->second.digests.find(bytes);
      *begin = found == wal->second.digests.end() ? FileBegin::kShort
                                                  : FileBegin::kKnown;
      if (*begin == FileBegin::kKnown) *digest = found->second;
    }
    return Status::OK();
  }
  [[nodiscard]] Status IsWalFlushed(uint64_t number, uint64_t manifest_bytes,
                                    bool* is_flushed) const override {
    return IsFlushedBy(SliceSource(kept_.at(manifest_)), manifest_bytes,
                       number, is_flushed);
  }
  std::string OptionsOfSet() const {
    std::string options;
    for (const auto& [file, bytes] : kept_) {
      if (set().files[file].file.kind == CloneFileKind::kOptions) {
        options += bytes;
      }
    }
    return options;
  }

  const ArchiveSet& set() const override { return source_->set(); }
  [[nodiscard]] Status Open(size_t file,
                            std::unique_ptr<SetFile>* opened) override {
    const auto kept = kept_.find(file);
    if (kept == kept_.end()) {
      return source_->Open(file, opened);
    }
    *opened = std::make_unique<DigestedFile>(
        std::make_unique<SliceSource>(kept->second), set().files[file].file,
        set().unit_bytes);
    return Status::OK();
  }
  [[nodiscard]] Status Finish() override { return source_->Finish(); }

 private:
  // The parts of a WAL that were read.
  struct Wal {
    std::string begin;  // bytes up to the first record, or more
    // Digests of the first bytes; the key is their length.
    std::map<uint64_t, Digest128> digests;
  };

  std::optional<size_t> FileOf(uint64_t wal_number) const {
    const std::vector<ArchivedFile>& files = set().files;
    for (size_t i = 0; i < files.size(); ++i) {
      if (files[i].file.kind == CloneFileKind::kWal &&
          files[i].file.number == wal_number) {
        return i;
      }
    }
    return std::nullopt;
  }

  // Reads a WAL of the cut if it was not read before. Does nothing if the cut
  // does not have this WAL.
  [[nodiscard]] Status ScanWal(uint64_t number) {
    const std::optional<size_t> index = FileOf(number);
    if (!index.has_value() || wals_.contains(number)) {
      return Status::OK();
    }
    const CloneFile& file = set().files[*index].file;
    std::set<uint64_t> wanted = wanted_[number];
    wanted.insert(file.records_end);
    wanted.erase(wanted.upper_bound(file.records_end), wanted.end());
    Wal wal;
    wal.digests[0] = Digest128();
    Digest128Stream digest;
    uint64_t at = 0;
    bool has_record = false;
    std::string kept;
    const bool keeps = file.bytes <= kMaxKeptWalBytes;
    const auto take = [&](Slice piece) {
      if (keeps) kept.append(piece.data(), piece.size());
      if (!has_record) {
        wal.begin.append(piece.data(), piece.size());
        RETURN_IF_ERROR(
            HasRecord(SliceSource(wal.begin), number,
                      std::min<uint64_t>(wal.begin.size(), file.records_end),
                      &has_record));
      }
      while (!piece.empty()) {
        const auto next = wanted.upper_bound(at);
        const size_t bytes =
            next == wanted.end()
                ? piece.size()
                : std::min<size_t>(piece.size(),
                                   static_cast<size_t>(*next - at));
        digest.Add(Slice(piece.data(), bytes));
        piece.remove_prefix(bytes);
        at += bytes;
        if (wanted.contains(at)) wal.digests[at] = digest.Finish();
      }
      return Status::OK();
    };
    RETURN_IF_ERROR(ReadAll(*index, take));
    if (keeps) kept_[*index] = std::move(kept);
    wals_[number] = std::move(wal);
    return Status::OK();
  }

  [[nodiscard]] Status Keep(size_t index) {
    const uint64_t bytes_of_it = source_->set().files[index].file.bytes;
    if (bytes_of_it > kMaxKeptBytes) {
      return MakeStatus(EndState::kRefused,
                        "cut: expected a MANIFEST or OPTIONS file of at most " +
                            std::to_string(kMaxKeptBytes) +
                            " bytes, found one of " +
                            std::to_string(bytes_of_it) +
                            "; when the application opens the database again, "
                            "RocksDB begins a new MANIFEST");
    }
    std::string& kept = kept_[index];
    return ReadAll(index, [&kept](const Slice& piece) {
      kept.append(piece.data(), piece.size());
      return Status::OK();
    });
  }

  [[nodiscard]] Status ReadAll(
      size_t index, const std::function<Status(const Slice&)>& take) {
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
        RETURN_IF_ERROR(take(piece));
        at += piece.size();
      }
      return Status::OK();
    });
  }

  SetSource* const source_;
  size_t manifest_ = 0;  // index of the MANIFEST among the set's files
  // Contents of files; the key is the file's index.
  std::map<size_t, std::string> kept_;
  // Offsets whose digests are wanted; the key is the WAL's number.
  std::map<uint64_t, std::set<uint64_t>> wanted_;
  std::map<uint64_t, Wal> wals_;
  FollowPosition position_;
};

class LogRounds : public RoundTarget {
 public:
  LogRounds(const FollowOptions& options,
            const std::unique_ptr<Endpoint>* endpoint, StoreOpener open,
            std::function<uint64_t()> now_micros, uint64_t max_segments)
      : options_(options),
        endpoint_(endpoint),
        open_(std::move(open)),
        now_micros_(std::move(now_micros)),
        max_segments_(max_segments) {}
  ~LogRounds() override {
    Cancel();
    JoinPush();
  }
  [[nodiscard]] Status Open();

  bool exists() const override { return writer() != nullptr; }
  FollowPosition position() const override;
  bool exact_filters() const override { return options_.exact_filters; }
  Gap gap() const override {
    const std::shared_ptr<LogWriter> log = writer();
    return log != nullptr ? log->gap() : Gap();
  }
  Status Append(const FollowPosition& asked, const Round& round) override;
  Status Sync() override;
  // These functions do nothing, because a log does not record when the source
  // answered.
  Status MarkHeard() override { return Status::OK(); }
  void Ask() override {}
  void HearBytes(bool) override {}
  void Hear(const Round&) override {}
  Status ForgetClosed() override { return Status::OK(); }
  Status Cut(const CutRequest& request) override;
  // Does nothing, because a cut of a log only pins a snapshot, which cannot be
  // stopped.
  void DropCut() override {}
  void Renew() override {}
  void Cancel() override;
  uint64_t cut_micros() const override { return cut_micros_; }
  uint64_t replay_bytes() const override { return replay_bytes_; }
  StandbyState state() const override;

 private:
  // The end of a log in the archive. The follower may continue this log.
  struct Candidate {
    LogHead head;
    Sha256Digest digest{};
  };
  // A snapshot that a thread pushes as a set.
  struct Push {
    std::unique_ptr<BorrowedDialer> dialer;
    std::unique_ptr<RemoteSource> remote;
    std::unique_ptr<CutSource> source;
    SetId id{};
    SetLog log;
    // The snapshot was taken between these two times, by this machine's clock.
    uint64_t asked_micros = 0;
    uint64_t moment = 0;
    uint64_t sequence = 0;  // sequence number of the snapshot
    std::vector<LogPlace> places;
    std::shared_ptr<LogWriter> writer;  // writes the log of this set
  };

  std::shared_ptr<LogWriter> writer() const {
    const std::lock_guard<std::mutex> lock(mu_);
    return writer_;
  }
  LogWriterOptions WriterOptions() const;
  // Stores the collected segment, unless the archive already has its maximum
  // number of segments.
  [[nodiscard]] Status PutSegment(const std::shared_ptr<LogWriter>& log);
  [[nodiscard]] Status CheckSegments();
  // Checks that a store has the archive with which this follower began. In
  // another archive, the segments would continue no log and follow no set.
  [[nodiscard]] Status CheckSameArchive(ObjectStore* store) const;
  [[nodiscard]] Status FindCandidates();
  // Pins a snapshot. `log` is the log that the snapshot may continue; null:
  // none.
  [[nodiscard]] Status Pin(const LogWriter* log, Push* push);
  [[nodiscard]] Status EndCandidate(const CutRequest& request);
  [[nodiscard]] Status EndLog(const std::shared_ptr<LogWriter>& log,
                              CutReason reason, const std::string& note);
  void SayOfClock(const LogKey& key, uint64_t end_micros, uint64_t now) const;
  // REQUIRES for the next three: the caller has locked mu_.
  void NoteTime(uint64_t micros, uint64_t now);
  void ForgetWriter();
  uint64_t MomentOfCut();
  void RunPush(const std::shared_ptr<Push>& pushed);
  void JoinPush() {
    if (pusher_.joinable()) pusher_.join();
  }
  // Returns the failure of the last push, and then forgets it.
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
  const std::function<uint64_t()> now_micros_;
  const uint64_t max_segments_;
  std::unique_ptr<ObjectStore> store_;
  std::shared_ptr<SealKey> key_;  // null: nothing is sealed
  ArchiveHead head_;
  std::string place_;
  std::atomic<bool> cancelled_{false};
  std::atomic<uint64_t> cut_micros_{0};
  std::atomic<uint64_t> replay_bytes_{0};

  std::mutex cut_mu_;  // allows one cut at a time
  std::thread pusher_;

  mutable std::mutex mu_;
  // mu_ guards all members below.
  std::deque<Candidate> candidates_;
  // If null, continues a candidate or takes a cut next.
  std::shared_ptr<LogWriter> writer_;
  uint64_t latest_micros_ = 0;  // latest time in sets and in ended logs
  RemoteSource* remote_ = nullptr;     // the running source, for Cancel()
  Status failed_;
  // Without the log of writer_, the archive can restore up to this time and
  // sequence number.
  uint64_t put_micros_ = 0;
  uint64_t put_sequence_ = 0;
  // Writes of the source since this time are only in logs whose set is not
  // committed yet. Such a log cannot be restored. 0: the log of writer_ can be
  // restored.
  uint64_t unset_micros_ = 0;
  std::string source_database_id_;
  std::optional<std::vector<std::string>> filtered_families_;
  std::optional<uint64_t> unknown_options_;
  CutReason reason_ = CutReason::kNone;
  std::map<std::string, uint64_t> cuts_;
  LogState earlier_;  // totals of the logs that this run has ended
  // Number of segments in the archive at the last count.
  uint64_t counted_segments_ = 0;
  uint64_t put_when_counted_ = 0;  // how many of these this run had stored
  bool warns_of_segments_ = true;
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
  writer.now_micros = now_micros_;
  return writer;
}

Status LogRounds::Open() {
  if (!options_.store.key_file.empty()) {
    RETURN_IF_ERROR(SealKey::Read(options_.store.key_file, &key_));
  }
  RETURN_IF_ERROR(open_(Clock::time_point::max(), &store_));
  place_ = store_->place();
  RETURN_IF_ERROR(
      Archive(store_.get(), nullptr, InitCommand(options_.store))
          .ReadHead(&head_));
  RETURN_IF_ERROR(FindCandidates());
  return CheckSegments();
}

// Finds the ends of all paths through the archive's logs, latest first. Also
// finds the latest time in all logs.
Status LogRounds::FindCandidates() {
  const Archive archive(store_.get(), key_.get());
  ArchiveLog log;
  RETURN_IF_ERROR(ReadLog(archive, &log));
  const uint64_t now = now_micros_();
  counted_segments_ = log.foreign;
  for (const auto& [id, lineage] : log.lineages) {
    counted_segments_ += lineage.segments.size();
    for (const auto& [number, key] : lineage.segments) {
      NoteTime(key.end_micros, now);
    }
  }
  const auto put_until = [this, now](uint64_t micros) {
    if (micros <= now + kMostClockBackMicros) {
      put_micros_ = std::max(put_micros_, micros);
    }
  };
  std::map<LogKey, uint64_t> ends;  // log -> time of its newest set
  const LogPaths paths(log);
  for (const LoggedSet& set : log.sets) {
    NoteTime(set.log.moment_micros, now);
    put_until(set.log.moment_micros);
    paths.Of(set.log, [&](const LogRuns& path) {
      if (path.runs.empty()) return true;
      const LogKey& last = paths.LastOf(path);
      put_until(last.end_micros);
      if (path.ended == CutReason::kNone) {
        ends[last] = set.log.moment_micros;
      }
      return true;
    });
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
    // A log without a database id is no candidate, because it is unknown
    // whether the source continues it.
    if (candidate.head.database_id.empty()) {
      continue;
    }
    // A log whose last time is in the future is no candidate, because nothing
    // could be appended to it until that time.
    const uint64_t end_micros = candidate.head.moments.empty()
                                    ? key.end_micros
                                    : std::max(key.end_micros,
                                               candidate.head.moments.back()
                                                   .micros);
    if (end_micros > now + kMostClockBackMicros) {
      SayOfClock(key, end_micros, now);
      continue;
    }
    NoteTime(end_micros, now);
    if (candidates_.size() < kMaxCandidates) {
      candidates_.push_back(std::move(candidate));
      cut_micros_ = std::max<uint64_t>(cut_micros_, moment);
    }
  }
  return Status::OK();
}

Status LogRounds::CheckSegments() {
  const auto put = [this] {
    return earlier_.segments +
           (writer_ != nullptr ? writer_->state().segments : 0);
  };
  bool counts = false;
  {
    const std::lock_guard<std::mutex> lock(mu_);
    const uint64_t since = put() - put_when_counted_;
    counts = since >= kCountEvery || counted_segments_ + since >= max_segments_;
  }
  if (counts) {
    uint64_t counted = 0;
    RETURN_IF_ERROR(CountObjects(store_.get(), kArchiveLogPrefix, &counted));
    const std::lock_guard<std::mutex> lock(mu_);
    counted_segments_ = counted;
    put_when_counted_ = put();
  }
  std::string warning;
  bool warns = false;
  Status status;
  {
    const std::lock_guard<std::mutex> lock(mu_);
    status = CheckObjectCount(
        place_, kArchiveLogPrefix,
        counted_segments_ + put() - put_when_counted_ + 1, max_segments_,
        &warning);
    warns = !warning.empty() && std::exchange(warns_of_segments_, false);
  }
  if (warns) {
    Log(LogLevel::kWarning, warning);
  }
  return status;
}

Status LogRounds::CheckSameArchive(ObjectStore* store) const {
  ArchiveHead found;
  RETURN_IF_ERROR(Archive(store, nullptr, InitCommand(options_.store))
                      .ReadHead(&found));
  return found.archive_id == head_.archive_id
             ? Status::OK()
             : MakeStatus(EndState::kRefused,
                          place_ + ": expected the archive with which this "
                                   "follower began, found another one. A "
                                   "follower that is started now pushes a set "
                                   "into that one first");
}

Status LogRounds::PutSegment(const std::shared_ptr<LogWriter>& log) {
  RETURN_IF_ERROR(CheckSegments());
  return log->Put(store_.get());
}

FollowPosition LogRounds::position() const {
  const std::lock_guard<std::mutex> lock(mu_);
  return writer_ != nullptr       ? writer_->position()
         : candidates_.empty() ? FollowPosition()
                               : candidates_.front().head.position();
}

void LogRounds::SayOfClock(const LogKey& key, uint64_t end_micros,
                           uint64_t now) const {
  Log(LogLevel::kWarning,
      "this machine's clock says " + LogTimeText(now) + ", and the log " +
          LogKeyText(key) + " was written up to " + LogTimeText(end_micros) +
          ": one of the clocks is or was wrong. The follower does not continue "
          "this log. Times up to " + LogTimeText(end_micros) +
          " may be in two logs: to restore one, use @sequence:N or "
          "@SET+TIME");
}

Status LogRounds::Append(const FollowPosition& asked, const Round& round) {
  RETURN_IF_ERROR(TakeFailure());
  std::shared_ptr<LogWriter> writer;
  {
    const std::lock_guard<std::mutex> lock(mu_);
    if (writer_ == nullptr && round.is_decided() && !candidates_.empty() &&
        asked == candidates_.front().head.position()) {
      writer_ = std::make_shared<LogWriter>(
          RandomSetId(), candidates_.front().head, candidates_.front().digest,
          WriterOptions());
      Log(LogLevel::kInfo, "the follower continues the log after " +
                               LogKeyText(candidates_.front().head.key));
      candidates_.clear();
    }
    writer = writer_;
  }
  if (writer == nullptr || writer->position() != asked) {
    return Status::OK();
  }
  if (writer->is_full()) {
    RETURN_IF_ERROR(PutSegment(writer));
  }
  for (const WalBytes& log : round.logs) {
    replay_bytes_ += log.bytes.size();
  }
  return writer->Append(round.logs, round.end, round.asked_micros);
}

Status LogRounds::Sync() {
  const std::shared_ptr<LogWriter> log = writer();
  if (log == nullptr) {
    return Status::OK();
  }
  if (!cancelled_) {
    const Status status = PutSegment(log);
    const EndState state = EndStateOf(status);
    if (status.ok() || state == EndState::kCorrupt ||
        state == EndState::kRefused || state == EndState::kBusy) {
      return status;
    }
    // Returns OK, because the next Sync() retries.
    if (!cancelled_) {
      Log(LogLevel::kWarning, MessageOf(status) + "; tries again");
    }
    return Status::OK();
  }
  std::unique_ptr<ObjectStore> last;
  Status status = open_(Clock::now() + kLastPut, &last);
  if (status.ok()) status = CheckSameArchive(last.get());
  if (status.ok()) status = log->Put(last.get());
  const uint64_t left = log->state().unput_bytes;
  if (!status.ok() && left == 0) {
    // All received bytes are in the archive. The failed put would only have
    // recorded that the source wrote nothing lately.
    Log(LogLevel::kWarning, MessageOf(status));
    return Status::OK();
  }
  return WithContext(status, EndStateOf(status),
                     "the follower ends, and " + std::to_string(left) +
                         " bytes that it received are not in the archive");
}

Status LogRounds::Pin(const LogWriter* log, Push* push) {
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
  push->asked_micros = now_micros_();
  RETURN_IF_ERROR(push->remote->Connect());
  {
    // Takes the time now, because ReadPosition() below may take minutes.
    const std::lock_guard<std::mutex> lock(mu_);
    push->moment = MomentOfCut();
  }
  push->source = std::make_unique<CutSource>(push->remote.get());
  // The log reached the newest of these places shortly before or after the
  // snapshot was taken.
  if (log != nullptr) push->places = log->places();
  return push->source->ReadPosition(push->places);
}

// Ends the log of the first candidate. Records in the archive why the follower
// cannot continue this log.
Status LogRounds::EndCandidate(const CutRequest& request) {
  Candidate candidate;
  {
    const std::lock_guard<std::mutex> lock(mu_);
    candidate = candidates_.front();
  }
  Log(LogLevel::kInfo, "the follower cannot continue the log after " +
                           LogKeyText(candidate.head.key) + " (" +
                           CutReasonName(request.reason) + ")");
  LogWriter ends(RandomSetId(), candidate.head, candidate.digest,
                 WriterOptions());
  RETURN_IF_ERROR(ends.End(store_.get(), request.reason, request.note));
  const std::lock_guard<std::mutex> lock(mu_);
  candidates_.pop_front();
  return Status::OK();  // the follower then tries the next candidate
}

Status LogRounds::EndLog(const std::shared_ptr<LogWriter>& log,
                         CutReason reason, const std::string& note) {
  RETURN_IF_ERROR(log->End(store_.get(), reason, note));
  const std::lock_guard<std::mutex> lock(mu_);
  const LogState state = log->state();
  earlier_.segments += state.segments;
  earlier_.bytes += state.bytes;
  earlier_.gaps += state.gaps + 1;
  ForgetWriter();
  return Status::OK();
}

// Remembers a time that is in a log, or that a set has. Ignores a time that is
// too far ahead of the clock. The log with this time has ended, and earlier
// times in it are ambiguous.
void LogRounds::NoteTime(uint64_t micros, uint64_t now) {
  if (micros <= now + kMostClockBackMicros) {
    latest_micros_ = std::max(latest_micros_, micros);
  }
}

void LogRounds::ForgetWriter() {
  if (writer_ == nullptr) {
    return;
  }
  NoteTime(writer_->latest_micros(), now_micros_());
  if (unset_micros_ == 0) {
    const LogState log = writer_->state();
    put_micros_ = std::max(put_micros_, log.put_micros);
    put_sequence_ = std::max(put_sequence_, log.put_sequence);
  }
  writer_.reset();
}

// Returns the time of a snapshot that was just taken: now, but not before any
// time in the logs. Otherwise a restore would be wrong. To restore up to a time
// T, it takes the newest set before T, which must contain nothing later than T.
uint64_t LogRounds::MomentOfCut() {
  const uint64_t now = now_micros_();
  if (latest_micros_ > now + kMostClockBackMicros) latest_micros_ = 0;
  if (writer_ != nullptr) NoteTime(writer_->latest_micros(), now);
  return std::max(now, latest_micros_);
}

Status LogRounds::Cut(const CutRequest& request) {
  const std::lock_guard<std::mutex> one(cut_mu_);
  bool has_candidate = false;
  {
    const std::lock_guard<std::mutex> lock(mu_);
    has_candidate = writer_ == nullptr && !candidates_.empty();
  }
  if (has_candidate) {
    return EndCandidate(request);
  }
  JoinPush();
  RETURN_IF_ERROR(TakeFailure());
  std::shared_ptr<LogWriter> log = writer();
  bool continues = request.continues() && log != nullptr;
  if (log != nullptr && !continues) {
    RETURN_IF_ERROR(EndLog(log, request.reason, request.note));
  }
  const auto push = std::make_shared<Push>();
  // The set will contain all records that were collected before this segment.
  const uint64_t segment = continues ? log->segment() : 1;
  FollowPosition from;
  if (continues) from = log->position();
  Status pinned = Pin(continues ? log.get() : nullptr, push.get());
  if (pinned.ok() && continues) {
    Standing standing = Standing::kNotHeld;
    pinned = push->source->FindStandingOf(from, push->places, &standing);
    continues = standing == Standing::kSame;
    if (pinned.ok() && !continues) {
      pinned = EndLog(log,
                      standing == Standing::kNotHeld ? CutReason::kNotHeld
                                                     : CutReason::kNewLife,
                      "the source's files do not show that its next set "
                      "continues this log");
    }
  }
  const std::lock_guard<std::mutex> lock(mu_);
  if (!pinned.ok()) {
    remote_ = nullptr;
    return pinned;
  }
  // The ended log may have times after the snapshot was taken.
  if (!continues) push->moment = std::max(push->moment, latest_micros_);
  const uint64_t moment = push->moment;
  push->id = RandomSetId();
  push->sequence = push->source->set().sequence;
  if (!continues) {
    push->log = {push->id, 1, moment};
    push->writer = std::make_shared<LogWriter>(
        push->id, push->source->position(), push->asked_micros, moment,
        WriterOptions());
    const Status checks = push->writer->BeginChecksAfterCut(
        push->source->WalBegin(), push->source->set().sequence);
    if (!checks.ok()) {
      remote_ = nullptr;
      return checks;
    }
  } else {
    push->log = {log->lineage(), segment, moment};
    push->writer = log;
  }
  const std::string text = push->source->OptionsOfSet();
  const std::string database_id = push->source->set().database_id;
  // Changes no member before the thread has started, because a log without a
  // pushed set cannot be restored. Before it ends, the thread waits for mu_,
  // which this function has locked.
  const Status started =
      StartThread([this, push] { RunPush(push); }, &pusher_);
  if (!started.ok()) {
    remote_ = nullptr;
    return started;
  }
  writer_ = push->writer;
  if (!continues && unset_micros_ == 0) unset_micros_ = moment;
  source_database_id_ = database_id;
  filtered_families_ = options_.exact_filters
                           ? std::vector<std::string>()
                           : OptionsText(text).FilteredFamilies();
  unknown_options_ = FindUnknownOptions(text).count;
  reason_ = request.reason;
  ++cuts_[CutReasonName(request.reason)];
  cut_micros_ = moment;
  replay_bytes_ = 0;
  return Status::OK();
}

void LogRounds::RunPush(const std::shared_ptr<Push>& pushed) {
  PushOptions push;
  push.label = options_.label;
  push.adopt = options_.adopt;
  push.host = HostName();
  push.software = "sstferry " SSTFERRY_VERSION;
  push.lanes = static_cast<int>(options_.pull.lanes);
  push.new_id = [&pushed] { return pushed->id; };
  push.log = pushed->log;
  const std::shared_ptr<LogWriter> log = pushed->writer;
  push.next_segment = [log] { return log->next_to_put(); };
  push.cancelled = [this] { return cancelled_.load(); };
  PushSummary summary;
  const Status status = PushSet(Archive(store_.get(), key_.get()),
                                pushed->source.get(), push, &summary);
  for (const std::string& warning : summary.warnings) {
    Log(LogLevel::kWarning, warning);
  }
  {
    const std::lock_guard<std::mutex> lock(mu_);
    remote_ = nullptr;
    if (!status.ok() && !cancelled_) {
      failed_ = status;
      // The set of this log was not pushed, so the log cannot be restored.
      if (writer_ != nullptr && writer_->lineage() == pushed->id) {
        ForgetWriter();
      }
    }
    if (status.ok()) {
      put_micros_ = pushed->moment;
      put_sequence_ = pushed->sequence;
      if (pushed->log.lineage == pushed->id) unset_micros_ = 0;
    }
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
  state.unknown_options = unknown_options_;
  state.source_database_id = source_database_id_;
  state.cut_reason = CutReasonName(reason_);
  state.cuts = cuts_;
  const LogState log = writer_ != nullptr ? writer_->state() : LogState();
  state.sequence = log.last_sequence;
  state.moment_micros = log.seen_micros;
  // If the source writes nothing, no segment follows the last set. So uses the
  // time of the set. Does not count segments whose set is not committed,
  // because they cannot be restored.
  state.durable_sequence = put_sequence_;
  state.put_micros = put_micros_;
  if (unset_micros_ == 0) {
    state.durable_sequence = std::max(put_sequence_, log.put_sequence);
    state.put_micros = std::max(put_micros_, log.put_micros);
  }
  state.segments = earlier_.segments + log.segments;
  state.segment_bytes = earlier_.bytes + log.bytes;
  state.gaps = earlier_.gaps + log.gaps;
  state.unput_bytes = log.unput_bytes;
  state.unput_micros = unset_micros_ != 0 ? unset_micros_ : log.unput_micros;
  return state;
}

}  // namespace

Status OpenLogRounds(const FollowOptions& options,
                     const std::unique_ptr<Endpoint>* endpoint,
                     const StoreOpener& open,
                     const std::function<uint64_t()>& now_micros,
                     std::unique_ptr<RoundTarget>* target,
                     uint64_t max_segments) {
  auto rounds = std::make_unique<LogRounds>(options, endpoint, open, now_micros,
                                            max_segments);
  RETURN_IF_ERROR(rounds->Open());
  *target = std::move(rounds);
  return Status::OK();
}

}  // namespace sstferry
