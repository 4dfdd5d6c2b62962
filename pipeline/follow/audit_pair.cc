#include "pipeline/follow/audit_pair.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "format/end_state.h"
#include "format/file_name.h"
#include "format/key_for_message.h"
#include "format/limits.h"
#include "format/printable.h"
#include "pipeline/options/options_text.h"
#include "pipeline/parts/range_entries.h"
#include "pipeline/parts/read_failure.h"
#include "pipeline/parts/table_file.h"
#include "pipeline/snapshot/posix_files.h"
#include "pipeline/snapshot/private_dir.h"
#include "pipeline/snapshot/snapshot_copy.h"
#include "pipeline/snapshot/snapshot_files.h"
#include "pipeline/snapshot/snapshot_manifest.h"
#include "pipeline/snapshot/snapshot_options.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// Maximum time for taking a side. It is never reached, because no process
// changes these directories in a way that would require another attempt.
constexpr std::chrono::milliseconds kMostRounds{10'000};
// After this many entries, calls is_spent() and checks for cancellation.
constexpr uint64_t kAskEvery = 256;
constexpr char kThisProcess[] = ", which this process does not have";

std::string ReasonNotToAudit(const FamilyOpening& family,
                             const OptionsText& text, bool exact_filters) {
  if (!family.unknown_comparator.empty()) {
    return "its comparator is " + family.unknown_comparator + kThisProcess;
  }
  if (family.source.comparator->timestamp_size() > 0) {
    return "its keys carry user-defined timestamps";
  }
  if (!family.unknown_merge_operator.empty()) {
    return "its merge operator is " + family.unknown_merge_operator +
           kThisProcess;
  }
  return !exact_filters && text.HasFilter(family.name)
             ? "it has a compaction filter, and the standby is followed "
               "without --exact-filters"
             : "";
}

}  // namespace

struct AuditPair::Side {
  SnapshotOptions options;
  std::unique_ptr<SnapshotCopy> copy;
  std::unique_ptr<SnapshotFiles> files;  // files in the directory of `copy`
  // The key is the family's id.
  std::map<uint32_t, const SnapshotFamily*> families;

  // Links and copies the side into the temporary directory `name` below
  // `parent`.
  Status Take(const std::string& parent, const std::string& name) {
    RETURN_IF_ERROR(
        ResolveDatabase(options.database_dir, &options.database_dir));
    std::unique_ptr<PrivateDir> dir;
    RETURN_IF_ERROR(PrivateDir::Create(parent, name, &dir));
    RETURN_IF_ERROR(dir->Clear());
    files = std::make_unique<SnapshotFiles>(options, dir->pinned(), dir->db());
    copy = std::make_unique<SnapshotCopy>(std::move(dir));
    Status status = files->Take();
    if (status.ok()) status = files->ReleasePinned();
    files->CloseWals();
    return WithContext(status, EndState::kSourceError, options.database_dir);
  }

  Status Open(const std::vector<std::string>& wanted) {
    options.families = wanted;
    RETURN_IF_ERROR(copy->Fill(options, files.get()));
    for (const SnapshotFamily& family : copy->families()) {
      families[family.handle->GetID()] = &family;
    }
    return Status::OK();
  }

  bool Has(uint32_t id, const std::string& name) const {
    const auto& all = files->state().families;
    const auto family = all.find(id);
    return family != all.end() && family->second.name == name;
  }
};

// Compares one column family in key order.
class AuditPair::FamilyCompare {
 public:
  FamilyCompare(const Snapshot* standby, const Snapshot* cut,
                const SnapshotFamily& in_standby, const SnapshotFamily& in_cut,
                const std::optional<std::string>& begin,
                std::function<bool()> cancelled)
      : name_(in_cut.name),
        order_(in_cut.handle->GetComparator()),
        cancelled_(std::move(cancelled)) {
    const Snapshot* const copies[2] = {standby, cut};
    const SnapshotFamily* const families[2] = {&in_standby, &in_cut};
    KeyInterval interval;
    interval.begin = begin;
    for (int i = 0; i < 2; ++i) {
      RangeEntriesOptions options;
      options.cancelled = cancelled_;
      // Lists tables only if everything was flushed. Otherwise some entries are
      // in no table.
      if (!copies[i]->wal_not_flushed()) {
        files_[i] = ListTableFiles(copies[i]->db(), families[i]->handle);
        options.files = &files_[i];
      }
      readers_[i] = std::make_unique<RangeEntries>(
          copies[i]->db(), families[i]->handle, interval, options);
      readers_[i]->SeekToBegin();
    }
  }

  // Compares entries, and adds the results to *slice and *bytes. Sets *next to
  // the key at which the next slice begins. At the end of the family, *next is
  // not set.
  Status Run(uint64_t max_bytes, const std::function<bool()>& is_spent,
             uint64_t* bytes, AuditSlice* slice,
             std::optional<std::string>* next) {
    next->reset();
    RangeEntries& standby = *readers_[0];
    RangeEntries& cut = *readers_[1];
    while (standby.Valid() || cut.Valid()) {
      // Valid() is also false after a read error, so checks for errors first.
      if (!standby.status().ok() || !cut.status().ok()) break;
      const int order = !standby.Valid() ? 1
                        : !cut.Valid()
                            ? -1
                            : order_->Compare(standby.key(), cut.key());
      const Slice key = order > 0 ? cut.key() : standby.key();
      const bool asks = slice->entries % kAskEvery == 0;
      is_over_ = is_over_ || *bytes >= max_bytes || (asks && is_spent());
      // A slice cannot begin at a key that is too long for the audit's record.
      if (is_over_ && slice->entries > 0 && key.size() <= kMaxKeyBytes) {
        *next = key.ToString();
        break;
      }
      if (asks && IsCancelled()) {
        if (key.size() <= kMaxKeyBytes) *next = key.ToString();
        break;
      }
      Look(order, key, bytes);
      slice->entries++;
      if (order <= 0) standby.Next();
      if (order >= 0) cut.Next();
    }
    if (differences_.count() > 0) Tell(slice);
    if (IsCancelled()) {
      return MakeStatus(EndState::kCancelled, "stopped during the audit");
    }
    for (const auto& reader : readers_) {
      RETURN_IF_ERROR(ReadFailure(
          reader->status(), "column family '" + Printable(name_) + "'"));
    }
    return Status::OK();
  }

 private:
  // Counts entries that only one side has, or whose values differ.
  struct Differences {
    uint64_t in_standby = 0;
    uint64_t in_cut = 0;
    uint64_t other_value = 0;
    std::string first;
    std::string last;

    uint64_t count() const { return in_standby + in_cut + other_value; }
    void Add(const Slice& key, uint64_t* kind) {
      if (count() == 0) first = KeyForMessage(key);
      last = KeyForMessage(key);
      ++*kind;
    }
  };

  bool IsCancelled() const { return cancelled_ && cancelled_(); }
  void Look(int order, const Slice& key, uint64_t* bytes) {
    *bytes += key.size();
    for (int i = 0; i < 2; ++i) {
      if (i == 0 ? order > 0 : order < 0) continue;
      entries_[i]++;
      values_[i] = readers_[i]->DigestValue(&scratch_[i], &is_entity_[i]);
      *bytes += values_[i].size();
    }
    if (order < 0) {
      differences_.Add(key, &differences_.in_standby);
    } else if (order > 0) {
      differences_.Add(key, &differences_.in_cut);
    } else if (readers_[0]->key() != readers_[1]->key() ||
               is_entity_[0] != is_entity_[1] || values_[0] != values_[1]) {
      differences_.Add(key, &differences_.other_value);
    }
  }

  void Tell(AuditSlice* slice) const {
    if (!slice->difference.empty()) slice->difference += "; ";
    slice->difference +=
        "column family '" + Printable(name_) + "': " +
        std::to_string(differences_.count()) + " entries differ, from key " +
        differences_.first + " to " + differences_.last + ": " +
        std::to_string(differences_.in_standby) + " only here, " +
        std::to_string(differences_.in_cut) + " only at the source, " +
        std::to_string(differences_.other_value) +
        " with another value; of " + std::to_string(entries_[0]) +
        " here and " + std::to_string(entries_[1]) + " there";
  }

  const std::string name_;
  const rocksdb::Comparator* const order_;
  const std::function<bool()> cancelled_;
  std::vector<TableFile> files_[2];
  std::unique_ptr<RangeEntries> readers_[2];
  std::string scratch_[2];
  Slice values_[2];
  bool is_entity_[2] = {false, false};
  uint64_t entries_[2] = {0, 0};
  Differences differences_;
  bool is_over_ = false;
};

AuditPair::AuditPair(AuditPairOptions options) : options_(std::move(options)) {
  for (int i = 0; i < 2; ++i) {
    sides_[i] = std::make_unique<Side>();
    SnapshotOptions& side = sides_[i]->options;
    side.database_dir = i == 0 ? options_.standby_dir : options_.cut_dir;
    side.deadline = kMostRounds;
    side.wal_limit = options_.end;
    side.registry = options_.registry;
    side.cancelled = options_.cancelled;
  }
}

AuditPair::~AuditPair() = default;

Status AuditPair::Take(const AuditPairOptions& options,
                       std::unique_ptr<AuditPair>* pair) {
  std::unique_ptr<AuditPair> made(new AuditPair(options));
  std::string real;
  RETURN_IF_ERROR(ResolveDatabase(options.standby_dir, &real));
  const std::filesystem::path path(real);
  for (const auto& side : made->sides_) {
    RETURN_IF_ERROR(
        side->Take(path.parent_path().string(), path.filename().string()));
  }
  // Checks that both sides have the same bytes in the cut's last WAL, up to the
  // cut's end.
  const std::string wal = NumberedName(options.end.number, ".log");
  Digest128 digests[2];
  for (int i = 0; i < 2 && options.end.bytes > 0; ++i) {
    RETURN_IF_ERROR(
        DigestOfFileBegin(made->sides_[i]->copy->own_path() + "/db/" + wal,
                          options.end.bytes, &digests[i]));
  }
  if (!(digests[0] == digests[1])) {
    return MakeStatus(EndState::kCorrupt,
                      options.standby_dir + "/" + wal +
                          ": expected the source's bytes before byte " +
                          std::to_string(options.end.bytes) +
                          ", found others");
  }
  *pair = std::move(made);
  return Status::OK();
}

// Adds the families of one side that cannot be compared to unaudited_.
Status AuditPair::FindUnaudited(const Side& side) {
  const std::string& text = side.files->options_text();
  OpenPlan plan;
  // PlanOpening() fails if it cannot open one of the families. This is no error
  // here, because the code below adds this family.
  const Status planned = PlanOpening(
      side.files->state(), text, side.files->options_name(), {},
      options_.registry,
      {side.options.write_buffer_bytes, side.options.max_open_files}, &plan);
  if (!planned.ok() && plan.families.empty()) {
    return planned;
  }
  const OptionsText options(text);
  for (const FamilyOpening& family : plan.families) {
    const std::string reason =
        ReasonNotToAudit(family, options, options_.exact_filters);
    const bool is_known = std::any_of(
        unaudited_.begin(), unaudited_.end(),
        [&](const UnauditedFamily& known) { return known.name == family.name; });
    if (!reason.empty() && !is_known) {
      unaudited_.push_back({family.name, reason});
    }
  }
  return Status::OK();
}

Status AuditPair::Open() {
  unaudited_.clear();
  for (const auto& side : sides_) {
    RETURN_IF_ERROR(FindUnaudited(*side));
  }
  for (const auto& side : sides_) {
    std::vector<std::string> wanted;
    for (const auto& [id, family] : side->files->state().families) {
      const bool is_audited = std::none_of(
          unaudited_.begin(), unaudited_.end(),
          [name = family.name](const UnauditedFamily& unaudited) {
            return unaudited.name == name;
          });
      if (is_audited) wanted.push_back(family.name);
    }
    if (wanted.empty()) {
      return MakeStatus(EndState::kRefused,
                        "none of its families can be audited");
    }
    RETURN_IF_ERROR(side->Open(wanted));
  }
  return Status::OK();
}

bool AuditPair::Audits(const std::string& family) const {
  const auto& families = sides_[1]->families;
  return std::any_of(families.begin(), families.end(),
                     [&family](const auto& each) {
                       return each.second->name == family;
                     });
}

Status AuditPair::Compare(AuditPlace begin, uint64_t max_bytes,
                          const std::function<bool()>& is_spent,
                          AuditSlice* slice) {
  *slice = AuditSlice();
  slice->next = begin;
  const Side& standby = *sides_[0];
  const Side& cut = *sides_[1];
  // If only one side has a family, this is a difference. It cannot be an
  // addition or removal at the source, because the source's MANIFEST would then
  // have a barrier.
  for (int i = 0; i < 2; ++i) {
    for (const auto& [id, family] : sides_[i]->families) {
      if (!sides_[1 - i]->Has(id, family->name)) {
        slice->difference = "column family '" + Printable(family->name) +
                            "' is only " + (i == 0 ? "here" : "at the source");
        return Status::OK();
      }
    }
  }
  uint64_t bytes = 0;
  for (auto family = cut.families.lower_bound(begin.family);
       family != cut.families.end(); ++family) {
    const uint32_t id = family->first;
    const bool resumes = id == begin.family;
    FamilyCompare compare(standby.copy.get(), cut.copy.get(),
                          *standby.families.at(id),
                          *family->second,
                          resumes ? begin.key : std::nullopt,
                          options_.cancelled);
    std::optional<std::string> next;
    const Status status =
        compare.Run(max_bytes, is_spent, &bytes, slice, &next);
    // If nothing was compared in this family, the next slice begins at the same
    // place.
    const bool has_moved = next.has_value() || !resumes;
    slice->next = has_moved ? AuditPlace{id, next} : begin;
    if (!status.ok() || next.has_value()) {
      return status;
    }
    slice->next = {id + 1, std::nullopt};
  }
  slice->is_end = true;
  return Status::OK();
}

}  // namespace sstferry
