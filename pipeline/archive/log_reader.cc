#include "pipeline/archive/log_reader.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <mutex>
#include <utility>

#include "format/coding.h"
#include "format/end_state.h"
#include "format/rocksdb/log_follower.h"
#include "format/rocksdb/wal_continuity.h"
#include "format/rocksdb/wal_end.h"
#include "pipeline/archive/set_source.h"
#include "sstferry/options.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr char kSequence[] = "sequence:";
constexpr char kSetBefore = '+';  // between a set's name and a point
constexpr size_t kHeadsAtOnce = 512;
constexpr int kHeadLanes = 8;

// Reads a WAL from its beginning to its end. The size of each read is
// arbitrary.
class PieceSource : public ByteSource {
 public:
  // Appends at least `bytes` bytes of the WAL to *out, beginning at `offset`.
  using Fill = std::function<Status(uint64_t offset, uint64_t bytes,
                                    std::string* out)>;
  PieceSource(uint64_t size, Fill fill) : size_(size), fill_(std::move(fill)) {}
  Status Read(uint64_t offset, size_t n, std::string* scratch,
              Slice* out) const override {
    if (offset < begin_ || offset + n > begin_ + piece_.size()) {
      piece_.clear();
      begin_ = offset;
      RETURN_IF_ERROR(fill_(offset, n, &piece_));
    }
    if (offset - begin_ + n > piece_.size()) {
      return MakeStatus(EndState::kCorrupt,
                        "WAL of a set or its log: expected bytes up to byte " +
                            std::to_string(offset + n) +
                            ", found none from byte " +
                            std::to_string(begin_ + piece_.size()) + " on");
    }
    // Copies the bytes, because the next Read() may replace `piece_`.
    scratch->assign(piece_, static_cast<size_t>(offset - begin_), n);
    *out = *scratch;
    return Status::OK();
  }
  uint64_t size() const override { return size_; }

 private:
  const uint64_t size_;
  const Fill fill_;
  mutable uint64_t begin_ = 0;
  mutable std::string piece_;
};

// Returns true if a restore up to the point needs no segment after `key`.
bool EndsAtOrAfter(const LogKey& key, const LogPoint& point) {
  return point.micros.has_value() && key.end_micros >= *point.micros;
}

// Returns a text with the nearest restorable times before and after a time.
std::string Nearby(const ArchiveLog& log, uint64_t micros) {
  std::string before;
  std::string after;
  std::string why;
  uint64_t end_micros = 0;  // end of the window before `micros`
  for (const LogWindow& window : log.Windows()) {
    if (window.end_micros <= micros && window.end_micros >= end_micros) {
      end_micros = window.end_micros;
      before = LogTimeText(window.end_micros);
      why = window.why;
    } else if (after.empty() && window.begin_micros > micros) {
      after = LogTimeText(window.begin_micros);
    }
  }
  return (before.empty()
              ? "no log begins before it"
              : "the log ends at " + before +
                    (why.empty() ? "" : " (" + why + ")")) +
         (after.empty() ? "" : ", and the next one begins at " + after) +
         "; the nearest times are @" + (before.empty() ? after : before) +
         (before.empty() || after.empty() ? "" : " and @" + after);
}

}  // namespace

bool ParseLogPoint(const std::string& text, LogPoint* point) {
  *point = LogPoint();
  uint64_t value = 0;
  if (const size_t plus = text.find(kSetBefore); plus != std::string::npos) {
    SetName set;
    if (!ParseSetName(text.substr(0, plus), &set) ||
        !ParseLogPoint(text.substr(plus + 1), point) ||
        point->set.has_value()) {
      return false;
    }
    point->set = set;
    return true;
  }
  if (ParseLogTime(text, &value)) {
    point->micros = value;
    return true;
  }
  if (!text.starts_with(kSequence)) {
    return false;
  }
  const char* const begin = text.data() + sizeof(kSequence) - 1;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  point->sequence = value;
  return error == std::errc() && stop == end;
}

Status ChooseLog(const Archive& archive, const LogPoint& point,
                 std::optional<LogChoice>* choice) {
  choice->reset();
  ArchiveLog log;
  RETURN_IF_ERROR(ReadLog(archive, &log, point.set));
  const std::string place = archive.store()->place();
  if (point.sequence.has_value()) {
    // Sorts the sets by the time in their names, which is the order of their
    // pushes. The order of their moments is wrong if the follower's clock was
    // set back.
    std::stable_sort(log.sets.begin(), log.sets.end(),
                     [](const LoggedSet& a, const LoggedSet& b) {
                       return a.name.seconds < b.name.seconds;
                     });
  }
  const std::map<SetId, SetId> roots = log.Roots();
  // Maps the first lineage of each log to the latest time of the log.
  std::map<SetId, uint64_t> ends;
  for (const auto& [id, lineage] : log.lineages) {
    uint64_t& end = ends[roots.at(id)];
    for (const auto& [number, key] : lineage.segments) {
      end = std::max(end, key.end_micros);
    }
  }
  LogWindow chosen;  // the window that contains the time
  SetId chosen_root{};
  for (auto set = log.sets.rbegin(); set != log.sets.rend(); ++set) {
    if (point.sequence.has_value()
            ? set->sequence > *point.sequence
            : set->log.moment_micros > *point.micros) {
      continue;
    }
    if (point.set.has_value() && !(set->name == *point.set)) {
      continue;
    }
    const SetId root = roots.at(set->log.lineage);
    const bool is_chosen = choice->has_value() && root == chosen_root;
    const bool ends_before = point.micros.has_value() &&
                             set->log.moment_micros < *point.micros &&
                             ends[root] < *point.micros;
    if (is_chosen || ends_before) {
      continue;
    }
    std::optional<LogChoice> found;
    LogWindow has_it;
    log.PathsOf(set->log, [&](const LogPath& path) {
      // The names of the segments contain no sequence numbers. LogTail::Read()
      // finds out later, from the heads, whether the path reaches the point.
      bool has_point = point.sequence.has_value();
      if (!has_point) {
        for (const LogWindow& window : log.WindowsOf(*set, path)) {
          if (window.begin_micros <= *point.micros &&
              *point.micros <= window.end_micros) {
            has_point = true;
            has_it = window;
          }
        }
      }
      if (has_point) found = {set->name, path};
      return !has_point;
    });
    if (!found.has_value()) {
      continue;
    }
    if (!choice->has_value()) {
      *choice = std::move(found);
      chosen = has_it;
      chosen_root = root;
      if (point.sequence.has_value() || point.set.has_value()) {
        break;
      }
    } else if (chosen.begin_micros < has_it.end_micros) {
      const std::string time = LogTimeText(*point.micros);
      choice->reset();
      return MakeStatus(
          EndState::kRefused,
          place + ": expected one log that includes the time " + time +
              ", found two, because a clock was wrong or two followers ran at "
              "once; restore @" + SetNameText(chosen.set) + "+" + time +
              " or @" + SetNameText(found->set) + "+" + time,
          "sstferry archive list " + ShellWord(place));
    }
  }
  if (choice->has_value()) {
    return Status::OK();
  }
  if (point.set.has_value()) {
    return MakeStatus(EndState::kRefused,
                      place + ": set " + SetNameText(*point.set) +
                          " does not exist, or has no log that includes that "
                          "point",
                      "sstferry archive list " + ShellWord(place));
  }
  if (point.sequence.has_value()) {
    return MakeStatus(
        EndState::kRefused,
        place + ": expected a set that a follower took at sequence " +
            std::to_string(*point.sequence) + " or before, found " +
            (log.sets.empty()
                 ? "none"
                 : "the oldest one at sequence " +
                       std::to_string(log.sets.front().sequence)));
  }
  // For a time without a log, the caller restores the newest set before that
  // time.
  std::vector<FoundSet> sets;
  RETURN_IF_ERROR(archive.ListSets(&sets));
  std::optional<SetName> newest;
  for (const FoundSet& found : sets) {
    if (found.is_done && found.name.seconds <= *point.micros / 1'000'000) {
      newest = found.name;
    }
  }
  // Compares only the seconds. The newest set may be a damaged set that a
  // repaired set of the same second replaces.
  const bool has_log =
      newest.has_value() &&
      std::any_of(log.sets.begin(), log.sets.end(),
                  [&newest](const LoggedSet& set) {
                    return set.name.seconds == newest->seconds;
                  });
  return !has_log ? Status::OK()
                  : MakeStatus(EndState::kRefused,
                               place + ": the time " +
                                   LogTimeText(*point.micros) +
                                   " cannot be restored: " +
                                   Nearby(log, *point.micros));
}

Status LogTail::Amiss(size_t segment, const std::string& what) const {
  uint64_t before = set_.log.moment_micros;
  for (size_t i = 0; i < segment && i < segments_.size(); ++i) {
    before = std::max(before, segments_[i].head.key.end_micros);
  }
  return MakeStatus(
      EndState::kCorrupt,
      archive_.store()->Describe(LogKeyText(segments_[segment].head.key)) +
          ": " + what +
          "; a gap in a log is never skipped, so the log can be restored only "
          "up to @" +
          LogTimeText(before));
}

Status LogTail::FindBase() {
  // The end of the set is the end of its last WAL record. If the set is sealed
  // and there is no key, the records cannot be read. Then uses the recorded end
  // of the newest WAL.
  const bool is_readable = !set_.is_sealed || archive_.key() != nullptr;
  std::vector<CloneFile> files;
  for (const ArchivedFile& file : set_.files) {
    files.push_back(file.file);
    if (file.file.kind == CloneFileKind::kManifest) {
      base_.manifest_number = file.file.number;
      base_.manifest_bytes = file.file.records_end;
    } else if (file.file.kind == CloneFileKind::kWal) {
      newest_ = std::max(newest_,
                         Place(file.file.number, file.file.records_end));
    }
  }
  WalEnd end{newest_.first, newest_.second};
  const OpenWal open = [this](const CloneFile& file,
                              std::unique_ptr<ByteSource>* wal) {
    *wal = std::make_unique<PieceSource>(
        file.records_end,
        [this, number = file.number](uint64_t offset, uint64_t bytes,
                                     std::string* out) {
          return ReadOfSet(number, offset, bytes, out);
        });
    return Status::OK();
  };
  // If the store returns wrong bytes, a WAL may seem to end early although its
  // records have checksums. Then reads it again.
  bool is_sure = !is_readable;
  for (int tries = 0; tries < kTriesOfBytes && !is_sure; ++tries) {
    RETURN_IF_ERROR(FindWalEnd(files, open, &end));
    is_sure = newest_.second == 0 || end.number == newest_.first;
  }
  base_.wal_number = end.number;
  base_.wal_bytes = end.bytes;
  return Status::OK();
}

Status LogTail::ReadOfSet(uint64_t number, uint64_t offset, uint64_t bytes,
                          std::string* out) const {
  for (const ArchivedFile& file : set_.files) {
    if (file.file.kind == CloneFileKind::kWal && file.file.number == number) {
      RETURN_IF_ERROR(archive_
                          .ReadFile(set_, file, offset, bytes,
                                    [out](const Slice& piece) {
                                      out->append(piece.data(), piece.size());
                                      return Status::OK();
                                    })
                          .status);
    }
  }
  return Status::OK();
}

Status LogTail::ReadHeads(const std::vector<LogKey>& keys, size_t begin,
                          size_t end) {
  segments_.resize(end);
  std::mutex mu;
  Status failed;  // error of the first unreadable segment
  size_t failed_at = end;
  RETURN_IF_ERROR(ForEachInLanes(kHeadLanes, end - begin, [&](size_t each) {
    const size_t at = begin + each;
    Segment& segment = segments_[at];
    const Status status =
        ReadLogHead(archive_, keys[at], &segment.head, &segment.digest,
                    &segment.head_bytes);
    segment.head.key = keys[at];
    const std::lock_guard<std::mutex> lock(mu);
    if (!status.ok() && at < failed_at) {
      failed = status;
      failed_at = at;
    }
    return Status::OK();
  }));
  const EndState state = EndStateOf(failed);
  return state == EndState::kCorrupt || state == EndState::kRefused
             ? Amiss(failed_at, MessageOf(failed))
             : failed;
}

Status LogTail::CheckLink(size_t at) const {
  const LogHead& head = segments_[at].head;
  if (head.is_sealed != set_.is_sealed) {
    return Amiss(at, std::string("expected a segment that is ") +
                         (set_.is_sealed ? "sealed, as " : "not sealed, as ") +
                         SetNameText(set_.name) +
                         (set_.is_sealed ? " is, found an unsealed one"
                                         : " is, found a sealed one"));
  }
  if (head.begin.manifest_number != base_.manifest_number ||
      head.begin.manifest_bytes > base_.manifest_bytes) {
    return Amiss(at, "expected the log of the database of " +
                         SetNameText(set_.name) + ", found the log of another "
                                                  "database");
  }
  if (at == 0) {
    const bool is_behind =
        Place(head.begin.wal_number, head.begin.wal_bytes) > newest_;
    return is_behind ? Amiss(at, "expected a segment that continues " +
                                     SetNameText(set_.name) +
                                     ", found one that begins later")
                     : Status::OK();
  }
  const Segment& before = segments_[at - 1];
  if (head.previous != before.digest ||
      head.previous_lineage != before.head.key.lineage) {
    return Amiss(at, "expected a segment that continues " +
                         LogKeyText(before.head.key) +
                         ", found one that continues another segment");
  }
  return head.begin == before.head.end()
             ? Status::OK()
             : Amiss(at, "expected a segment that begins at the end of " +
                             LogKeyText(before.head.key) +
                             ", found one that begins elsewhere");
}

Status LogTail::AddPayload(size_t at, uint64_t bytes) {
  const LogHead& head = segments_[at].head;
  uint64_t payload_offset = 0;
  uint64_t number = head.begin.wal_number;
  uint64_t wal_offset = head.begin.wal_bytes;
  for (const LogWal& wal : head.wals) {
    if (wal.wal_number != number) {
      number = wal.wal_number;
      wal_offset = 0;
    }
    Extent extent{at, payload_offset, wal_offset,
                  std::min(wal.bytes, bytes - std::min(bytes, payload_offset))};
    payload_offset += wal.bytes;
    wal_offset += wal.bytes;
    // Skips bytes that are in the set.
    if (number < base_.wal_number || extent.bytes == 0) {
      continue;
    }
    const uint64_t known = number == base_.wal_number ? base_.wal_bytes : 0;
    const uint64_t end = extent.wal_offset + extent.bytes;
    if (end <= known) {
      continue;
    }
    if (extent.wal_offset < known) {
      const uint64_t skipped = known - extent.wal_offset;
      extent.payload_offset += skipped;
      extent.wal_offset += skipped;
      extent.bytes -= skipped;
    }
    Wal& whole = wals_[number];
    if (extents_[number].empty()) {
      whole.set_bytes = known;
      whole.end = known;
    }
    if (extent.wal_offset != whole.end) {
      return Amiss(at, "expected bytes from offset " +
                           std::to_string(whole.end) + " of WAL " +
                           std::to_string(number) +
                           " on, found bytes from offset " +
                           std::to_string(extent.wal_offset) + " on");
    }
    extents_[number].push_back(extent);
    whole.end = end;
  }
  return Status::OK();
}

Status LogTail::Read(const Archive& archive, const ArchiveSet& set,
                     const LogPath& path, const LogPoint& point,
                     const std::function<bool()>& cancelled,
                     std::unique_ptr<LogTail>* result) {
  std::unique_ptr<LogTail> tail(new LogTail(archive, set));
  tail->until_ = point.sequence;
  tail->why_ = path.why;
  RETURN_IF_ERROR(tail->FindBase());
  const std::vector<LogKey>& keys = path.segments;
  bool is_reached = false;
  for (size_t at = 0; at < keys.size() && !is_reached; ++at) {
    if (at == tail->segments_.size()) {
      size_t end = at;
      while (end < keys.size() && end < at + kHeadsAtOnce &&
             (end == at || !EndsAtOrAfter(keys[end - 1], point))) {
        ++end;
      }
      if (cancelled && cancelled()) {
        return MakeStatus(EndState::kCancelled, "restore: stopped on request");
      }
      RETURN_IF_ERROR(tail->ReadHeads(keys, at, end));
    }
    RETURN_IF_ERROR(tail->CheckLink(at));
    uint64_t bytes = 0;
    for (const LogMoment& moment : tail->segments_[at].head.moments) {
      if (point.micros.has_value() && moment.micros > *point.micros) {
        is_reached = true;
        break;
      }
      bytes = moment.bytes;
      if (point.sequence.has_value() && moment.sequence > *point.sequence) {
        is_reached = true;  // this segment may have records before the point
        break;
      }
      tail->sequence_ = std::max(tail->sequence_, moment.sequence);
    }
    RETURN_IF_ERROR(tail->AddPayload(at, bytes));
    is_reached = is_reached || EndsAtOrAfter(keys[at], point);
  }
  tail->is_reached_ = is_reached;
  *result = std::move(tail);
  return Status::OK();
}

// Appends at least `least` bytes of a WAL to *out, beginning at `offset`, or
// all bytes if there are fewer. Also appends the following bytes of the same
// payloads.
Status LogTail::ReadSome(uint64_t number, uint64_t offset, uint64_t least,
                         std::string* out) const {
  const ObjectSink append = [out](const Slice& piece) {
    out->append(piece.data(), piece.size());
    return Status::OK();
  };
  const Wal& wal = wals_.at(number);
  if (offset < wal.set_bytes) {
    RETURN_IF_ERROR(ReadOfSet(number, offset,
                              std::min(least, wal.set_bytes - offset), out));
  }
  for (const Extent& extent : extents_.at(number)) {
    const uint64_t at = offset + out->size();
    const uint64_t end = extent.wal_offset + extent.bytes;
    if (out->size() < least && extent.wal_offset <= at && at < end) {
      RETURN_IF_ERROR(ReadBytes(number, at, end - at, append).status);
    }
  }
  return Status::OK();
}

void LogTail::CutAt(uint64_t number, uint64_t end) {
  wals_.erase(wals_.upper_bound(number), wals_.end());
  extents_.erase(extents_.upper_bound(number), extents_.end());
  Wal& wal = wals_.at(number);
  wal.end = end;
  if (end == 0 || end == wal.set_bytes) {
    wals_.erase(number);
    extents_.erase(number);
    return;
  }
  std::vector<Extent>& extents = extents_[number];
  while (!extents.empty() && extents.back().wal_offset >= end) {
    extents.pop_back();
  }
  extents.back().bytes = end - extents.back().wal_offset;
}

Status LogTail::KeepPayload(uint64_t wal_number, uint64_t offset,
                            uint64_t least, uint64_t* most_bytes) {
  for (const Extent& extent : extents_.at(wal_number)) {
    Segment& segment = segments_[extent.segment];
    const uint64_t bytes = segment.head.payload_bytes();
    if (offset + least <= extent.wal_offset ||
        offset >= extent.wal_offset + extent.bytes ||
        !segment.payload.empty() || bytes > *most_bytes) {
      continue;
    }
    std::string payload;
    RETURN_IF_ERROR(ReadLogPayload(archive_, segment.head, segment.head_bytes,
                                   0, bytes,
                                   [&payload](const Slice& piece) {
                                     payload.append(piece.data(),
                                                    piece.size());
                                     return Status::OK();
                                   })
                        .status);
    *most_bytes -= bytes;
    segment.payload = std::move(payload);
  }
  return Status::OK();
}

Status LogTail::CheckRecords(uint64_t most_bytes,
                             const std::function<bool()>& cancelled) {
  return RetryIfCorrupt([&] { return TryRecords(&most_bytes, cancelled); });
}

Status LogTail::TryRecords(uint64_t* most_bytes,
                           const std::function<bool()>& cancelled) {
  if (wals_.empty() && !until_.has_value()) {
    return Status::OK();
  }
  WalContinuity continuity(0);
  bool is_after_set = false;
  uint64_t reached = set_.sequence;
  // Maps each WAL of the set or the log to its end.
  std::map<uint64_t, uint64_t> ends;
  for (const ArchivedFile& file : set_.files) {
    if (file.file.kind == CloneFileKind::kWal) {
      ends[file.file.number] = file.file.records_end;
    }
  }
  for (const auto& [number, wal] : wals_) {
    ends[number] = wal.end;
  }
  for (const auto& [number, end] : ends) {
    const auto logged = wals_.find(number);
    const uint64_t set_bytes =
        logged != wals_.end() ? logged->second.set_bytes : end;
    const auto bad = [&, number = number](const std::string& what) {
      return MakeStatus(EndState::kCorrupt,
                        archive_.store()->place() + ": WAL " +
                            std::to_string(number) + " of the log after " +
                            SetNameText(set_.name) + ": " + what +
                            "; @sequence:" + std::to_string(reached) +
                            " is the last one that can be restored");
    };
    LogFollower follower(LogKind::kWal, number);
    const PieceSource source(
        end, [&, number = number](uint64_t offset, uint64_t bytes,
                                  std::string* out) {
          if (logged == wals_.end()) {
            return ReadOfSet(number, offset, bytes, out);
          }
          RETURN_IF_ERROR(KeepPayload(number, offset, bytes, most_bytes));
          return ReadSome(number, offset, bytes, out);
        });
    uint64_t kept_bytes = set_bytes;  // end of the last record to restore
    bool is_past = false;             // the next record is after the point
    Status status =
        follower.Follow(source, [&](const Slice& record, uint64_t at) {
          if (cancelled && cancelled()) {
            return MakeStatus(EndState::kCancelled, "stopped on request");
          }
          if (!is_after_set && at > set_bytes) {
            continuity.BeginBehindCut(set_.sequence);
            is_after_set = true;
          }
          WalStep step = WalStep::kContinues;
          RETURN_IF_ERROR(continuity.Add(number, record, &step));
          // A record is one write batch, which must be restored completely or
          // not at all.
          const bool is_later =
              until_.has_value() && continuity.last_sequence() > *until_;
          if (is_later && at <= set_bytes) {
            return SetIsLater(continuity.last_sequence());
          }
          if (is_later && (step != WalStep::kGap || reached >= *until_)) {
            is_past = true;
            return Status::Aborted("past the sequence number");
          }
          if (is_after_set && step != WalStep::kContinues) {
            return bad("expected a record with sequence number " +
                       std::to_string(reached + 1) + ", found " +
                       std::to_string(DecodeFixed64(record.data())));
          }
          reached = std::max(reached, continuity.last_sequence());
          kept_bytes = std::max(kept_bytes, at);
          return Status::OK();
        });
    if (is_past) {
      CutAt(number, kept_bytes);
      sequence_ = std::max(sequence_, reached);
      return Status::OK();
    }
    if (status.ok() && follower.end() != end) {
      status = bad("expected whole records up to byte " + std::to_string(end) +
                   ", found whole ones only up to "
                   "byte " + std::to_string(follower.end()));
    }
    RETURN_IF_ERROR(status);
  }
  sequence_ = std::max(sequence_, reached);
  if (!until_.has_value() || is_reached_ || *until_ <= sequence_) {
    return Status::OK();
  }
  return MakeStatus(EndState::kRefused,
                    archive_.store()->place() + ": sequence " +
                        std::to_string(*until_) +
                        " is not in the log after " + SetNameText(set_.name) +
                        ", which ends at " + std::to_string(sequence_) +
                        (why_.empty() ? "" : " (" + why_ + ")") +
                        "; @sequence:" + std::to_string(sequence_) +
                        " is the last one that can be restored");
}

// Returns the error for a set with records after the sequence number of the
// point. This can happen if an older sstferry version made the set, and the set
// ends with the commit of a prepared transaction. Then the number in its record
// is too small.
Status LogTail::SetIsLater(uint64_t last) const {
  return MakeStatus(EndState::kRefused,
                    archive_.store()->place() + ": set " +
                        SetNameText(set_.name) +
                        ": expected no record after sequence " +
                        std::to_string(*until_) + ", found one up to " +
                        std::to_string(last) +
                        "; an older set may restore it: @SET+sequence:" +
                        std::to_string(*until_),
                    "sstferry archive list " +
                        ShellWord(archive_.store()->place()));
}

std::map<LogKey, uint64_t> LogTail::SegmentsRead() const {
  std::map<LogKey, uint64_t> read;
  for (const auto& [number, extents] : extents_) {
    for (const Extent& extent : extents) {
      const LogHead& head = segments_[extent.segment].head;
      read[head.key] = head.stored_bytes();
    }
  }
  return read;
}

StoreResult LogTail::ReadBytes(uint64_t number, uint64_t offset,
                               uint64_t bytes, const ObjectSink& sink) const {
  const uint64_t end = offset + bytes;
  for (const Extent& extent : extents_.at(number)) {
    const uint64_t begin = std::max(offset, extent.wal_offset);
    const uint64_t stop = std::min(end, extent.wal_offset + extent.bytes);
    if (begin >= stop) {
      continue;
    }
    const Segment& segment = segments_[extent.segment];
    const uint64_t from = extent.payload_offset + (begin - extent.wal_offset);
    if (!segment.payload.empty()) {
      const Status given = sink(
          Slice(segment.payload.data() + from, static_cast<size_t>(stop - begin)));
      if (!given.ok()) {
        return {StoreCode::kCaller, given};
      }
      continue;
    }
    const StoreResult got = ReadLogPayload(
        archive_, segment.head, segment.head_bytes, from, stop - begin, sink);
    if (!got.ok()) {
      return got;
    }
  }
  return {};
}

}  // namespace sstferry
