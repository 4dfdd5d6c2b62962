#include "pipeline/archive/check.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "format/end_state.h"
#include "pipeline/archive/set_source.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr uint64_t kSecondsPerDay = 86400;

// A set with its record; none: it cannot be read.
struct ReadRecord {
  ListedSet listed;
  std::optional<ArchiveSet> record;
};

// Reads all records, the oldest first. Sets that go meanwhile are left out.
Status ReadRecords(const Archive& archive, std::vector<ReadRecord>* records) {
  Marked marked;
  RETURN_IF_ERROR(archive.ReadMarked(&marked));
  std::vector<FoundSet> found;
  RETURN_IF_ERROR(archive.ListSets(&found));
  for (const FoundSet& set : found) {
    ReadRecord read;
    read.listed.name = set.name;
    read.listed.state = !set.is_done ? SetState::kUnfinished
                        : marked.sets.count(set.name) != 0
                            ? SetState::kExpiring
                            : SetState::kWhole;
    const Status status = archive.ReadSet(set, &read.record);
    if (!status.ok() && EndStateOf(status) != EndState::kCorrupt) {
      return status;
    }
    if (!status.ok()) {
      read.record.reset();
      read.listed.state = SetState::kDamaged;
      read.listed.problem = MessageOf(status);
    } else if (!read.record.has_value()) {
      continue;
    } else {
      const ArchiveSet& record = *read.record;
      read.listed.label = record.label;
      read.listed.host = record.host;
      read.listed.database_id = record.database_id;
      read.listed.sequence = record.sequence;
      read.listed.is_sealed = record.is_sealed;
      read.listed.families = record.families.size();
      read.listed.files = record.files.size();
      for (const ArchivedFile& file : record.files) {
        read.listed.bytes += file.file.bytes;
        read.listed.own_bytes +=
            file.key.set == record.name.id ? file.file.bytes : 0;
      }
    }
    records->push_back(std::move(read));
  }
  return Status::OK();
}

// A file that sets name, once.
struct NamedFile {
  const ArchivedFile* file = nullptr;
  uint64_t unit_bytes = 0;
  uint64_t object_bytes = 0;
  bool is_sealed = false;  // its bytes are told by the SHA-256 alone
  std::vector<ReadRecord*> sets;  // the oldest first
};

class Checker {
 public:
  Checker(const Archive& archive, const CheckOptions& options,
          CheckSummary* summary)
      : archive_(archive), options_(options), summary_(summary) {}

  [[nodiscard]] Status Run();

 private:
  void NameFiles();
  void CompareWithList();
  [[nodiscard]] Status ReadFiles();
  // True for an object whose turn it is to be read.
  bool IsRead(const std::string& key) const;
  void ChoosePart();
  [[nodiscard]] Status ReadFile(const std::string& key,
                                const NamedFile& named);
  void Amiss(const std::string& key, const std::string& what);
  // Tells what is amiss of the sets that are there at the end.
  void TellAmiss(const std::set<SetName>& still_there);
  [[nodiscard]] Status Verdict() const;

  const Archive& archive_;
  const CheckOptions& options_;
  CheckSummary* const summary_;
  std::vector<ReadRecord> records_;
  std::map<std::string, NamedFile> named_;
  ListedKeys present_;
  std::map<std::string, std::string> amiss_;  // what is, by key
  std::atomic<bool> has_wrong_bytes_{false};  // an object that was read
  std::mutex mu_;
};

void Checker::NameFiles() {
  for (ReadRecord& read : records_) {
    if (!read.record.has_value()) {
      continue;
    }
    for (const ArchivedFile& file : read.record->files) {
      NamedFile& named = named_[ArchiveKeyText(file.key)];
      named.file = &file;
      named.unit_bytes = read.record->unit_bytes;
      named.object_bytes = read.record->ObjectBytes(file);
      named.is_sealed = read.record->is_sealed;
      named.sets.push_back(&read);
    }
  }
}

void Checker::Amiss(const std::string& key, const std::string& what) {
  const std::lock_guard<std::mutex> lock(mu_);
  amiss_.emplace(key, what);
}

// A set that a prune has removed meanwhile lost its files in good order, and
// one that does not count may not have them yet.
void Checker::TellAmiss(const std::set<SetName>& still_there) {
  for (const auto& [key, what] : amiss_) {
    std::string sets;
    for (ReadRecord* const read : named_[key].sets) {
      ListedSet& listed = read->listed;
      if (listed.state == SetState::kUnfinished ||
          still_there.count(listed.name) == 0) {
        continue;
      }
      listed.state = SetState::kDamaged;
      if (listed.problem.empty()) {
        listed.problem = key + ": " + what;
      }
      sets += (sets.empty() ? "" : ", ") + SetNameText(listed.name);
    }
    if (!sets.empty() && summary_->problems.size() < kMaxProblems) {
      summary_->problems.push_back(archive_.store()->Describe(key) + ": " +
                                   what + "; used by " + sets);
    }
  }
}

void Checker::CompareWithList() {
  for (const auto& [key, what] : options_.known) {
    if (named_.count(key) != 0) {
      Amiss(key, what);
    }
  }
  for (const auto& [key, named] : named_) {
    const auto there = present_.find(key);
    const uint64_t bytes = named.object_bytes;
    if (there == present_.end()) {
      Amiss(key, "is not there");
    } else if (there->second != bytes) {
      Amiss(key, "expected " + std::to_string(bytes) + " bytes, found " +
                     std::to_string(there->second));
    }
  }
  for (const auto& [key, bytes] : present_) {
    ++summary_->objects;
    summary_->bytes += bytes;
    if (named_.count(key) == 0) {
      ++summary_->orphans;
      summary_->orphan_bytes += bytes;
    }
  }
}

Status Checker::ReadFile(const std::string& key, const NamedFile& named) {
  const ArchivedFile& file = *named.file;
  PieceDigester pieces(named.object_bytes);
  UnitDigester units(file.file, named.unit_bytes);
  GetRequest request;
  request.key = key;
  request.bytes = named.object_bytes;
  const StoreResult got =
      archive_.store()->Get(request, [&](const Slice& bytes) {
        pieces.Add(bytes);
        if (!named.is_sealed) {
          units.Add(bytes);
        }
        return Status::OK();
      });
  if (got.code == StoreCode::kAbsent || got.code == StoreCode::kDamaged) {
    Amiss(key, MessageOf(got.status));
    if (got.code == StoreCode::kDamaged) {
      has_wrong_bytes_ = true;
    }
    return Status::OK();
  }
  RETURN_IF_ERROR(got.status);
  if (Sha256OfPieces(pieces.Finish()) != file.sha256 ||
      (!named.is_sealed && units.units() != file.units)) {
    Amiss(key, "its bytes are not those that were pushed");
    has_wrong_bytes_ = true;
  }
  const std::lock_guard<std::mutex> lock(mu_);
  ++summary_->read_files;
  summary_->read_bytes += named.object_bytes;
  return Status::OK();
}

// All have their turn within so many days.
void Checker::ChoosePart() {
  if (options_.read_percent > 0) {
    summary_->read_parts = static_cast<uint64_t>(
        std::max(1.0, std::ceil(100 / options_.read_percent)));
    summary_->read_part =
        summary_->now_seconds / kSecondsPerDay % summary_->read_parts + 1;
  }
}

bool Checker::IsRead(const std::string& key) const {
  return summary_->read_parts != 0 &&
         Digest64(key) % summary_->read_parts + 1 == summary_->read_part;
}

Status Checker::ReadFiles() {
  std::vector<const std::pair<const std::string, NamedFile>*> files;
  for (const auto& entry : named_) {
    if (IsRead(entry.first) && present_.count(entry.first) != 0) {
      files.push_back(&entry);
    }
  }
  std::atomic<size_t> next{0};
  Status failed;
  const auto work = [&] {
    for (size_t at = next++; at < files.size(); at = next++) {
      const Status status =
          options_.cancelled && options_.cancelled()
              ? MakeStatus(EndState::kCancelled, "check: stopped on request")
              : ReadFile(files[at]->first, files[at]->second);
      if (!status.ok()) {
        const std::lock_guard<std::mutex> lock(mu_);
        failed = failed.ok() ? status : failed;
        next = files.size();
      }
    }
  };
  RunInLanes(options_.lanes, work);
  return failed;
}

Status Checker::Verdict() const {
  const ListedSet* first = nullptr;
  std::string whole;
  for (const ListedSet& set : summary_->sets) {
    if (set.state == SetState::kDamaged && first == nullptr) {
      first = &set;
    }
    if (set.state == SetState::kWhole || set.state == SetState::kExpiring) {
      whole = SetNameText(set.name);
    }
  }
  if (first == nullptr) {
    return summary_->log.problems.empty()
               ? Status::OK()
               : MakeStatus(EndState::kCorrupt,
                            summary_->log.problems.front());
  }
  return MakeStatus(
      EndState::kCorrupt,
      "set " + SetNameText(first->name) + ": " +
          (summary_->problems.empty() ? first->problem
                                      : summary_->problems.front()) +
          (whole.empty() ? "; no set is whole: "
                         : "; the newest set that is whole is " + whole +
                               ": ") +
          // A push looks at names and sizes alone.
          (has_wrong_bytes_
               ? "delete each object whose bytes are wrong, else a push uses it "
                 "again; then push"
               : "push again, so that there is a newer one"));
}

Status Checker::Run() {
  RETURN_IF_ERROR(archive_.Now(&summary_->now_seconds));
  ChoosePart();
  // Sets first: what is named later need not be in them.
  RETURN_IF_ERROR(ReadRecords(archive_, &records_));
  for (const char* prefix : {kArchiveFilesPrefix, kArchivePartsPrefix}) {
    RETURN_IF_ERROR(
        archive_.ListKeys(prefix, &present_, &summary_->foreign));
  }
  NameFiles();
  CompareWithList();
  RETURN_IF_ERROR(ReadFiles());
  RETURN_IF_ERROR(CheckLog(
      archive_, [this](const std::string& key) { return IsRead(key); },
      options_.cancelled, &summary_->log));
  std::vector<FoundSet> now;
  RETURN_IF_ERROR(archive_.ListSets(&now));
  std::set<SetName> still_there;
  for (const FoundSet& set : now) {
    still_there.insert(set.name);
  }
  TellAmiss(still_there);
  for (const ReadRecord& read : records_) {
    if (still_there.count(read.listed.name) == 0) {
      continue;
    }
    if (read.listed.state == SetState::kWhole ||
        read.listed.state == SetState::kExpiring) {
      summary_->newest_seconds = read.listed.name.seconds;
    }
    summary_->sets.push_back(read.listed);
  }
  return Verdict();
}

}  // namespace

const char* SetStateName(SetState state) {
  switch (state) {
    case SetState::kWhole:
      return "whole";
    case SetState::kExpiring:
      return "expiring";
    case SetState::kUnfinished:
      return "unfinished";
    case SetState::kDamaged:
      return "damaged";
  }
  return "unknown";
}

Status ListArchive(const Archive& archive, std::vector<ListedSet>* sets) {
  ArchiveHead head;
  RETURN_IF_ERROR(archive.ReadHead(&head));
  std::vector<ReadRecord> records;
  RETURN_IF_ERROR(ReadRecords(archive, &records));
  sets->clear();
  for (ReadRecord& read : records) {
    sets->push_back(std::move(read.listed));
  }
  return Status::OK();
}

Status CheckArchive(const Archive& archive, const CheckOptions& options,
                    CheckSummary* summary) {
  *summary = CheckSummary();
  ArchiveHead head;
  RETURN_IF_ERROR(archive.ReadHead(&head));
  return Checker(archive, options, summary).Run();
}

}  // namespace sstferry
