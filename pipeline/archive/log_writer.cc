#include "pipeline/archive/log_writer.h"

#include <algorithm>
#include <utility>

#include "format/coding.h"
#include "format/end_state.h"
#include "pipeline/archive/log_index.h"
#include "pipeline/archive/seal.h"
#include "pipeline/base/sha256.h"
#include "pipeline/base/this_machine.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Number of positions that are kept. It is enough for a minute if an answer
// arrives every 15 ms.
constexpr size_t kMostPlaces = 4096;

}  // namespace

LogWriter::LogWriter(const SetId& cut, const FollowPosition& position,
                     uint64_t asked_micros, uint64_t moment_micros,
                     LogWriterOptions options)
    : options_(std::move(options)),
      lineage_(cut),
      at_(position),
      now_(moment_micros),
      seen_(IsRecent(asked_micros, moment_micros) ? moment_micros : 0) {
  head_.key = {lineage_, 1, moment_micros, moment_micros};
  head_.begin = {position.manifest_number, position.cut_bytes,
                 position.manifest, position.wal_number, position.wal_bytes};
  head_.database_id = position.database_id;
  Reached();
  continuity_.TrustNext();
  head_.host = options_.host;
  head_.software = options_.software;
  state_.seen_micros = moment_micros;
}

LogWriter::LogWriter(const SetId& lineage, const LogHead& last,
                     const Sha256Digest& digest, LogWriterOptions options)
    : options_(std::move(options)),
      lineage_(lineage),
      at_(last.position()),
      now_(last.key.end_micros) {
  if (!last.moments.empty()) {
    now_ = std::max(now_, last.moments.back().micros);
  }
  // The earlier follower may have received more records than it put. So no time
  // after its last segment is known to be complete, and the period of this
  // segment has no beginning yet.
  head_.key = {lineage_, last.key.number + 1, 0, 0};
  head_.previous_lineage = last.key.lineage;
  head_.previous = digest;
  head_.begin = last.end();
  head_.judged = last.judged;
  head_.database_id = last.database_id;
  Reached();
  continuity_.TrustNext();
  head_.host = options_.host;
  head_.software = options_.software;
  state_.last_sequence = last.last_sequence();
}

bool LogWriter::IsRecent(uint64_t asked_micros, uint64_t now_micros) const {
  return now_micros - std::min(now_micros, asked_micros) <=
         options_.max_gap_micros;
}

FollowPosition LogWriter::position() const {
  const std::lock_guard<std::mutex> lock(mu_);
  return at_;
}

uint64_t LogWriter::segment() const {
  const std::lock_guard<std::mutex> lock(mu_);
  return head_.key.number;
}

uint64_t LogWriter::next_to_put() const {
  const std::lock_guard<std::mutex> lock(mu_);
  return sealed_ != nullptr ? sealed_->key.number : head_.key.number;
}

uint64_t LogWriter::latest_micros() const {
  const std::lock_guard<std::mutex> lock(mu_);
  return now_;
}

Gap LogWriter::gap() const {
  const std::lock_guard<std::mutex> lock(mu_);
  return gap_;
}

std::vector<LogPlace> LogWriter::places() const {
  const std::lock_guard<std::mutex> lock(mu_);
  return {places_.begin(), places_.end()};
}

void LogWriter::Reached() {
  places_.push_back({at_.wal_number, at_.wal_bytes, at_.wal});
  if (places_.size() > kMostPlaces) {
    places_.pop_front();
  }
}

Status LogWriter::BeginChecksAfterCut(const Slice& wal_begin,
                                      uint64_t sequence) {
  const std::lock_guard<std::mutex> lock(mu_);
  continuity_ = WalContinuity(0);
  continuity_.BeginBehindCut(sequence, /*has_all=*/false);
  follower_ = std::make_unique<LogFollower>(LogKind::kWal, at_.wal_number);
  followed_ = at_.wal_number;
  return StartAt(SliceSource(wal_begin), at_.wal_bytes, follower_.get());
}

// Checks the sequence numbers of the records in a part of a WAL. Does nothing
// unless the part continues checked records, or is the beginning of a WAL.
Status LogWriter::CheckRecords(const WalBytes& part) {
  if (part.offset_bytes == 0 && !part.bytes.empty()) {
    follower_ = std::make_unique<LogFollower>(LogKind::kWal, part.wal_number);
    followed_ = part.wal_number;
  }
  if (part.wal_number != followed_) {
    follower_.reset();
  }
  if (follower_ == nullptr || part.bytes.empty()) {
    return Status::OK();
  }
  const Status status = FollowBehind(
      part.offset_bytes, part.bytes, follower_.get(),
      [&](const Slice& record, uint64_t) {
        WalStep step = WalStep::kContinues;
        RETURN_IF_ERROR(continuity_.Add(part.wal_number, record, &step));
        if (step == WalStep::kContinues) {
          return Status::OK();
        }
        gap_ = {step == WalStep::kBlobIndex ? CutReason::kBlobIndex
                                            : CutReason::kSequenceGap,
                "records of WAL " + std::to_string(part.wal_number) +
                    ", before sequence " +
                    std::to_string(DecodeFixed64(record.data()))};
        return Status::Aborted("a gap");
      });
  const uint64_t end = part.offset_bytes + part.bytes.size();
  if (gap_.reason != CutReason::kNone) {
    return Status::OK();
  }
  RETURN_IF_ERROR(status);
  return follower_->end() == end
             ? Status::OK()
             : MakeStatus(EndState::kCorrupt,
                          "records of WAL " + std::to_string(part.wal_number) +
                              ": expected whole records up to byte " +
                              std::to_string(end) + ", found whole ones only "
                                                    "up to byte " +
                              std::to_string(follower_->end()));
}

LogState LogWriter::state() const {
  const std::lock_guard<std::mutex> lock(mu_);
  LogState state = state_;
  state.unput_bytes = payload_.size();
  state.unput_micros =
      head_.moments.empty() ? 0 : head_.moments.front().micros;
  if (sealed_ != nullptr && sealed_->payload_bytes > 0) {
    state.unput_bytes += sealed_->payload_bytes;
    state.unput_micros = sealed_->first_micros;
  }
  return state;
}

Status LogWriter::Check(const std::vector<WalBytes>& parts) const {
  uint64_t number = at_.wal_number;
  uint64_t bytes = at_.wal_bytes;
  for (const WalBytes& part : parts) {
    const bool is_new = part.wal_number > number;
    if (part.wal_number < number || part.offset_bytes != (is_new ? 0 : bytes)) {
      return MakeStatus(EndState::kCorrupt,
                        "records of a WAL: expected bytes from offset " +
                            std::to_string(bytes) + " of WAL " +
                            std::to_string(number) +
                            " on, or the beginning of a later WAL, found "
                            "bytes from offset " +
                            std::to_string(part.offset_bytes) + " of WAL " +
                            std::to_string(part.wal_number) + " on");
    }
    number = part.wal_number;
    bytes = part.offset_bytes + part.bytes.size();
  }
  return parts.size() <= kMaxSegmentWals / 2
             ? Status::OK()
             : MakeStatus(EndState::kCorrupt,
                          "records of WALs: expected bytes of at most " +
                              std::to_string(kMaxSegmentWals / 2) +
                              " WALs at once from the source, found bytes of " +
                              std::to_string(parts.size()));
}

void LogWriter::Add(const std::vector<WalBytes>& parts) {
  for (const WalBytes& part : parts) {
    if (part.bytes.empty()) {
      continue;
    }
    if (head_.wals.empty() ||
        head_.wals.back().wal_number != part.wal_number) {
      head_.wals.push_back({part.wal_number, 0});
    }
    head_.wals.back().bytes += part.bytes.size();
    payload_.append(part.bytes.data(), part.bytes.size());
    at_.wal_number = part.wal_number;
    at_.wal_bytes = part.offset_bytes + part.bytes.size();
  }
}

Status LogWriter::Append(const std::vector<WalBytes>& parts,
                         const FollowEnd& end, uint64_t asked_micros) {
  const bool has_all = end.more_bytes == 0;
  const std::lock_guard<std::mutex> lock(mu_);
  if (gap_.reason != CutReason::kNone) {
    return Status::OK();
  }
  RETURN_IF_ERROR(Check(parts));
  for (const WalBytes& part : parts) {
    RETURN_IF_ERROR(CheckRecords(part));
  }
  const uint64_t clock =
      options_.now_micros ? options_.now_micros() : MicrosNow();
  if (clock + kMostClockBackMicros < now_) {
    gap_ = {CutReason::kClock,
            "this machine's clock was set back from " + LogTimeText(now_) +
                " to " + LogTimeText(clock)};
  }
  if (gap_.reason != CutReason::kNone) {
    return Status::OK();
  }
  now_ = std::max(now_, clock);
  const bool is_behind_gap = seen_ == 0 || now_ - seen_ > options_.max_gap_micros;
  // Puts the bytes from before an outage into a segment of their own, so that
  // its times are correct.
  if (is_behind_gap && sealed_ == nullptr && !payload_.empty() &&
      head_.key.end_micros > head_.key.begin_micros) {
    Seal();
  }
  Add(parts);
  if (!parts.empty()) {
    at_.wal = end.wal;
    Reached();
  }
  if (payload_.size() > head_.payload_bytes()) {
    const LogMoment moment{now_, payload_.size(),
                           has_all ? end.last_sequence : 0};
    // Replaces the last moment if kLogMomentMicros have not passed since the
    // previous one.
    const size_t count = head_.moments.size();
    if (count > 1 &&
        now_ - head_.moments[count - 2].micros < kLogMomentMicros) {
      head_.moments.back() = moment;
    } else {
      head_.moments.push_back(moment);
    }
  }
  if (!has_all) {
    return Status::OK();
  }
  state_.last_sequence = std::max(state_.last_sequence, end.last_sequence);
  if (end.judged.manifest_bytes != 0) {
    head_.judged = end.judged;
    at_.manifest_bytes = end.judged.manifest_bytes;
    at_.manifest = end.judged.manifest;
  }
  if (!IsRecent(asked_micros, clock)) {
    return Status::OK();
  }
  if (is_behind_gap) {
    state_.gaps += seen_ == 0 ? 0 : 1;
    head_.key.begin_micros = now_;
  }
  head_.key.end_micros = now_;
  seen_ = now_;
  state_.seen_micros = now_;
  return Status::OK();
}

bool LogWriter::is_full() const {
  const std::lock_guard<std::mutex> lock(mu_);
  return payload_.size() >= options_.segment_bytes ||
         head_.wals.size() >= kMaxSegmentWals / 2 ||
         head_.moments.size() >= kMaxSegmentMoments / 2;
}

bool LogWriter::IsDue() const {
  return !payload_.empty() ||
         head_.key.end_micros - head_.key.begin_micros >= kIdleSegmentMicros;
}

// Makes an object from the collected bytes, and begins the next segment.
void LogWriter::Seal() {
  auto object = std::make_unique<Object>();
  object->key = head_.key;
  object->sequence = head_.last_sequence();
  object->payload_bytes = payload_.size();
  head_.wal = at_.wal;
  object->first_micros =
      head_.moments.empty() ? 0 : head_.moments.front().micros;
  if (options_.key != nullptr) {
    options_.key->Seal(&head_, &payload_);
  } else {
    head_.payload = DigestOf(payload_);
  }
  EncodeLogHead(head_, &object->bytes);
  LogHead next;
  next.key = {lineage_, head_.key.number + 1, head_.key.end_micros,
              head_.key.end_micros};
  next.previous_lineage = lineage_;
  next.previous = Sha256Of(object->bytes);
  next.begin = head_.end();
  next.judged = head_.judged;
  next.database_id = head_.database_id;
  next.host = head_.host;
  next.software = head_.software;
  object->bytes += payload_;
  payload_.clear();
  head_ = std::move(next);
  sealed_ = std::move(object);
}

Status LogWriter::PutOne(ObjectStore* store, const Object& object) const {
  const std::string key = LogKeyText(object.key);
  const StoreResult put =
      PutBytes(store, key, object.bytes, options_.has_if_absent);
  if (put.ok() || put.code == StoreCode::kMoved) {
    return put.status;
  }
  // This attempt or an earlier attempt may have stored the object although it
  // failed.
  std::string there;
  const StoreResult got = GetBytes(store, key, object.bytes.size(), &there);
  if (got.ok() && there == object.bytes) {
    return Status::OK();
  }
  return put.code == StoreCode::kExists
             ? MakeStatus(EndState::kBusy,
                          store->Describe(key) +
                              ": expected no object, or the one that this "
                              "follower put, found one that differs or cannot "
                              "be read")
             : put.status;
}

Status LogWriter::Put(ObjectStore* store) {
  const std::lock_guard<std::mutex> one(put_mu_);
  return PutDue(store);
}

Status LogWriter::PutDue(ObjectStore* store) {
  bool was_left = false;
  do {
    const Object* object = nullptr;
    {
      const std::lock_guard<std::mutex> lock(mu_);
      was_left = sealed_ != nullptr;
      if (!was_left && IsDue()) {
        Seal();
      }
      object = sealed_.get();
    }
    if (object == nullptr) {
      return Status::OK();
    }
    // put_mu_ is locked, so no other thread replaces sealed_.
    RETURN_IF_ERROR(PutOne(store, *object));
    const std::lock_guard<std::mutex> lock(mu_);
    ++state_.segments;
    state_.bytes += sealed_->bytes.size();
    state_.put_micros = std::max(state_.put_micros, sealed_->key.end_micros);
    state_.put_sequence = std::max(state_.put_sequence, sealed_->sequence);
    sealed_.reset();
  } while (was_left);
  return Status::OK();
}

Status LogWriter::End(ObjectStore* store, CutReason reason,
                      const std::string& note) {
  const std::lock_guard<std::mutex> one(put_mu_);
  {
    const std::lock_guard<std::mutex> lock(mu_);
    if (gap_.reason == CutReason::kNone) {
      gap_ = {reason, note};
    }
  }
  // Because gap_ is set, neither Append() nor Put() completes a segment from
  // now on.
  RETURN_IF_ERROR(PutDue(store));
  {
    const std::lock_guard<std::mutex> lock(mu_);
    if (!ended_) {
      if (head_.key.end_micros == 0) {  // no answer was added
        head_.key.begin_micros = head_.key.end_micros = now_;
      }
      head_.ended = reason;
      head_.note = note.substr(0, kMaxArchiveTextBytes);
      Seal();
      ended_ = true;
    }
  }
  return PutDue(store);
}

}  // namespace sstferry
