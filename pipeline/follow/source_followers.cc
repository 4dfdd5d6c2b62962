#include "pipeline/follow/source_followers.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <thread>
#include <utility>

#include "format/end_state.h"
#include "format/follow_file.h"
#include "pipeline/base/standby_record.h"
#include "pipeline/base/start_thread.h"
#include "pipeline/base/stop_signal.h"
#include "pipeline/follow/directory_watch.h"
#include "pipeline/follow/followed_source.h"
#include "pipeline/snapshot/posix_files.h"
#include "pipeline/wire/token_bucket.h"

namespace sstferry {
namespace {

using rocksdb::Status;
using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

// Pause between two rounds. It limits the CPU time of a reader. On average, it
// delays records by half of its length.
constexpr milliseconds kBetweenRounds{8};
// Maximum pause between two rounds if nothing seems to be written.
constexpr milliseconds kQuietRound{100};
constexpr milliseconds kAfterFailure{250};
// A follower must take a cut only after this many rounds have found that it
// needs one. The first round may have begun before the request. Before the
// second round, the reader may still know an older database while the position
// belongs to its replacement. Or the position may be after the bytes that were
// read.
constexpr uint64_t kRoundsUntilCut = 2;
// How often a closed source repeats to a follower that it is closed. A
// promotion that began in the meantime needs this.
constexpr milliseconds kTellClosed{200};
// If a round is older, it no longer shows the present state of the source.
constexpr std::chrono::seconds kFreshRound{1};

static_assert(kTurnBytes <= kMaxFollowBytes);

bool IsOfOneCut(const FollowPosition& a, const FollowPosition& b) {
  return a.database_id == b.database_id &&
         a.manifest_number == b.manifest_number && a.cut_bytes == b.cut_bytes;
}

Status Stopped() {
  return MakeStatus(EndState::kCancelled, "the source is shutting down");
}

}  // namespace

// Reads one database for all of its followers.
class SourceFollowers::Reader {
 public:
  Reader(std::string name, FollowedSourceOptions options, milliseconds linger)
      : name_(std::move(name)),
        linger_(linger),
        directory_(options.database_dir),
        source_(std::move(options)) {}
  ~Reader() {
    Stop();
    if (thread_.joinable()) thread_.join();
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  [[nodiscard]] Status Start() {
    return StartThread([this] { ReadAgainAndAgain(); }, &thread_);
  }

  void Stop() {
    stop_.Stop();
    std::lock_guard<std::mutex> lock(mu_);
    ended_ = true;
    changed_.notify_all();
  }

  // Returns false if the reader has ended because it had no follower.
  bool Enter() {
    std::lock_guard<std::mutex> lock(mu_);
    asked_ = SteadyClock::now();
    return !ended_;
  }

  bool has_ended() const {
    std::lock_guard<std::mutex> lock(mu_);
    return ended_;
  }

  [[nodiscard]] Status Next(const void* who, const FollowRequest& request,
                            Round* round) {
    const auto asked = SteadyClock::now();
    const auto end = asked + milliseconds(request.wait_millis);
    std::unique_lock<std::mutex> lock(mu_);
    for (;;) {
      if (ended_) return Stopped();
      asked_ = SteadyClock::now();
      if (EndStateOf(status_) == EndState::kRefused) return status_;
      const uint64_t rounds = rounds_;
      lock.unlock();
      FollowedSource::Found found;
      RETURN_IF_ERROR(source_.Answer(request, &found, round));
      lock.lock();
      // The reader may have ended meanwhile, and released its WALs. So does not
      // use the answer.
      if (ended_) return Stopped();
      CheckCut(who, request.position, rounds, &found, &round->end.cut);
      // Before the first round, the reader knows nothing and keeps no bytes.
      if (found == FollowedSource::Found::kRound && rounds > 0) {
        FollowPosition position = request.position;
        if (round->end.cut != CutReason::kNone) {
          position.wal_number = source_.newest_wal();
          position.wal_bytes = 0;
        }
        Follower& follower = Need(who, request, position);
        if (round->end.cut != CutReason::kNone) follower.asked = round->end.cut;
        if (!is_fresh()) LeaveOpen(&round->end);
        round->end.source_closed &= round_begun_ >= asked;
        return Status::OK();
      }
      Follower& follower = Need(who, request, request.position);
      const bool has_all = rounds > 0 && is_fresh() &&
                           found == FollowedSource::Found::kNothing;
      if (has_all) follower.had_all = SteadyClock::now();
      // A planned promotion waits for the answer that the source is closed. It
      // accepts the answer only if the round began after its request.
      const bool is_current = has_all && round_begun_ >= asked;
      round->end.source_closed &= is_current;
      const bool is_closed = round->end.source_closed;
      if (is_current &&
          (is_closed != follower.told_closed ||
           (is_closed && SteadyClock::now() - asked >= kTellClosed))) {
        follower.told_closed = is_closed;
        return Status::OK();
      }
      if (!changed_.wait_until(lock, end, [&] {
            return ended_ || rounds_ != rounds;
          })) {
        if (!has_all) {
          const SourceProcess process = round->end.source_process;
          round->end = FollowEnd();
          if (rounds > 0 && is_fresh()) round->end.source_process = process;
          round->end.more_bytes = 1;
        }
        return status_.ok() ? Status::OK() : status_;
      }
    }
  }

  void Leave(const void* who) {
    std::lock_guard<std::mutex> lock(mu_);
    if (followers_.erase(who) > 0) asked_ = SteadyClock::now();
  }

  // Returns false if the reader has ended.
  bool GetState(FollowedState* state) {
    state->database = name_;
    state->held_bytes = source_.held_bytes();
    state->read_bytes = source_.read_bytes();
    const auto now = SteadyClock::now();
    std::lock_guard<std::mutex> lock(mu_);
    for (const auto& [who, follower] : followers_) {
      FollowerState& told = state->followers.emplace_back(follower.told);
      source_.Measure(follower.position, &told.behind_bytes, &told.held_bytes);
      if (told.behind_bytes > 0) {
        told.behind_millis = static_cast<uint64_t>(
            std::chrono::duration_cast<milliseconds>(now - follower.had_all)
                .count());
      }
    }
    return !ended_;
  }

 private:
  void ReadAgainAndAgain() {
    DirectoryWatch watch;
    watch.Add(directory_);
    std::string wal_directory;
    bool list = true;
    while (!stop_.stopped() && !EndIfUnused()) {
      bool more = false;
      const auto begun = SteadyClock::now();
      const Status status = source_.ReadRound(list, &more);
      {
        std::lock_guard<std::mutex> lock(mu_);
        status_ = status;
        if (status.ok()) round_begun_ = begun;
        ++rounds_;
        changed_.notify_all();
      }
      if (wal_directory != source_.wal_directory()) {
        wal_directory = source_.wal_directory();
        if (wal_directory != directory_) watch.Add(wal_directory);
      }
      if (!status.ok()) {
        stop_.WaitFor(kAfterFailure);
        list = true;
      } else if (!more) {
        stop_.WaitFor(kBetweenRounds);
        list = watch.Wait(kQuietRound);
      }
    }
    {
      std::lock_guard<std::mutex> lock(mu_);
      ended_ = true;  // Stop() may not have set it yet
      changed_.notify_all();
    }
    source_.Release();
  }

  // Ends the reader if it has no follower. A follower that takes a cut stays in
  // followers_, although it may send no request for hours.
  bool EndIfUnused() {
    std::lock_guard<std::mutex> lock(mu_);
    ended_ = ended_ || (followers_.empty() &&
                        SteadyClock::now() - asked_ > linger_);
    changed_.notify_all();
    return ended_;
  }

  // Guarded by mu_.
  struct Follower {
    FollowerState told;  // without the values that Measure() computes
    FollowPosition position;
    CutReason asked = CutReason::kNone;  // why this follower must take a cut
    // True: the last answer with has_all said that the source is closed.
    bool told_closed = false;
    SteadyClock::time_point had_all = SteadyClock::now();
    FollowPosition doubted;  // seems to need a cut; all zero: does not
    uint64_t doubted_rounds = 0;
  };

  // REQUIRES: mu_ is locked.
  bool is_fresh() const {
    return SteadyClock::now() - round_begun_ <= kFreshRound;
  }

  // Makes the answer say that more bytes may exist, because it does not show
  // the present state of the source. Otherwise the follower would assume that
  // it has everything.
  static void LeaveOpen(FollowEnd* end) {
    end->more_bytes = std::max<uint64_t>(end->more_bytes, 1);
    end->judged = FollowJudged();
    end->source_process = SourceProcess::kUnknown;
  }

  // REQUIRES: mu_ is locked. A cut, or kAhead, must be confirmed by
  // kRoundsUntilCut rounds. Until then, sets *found to kAhead. After that,
  // requires the cut; for kAhead, requires a cut for a new life. The rounds may
  // belong to several requests.
  void CheckCut(const void* who, const FollowPosition& position,
                uint64_t rounds, FollowedSource::Found* found, CutReason* cut) {
    Follower& follower = followers_[who];
    const bool is_ahead = *found == FollowedSource::Found::kAhead;
    if (!is_ahead && (*cut == CutReason::kNone || *cut == CutReason::kFirst)) {
      follower.doubted = FollowPosition();
      return;
    }
    if (follower.doubted != position) {
      follower.doubted = position;
      follower.doubted_rounds = rounds;
    }
    if (rounds < follower.doubted_rounds + kRoundsUntilCut || !status_.ok()) {
      *found = FollowedSource::Found::kAhead;
    } else if (is_ahead) {
      *found = FollowedSource::Found::kRound;
      *cut = CutReason::kNewLife;
    }
  }

  // REQUIRES: mu_ is locked. Records that this follower needs the bytes after
  // `position`. Releases WALs that no follower needs any more.
  Follower& Need(const void* who, const FollowRequest& request,
                 const FollowPosition& position) {
    Follower& follower = followers_[who];
    follower.told.database = request.database;
    follower.told.target = request.target;
    if (follower.position != FollowPosition() &&
        !IsOfOneCut(follower.position, position)) {
      ++follower.told.cuts;
      follower.told.cut = std::exchange(follower.asked, CutReason::kNone);
    }
    follower.position = position;
    uint64_t least = position.wal_number;
    for (const auto& [each, other] : followers_) {
      least = std::min(least, other.position.wal_number);
    }
    source_.DropBefore(least);
    return follower;
  }

  const std::string name_;
  const milliseconds linger_;
  const std::string directory_;
  FollowedSource source_;
  StopSignal stop_;
  std::thread thread_;

  mutable std::mutex mu_;
  std::condition_variable changed_;
  // mu_ guards all members below.
  Status status_;  // result of the last round
  uint64_t rounds_ = 0;
  SteadyClock::time_point round_begun_;  // when the last successful round began
  bool ended_ = false;
  SteadyClock::time_point asked_ = SteadyClock::now();
  std::map<const void*, Follower> followers_;
};

SourceFollowers::SourceFollowers(uint64_t max_held_bytes, milliseconds linger)
    : max_held_bytes_(max_held_bytes), linger_(linger) {}

SourceFollowers::~SourceFollowers() { Stop(); }

Status SourceFollowers::Find(const ServedDatabase& database,
                             std::shared_ptr<Reader>* reader) {
  if (database.directory.empty()) {
    return MakeStatus(EndState::kRefused,
                      "follow: only a database that is served from its "
                      "directory can be followed; this one is served by its "
                      "application");
  }
  FollowedSourceOptions options;
  RETURN_IF_ERROR(ResolveDatabase(database.directory, &options.database_dir));
  // Refuses a standby as the source, for two reasons: no process locks its LOCK
  // file, and each cut replaces its files.
  FollowFile record;
  bool found = false;
  RETURN_IF_ERROR(ReadStandbyRecord(options.database_dir, &found, &record));
  if (found && IsStandby(options.database_dir)) {
    return MakeStatus(EndState::kRefused,
                      "follow: expected a database, found " +
                          options.database_dir + ", a standby of " +
                          record.source);
  }
  options.wal_dir = database.wal_dir;
  options.max_held_bytes = max_held_bytes_;
  std::vector<std::shared_ptr<Reader>> old;  // destroyed after mu_ is unlocked
  std::lock_guard<std::mutex> lock(mu_);
  if (stopped_) {
    return Stopped();
  }
  old = TakeEnded();
  std::shared_ptr<Reader>& known = readers_[options.database_dir];
  if (known == nullptr || !known->Enter()) {
    old.push_back(std::move(known));
    known = std::make_shared<Reader>(database.name, options, linger_);
    const Status started = known->Start();
    if (!started.ok()) {
      readers_.erase(options.database_dir);
      return started;
    }
  }
  *reader = known;
  return Status::OK();
}

Status SourceFollowers::Answer(const void* who, const ServedDatabase& database,
                               const FollowRequest& request, const Send& send,
                               FollowEnd* end) {
  std::shared_ptr<Reader> reader;
  RETURN_IF_ERROR(Find(database, &reader));
  Round round;
  RETURN_IF_ERROR(reader->Next(who, request, &round));
  for (const WalBytes& log : round.logs) {
    for (size_t at = 0; at < log.bytes.size(); at += kTurnBytes) {
      WalBytes bytes;
      bytes.wal_number = log.wal_number;
      bytes.offset_bytes = log.offset_bytes + at;
      bytes.bytes = log.bytes.substr(at, kTurnBytes);
      RETURN_IF_ERROR(send(bytes));
    }
  }
  *end = round.end;
  return Status::OK();
}

void SourceFollowers::Leave(const void* who) {
  std::lock_guard<std::mutex> lock(mu_);
  for (const auto& [directory, reader] : readers_) {
    reader->Leave(who);
  }
}

std::vector<std::shared_ptr<SourceFollowers::Reader>>
SourceFollowers::TakeEnded() {
  std::vector<std::shared_ptr<Reader>> ended;
  // After Stop(), all readers count as ended, but may still read a round.
  if (stopped_) return ended;
  for (auto reader = readers_.begin(); reader != readers_.end();) {
    if (reader->second->has_ended()) {
      ended.push_back(std::move(reader->second));
      reader = readers_.erase(reader);
    } else {
      ++reader;
    }
  }
  return ended;
}

std::vector<FollowedState> SourceFollowers::state() {
  std::vector<std::shared_ptr<Reader>> old;  // destroyed after mu_ is unlocked
  std::lock_guard<std::mutex> lock(mu_);
  old = TakeEnded();
  std::vector<FollowedState> all;
  for (const auto& [directory, reader] : readers_) {
    FollowedState state;
    if (reader->GetState(&state)) all.push_back(state);
  }
  return all;
}

void SourceFollowers::Stop() {
  std::lock_guard<std::mutex> lock(mu_);
  stopped_ = true;
  for (const auto& [directory, reader] : readers_) {
    reader->Stop();
  }
}

std::unique_ptr<FollowAtSource> MakeFollowAtSource(uint64_t max_held_bytes) {
  return std::make_unique<SourceFollowers>(max_held_bytes);
}

}  // namespace sstferry
