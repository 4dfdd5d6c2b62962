#include "pipeline/refresh/table_trace.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "format/coding.h"
#include "format/rocksdb/manifest_reader.h"
#include "format/rocksdb/sst_properties.h"
#include "pipeline/pull/closed_files.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

constexpr char kOptionsNamePrefix[] = "OPTIONS-";
constexpr char kManifestPrefix[] = "MANIFEST-";

// RocksDB adds these constants before it hashes an id.
constexpr uint64_t kAddedToHigh = 6417269962128484497u;
constexpr uint64_t kAddedToLow = 17391078804906429400u;

// Returns the number after the prefix; 0: another name.
uint64_t NumberIn(const std::string& name, const std::string& prefix) {
  return name.starts_with(prefix) && name.size() > prefix.size() &&
                 name.find_first_not_of("0123456789", prefix.size()) ==
                     std::string::npos
             ? strtoull(name.c_str() + prefix.size(), nullptr, 10)
             : 0;
}

uint64_t TableNumber(const std::string& name) {
  return strtoull(name.c_str(), nullptr, 10);
}

// Returns all properties that distinguish one recorded table from another.
std::string KeyOf(const RecordedTable& table) {
  std::string key;
  PutFixed64(&key, table.id.high);
  PutFixed64(&key, table.id.low);
  PutFixed64(&key, table.bytes);
  PutFixed64(&key, table.smallest_sequence);
  PutFixed64(&key, table.largest_sequence);
  PutBytes(&key, table.smallest);
  PutBytes(&key, table.largest);
  return key;
}

// The writer of a table: equal for all tables that one open database writes,
// because RocksDB derives the id from the session and the table's number.
using Writer = std::pair<uint64_t, uint64_t>;

// A table of the MANIFEST.
struct Traced {
  RecordedTable table;
  uint64_t number = 0;
  std::optional<Writer> writer;  // unset: no id
};

Traced TracedOf(const ManifestFile& file) {
  Traced traced;
  traced.number = file.number;
  traced.table.smallest = UserKeyOf(file.smallest).ToString();
  traced.table.largest = UserKeyOf(file.largest).ToString();
  traced.table.bytes = file.bytes;
  traced.table.smallest_sequence = file.smallest_sequence;
  traced.table.largest_sequence = file.largest_sequence;
  if (file.has_unique_id) {
    traced.table.id = PublicTableId(file.unique_id);
    traced.writer = {file.unique_id.high, file.unique_id.low ^ file.number};
  }
  return traced;
}

// One change of a family's tables; a table that moved to another level is in
// neither list.
struct Change {
  std::vector<Traced> gone;
  std::vector<Traced> come;
  bool is_compaction = false;
};

// A group of compactions that read each other's tables: their input, and what
// is left of their output.
class Compacted {
 public:
  explicit Compacted(const rocksdb::Comparator* order) : order_(order) {}

  // Adds an input table whose entries are known.
  void Take(const RecordedTable& table) {
    (table.range_deletions == 0 ? known_ : unknown_).push_back(&table);
  }
  void TakeUnknown(const RecordedTable& table) { unknown_.push_back(&table); }
  void Leave(const LiveTable& table) { left_ += table.entries; }

  // Returns false if RocksDB may not drop as many entries as are missing.
  bool is_whole() const {
    uint64_t deletions = 0;
    for (const RecordedTable* const table : known_) {
      deletions += table->deletions;
    }
    // Tables that do not overlap have different keys, and each deletion removes
    // at most one entry. Merge operands of one key become one entry.
    std::vector<const RecordedTable*> largest;
    for (const RecordedTable* const table : known_) {
      if (!MeetsUnknown(*table)) largest.push_back(table);
    }
    std::sort(largest.begin(), largest.end(), [](auto* a, auto* b) {
      return a->entries > b->entries;
    });
    const auto before = [this](const RecordedTable* a, const RecordedTable* b) {
      return order_->Compare(a->largest, b->smallest) < 0;
    };
    std::set<const RecordedTable*, decltype(before)> apart(before);
    uint64_t keys = 0;
    for (const RecordedTable* const table : largest) {
      if (apart.insert(table).second) {  // overlaps none of them
        keys += table->entries - std::min(table->entries,
                                          table->merge_operands);
      }
    }
    return left_ + deletions >= keys;
  }

  // Appends the spans about which nothing is known.
  void AddDoubtful(std::vector<ChangedSpan>* spans) const {
    for (const RecordedTable* const table : known_) {
      if (MeetsUnknown(*table)) {
        spans->push_back({table->smallest, table->largest});
      }
    }
    for (const RecordedTable* const table : unknown_) {
      spans->push_back({table->smallest, table->largest});
    }
  }

 private:
  bool MeetsUnknown(const RecordedTable& table) const {
    return std::any_of(
        unknown_.begin(), unknown_.end(), [&](const RecordedTable* other) {
          return order_->Compare(table.smallest, other->largest) <= 0 &&
                 order_->Compare(other->smallest, table.largest) <= 0;
        });
  }

  const rocksdb::Comparator* const order_;
  std::vector<const RecordedTable*> known_;
  std::vector<const RecordedTable*> unknown_;
  uint64_t left_ = 0;  // number of entries
};

// Follows the tables of one family.
class FamilyTrace {
 public:
  explicit FamilyTrace(TracedFamily* family) : family_(family) {
    for (const RecordedTable& table : *family->then) {
      Count(KeyOf(table), 1);
      then_[KeyOf(table)] = &table;
    }
    if (family->added != nullptr) {
      for (const RecordedTable& table : *family->added) {
        added_.emplace(std::pair(table.id.high, table.id.low), &table);
      }
    }
  }

  void Apply(const VersionEdit& edit) {
    Change change;
    std::set<uint64_t> moved;
    for (const ManifestFile& file : edit.new_files) {
      moved.insert(file.number);
    }
    for (const auto& [level, number] : edit.deleted_files) {
      const auto found = live_.find(number);
      if (found != live_.end() && moved.count(number) == 0) {
        Count(KeyOf(found->second.table), 1);
        change.gone.push_back(std::move(found->second));
        live_.erase(found);
      }
    }
    for (const ManifestFile& file : edit.new_files) {
      if (live_.count(file.number) == 0) {
        Traced traced = TracedOf(file);
        Count(KeyOf(traced.table), -1);
        live_[file.number] = traced;
        seen_[file.number] = traced;
        change.come.push_back(std::move(traced));
      }
    }
    if (!change.gone.empty() || !change.come.empty()) {
      changes_.push_back(std::move(change));
    }
  }

  // Discards the earlier changes if the tables are those that were recorded.
  // REQUIRES: called after a complete record or group.
  void Match() {
    if (counts_.empty()) {
      matched_ = true;
      changes_.clear();
    }
  }

  // Adds the writers of those tables that this database wrote and still has.
  // Returns false if a present table is not in the MANIFEST.
  bool AddWriters(std::set<Writer>* writers) const {
    for (const LiveTable& now : *family_->now) {
      if (now.name.empty()) {
        continue;  // keys of a WAL
      }
      const auto found = seen_.find(TableNumber(now.name));
      if (found == seen_.end() || !now.id || !found->second.writer ||
          !(found->second.table.id == *now.id)) {
        return false;
      }
      if (now.is_own) {
        writers->insert(*found->second.writer);
      }
    }
    return true;
  }

  // `newer_than`: the number of the newest OPTIONS file.
  void Finish(const std::set<Writer>& writers, uint64_t newer_than) {
    family_->is_known = matched_;
    for (Change& change : changes_) {
      change.is_compaction =
          !change.gone.empty() && !change.come.empty() &&
          std::all_of(change.come.begin(), change.come.end(),
                      [&](const Traced& come) {
                        return come.number > newer_than && come.writer &&
                               writers.count(*come.writer) != 0;
                      });
      if (!change.is_compaction) {
        AddChange(change);
      }
    }
    JudgeCompactions();
  }

 private:
  // Counts the recorded tables, minus those that are live.
  void Count(const std::string& key, int by) {
    const int left = counts_[key] += by;
    if (left == 0) {
      counts_.erase(key);
    }
  }

  void AddChange(const Change& change) {
    for (const Traced& gone : change.gone) {
      family_->changed.push_back({gone.table.smallest, gone.table.largest});
    }
    for (const Traced& come : change.come) {
      family_->changed.push_back({come.table.smallest, come.table.largest});
      if (change.gone.empty() && come.writer) {
        family_->changed.back().added = come.table.id;
      }
    }
  }

  // A later compaction may read what earlier ones wrote: these are judged
  // together, because entries are known only for the last tables.
  void JudgeCompactions() {
    std::map<uint64_t, size_t> maker;  // table -> change that made it
    std::vector<size_t> group(changes_.size());
    std::set<uint64_t> taken;
    for (size_t i = 0; i < changes_.size(); ++i) {
      group[i] = i;
      if (!changes_[i].is_compaction) {
        continue;
      }
      for (const Traced& gone : changes_[i].gone) {
        taken.insert(gone.number);
        const auto made = maker.find(gone.number);
        if (made != maker.end()) {
          const size_t from = group[made->second];
          std::replace(group.begin(), group.begin() + i, from, i);
        }
      }
      for (const Traced& come : changes_[i].come) {
        maker[come.number] = i;
      }
    }
    std::map<size_t, std::vector<const Change*>> groups;
    for (size_t i = 0; i < changes_.size(); ++i) {
      if (changes_[i].is_compaction) {
        groups[group[i]].push_back(&changes_[i]);
      }
    }
    std::map<uint64_t, const LiveTable*> now;
    for (const LiveTable& table : *family_->now) {
      now[TableNumber(table.name)] = &table;
    }
    for (const auto& [number, changes] : groups) {
      Compacted compacted(family_->order);
      for (const Change* const change : changes) {
        for (const Traced& gone : change->gone) {
          if (maker.count(gone.number) == 0) {
            Take(gone, &compacted);
          }
        }
        for (const Traced& come : change->come) {
          const auto found = now.find(come.number);
          if (taken.count(come.number) == 0 && found != now.end()) {
            compacted.Leave(*found->second);
          }
        }
      }
      compacted.AddDoubtful(&family_->changed);
      if (!compacted.is_whole()) {
        for (const Change* const change : changes) {
          AddChange(*change);
        }
      }
    }
  }

  void Take(const Traced& table, Compacted* compacted) const {
    const auto recorded = then_.find(KeyOf(table.table));
    if (recorded != then_.end()) {
      compacted->Take(*recorded->second);
      return;
    }
    const Digest128& id = table.table.id;
    const auto added = added_.find({id.high, id.low});
    if (table.writer && added != added_.end()) {
      compacted->Take(*added->second);
      return;
    }
    compacted->TakeUnknown(table.table);
  }

  TracedFamily* const family_;
  std::map<std::string, int> counts_;
  std::map<std::string, const RecordedTable*> then_;
  std::map<std::pair<uint64_t, uint64_t>, const RecordedTable*>
      added_;                        // by id
  std::map<uint64_t, Traced> live_;  // by number
  std::map<uint64_t, Traced> seen_;
  bool matched_ = false;
  std::vector<Change> changes_;  // since it matched
};

// Follows the families to trace.
class Tracer {
 public:
  // `reader`: reads the same MANIFEST, and detects contradictions, which this
  // class does not.
  Tracer(const ManifestReader* reader, std::vector<TracedFamily>* families)
      : reader_(reader), families_(families) {}

  // REQUIRES: the reader has processed the record.
  Status Add(const Slice& record) {
    VersionEdit edit;
    const Status status = DecodeVersionEdit(record, &edit);
    if (!status.ok()) {
      return status;
    }
    if (edit.drops_family) {
      traces_.erase(edit.family_id);
    } else {
      if (edit.adds_family) {
        Begin(edit.family_id, edit.family_name);
      } else if (edit.family_id == 0 && traces_.count(0) == 0) {
        Begin(0, "default");
      }
      const auto found = traces_.find(edit.family_id);
      if (found != traces_.end()) {
        found->second->Apply(edit);
        touched_.insert(edit.family_id);
      }
    }
    if (!reader_->in_group()) {
      for (const uint32_t id : touched_) {
        const auto found = traces_.find(id);
        if (found != traces_.end()) {
          found->second->Match();
        }
      }
      touched_.clear();
    }
    return status;
  }

  void Finish(uint64_t newer_than) {
    std::set<Writer> writers;
    bool all_there = !reader_->in_group();
    for (const auto& [id, trace] : traces_) {
      all_there = trace->AddWriters(&writers) && all_there;
    }
    for (const auto& [id, trace] : traces_) {
      if (all_there) {
        trace->Finish(writers, newer_than);
      }
    }
  }

 private:
  void Begin(uint32_t id, const std::string& name) {
    for (TracedFamily& family : *families_) {
      if (family.name == name) {
        traces_[id] = std::make_unique<FamilyTrace>(&family);
      }
    }
  }

  const ManifestReader* const reader_;
  std::vector<TracedFamily>* const families_;
  std::map<uint32_t, std::unique_ptr<FamilyTrace>> traces_;  // by id
  std::set<uint32_t> touched_;  // since the last complete record or group
};

// Returns the highest number after the prefix in the directory; 0: none.
uint64_t NewestOf(rocksdb::FileSystem* file_system, const std::string& dir,
                  const std::string& prefix) {
  std::vector<std::string> names;
  const Status listed =
      file_system->GetChildren(dir, rocksdb::IOOptions(), &names, nullptr);
  uint64_t newest = 0;
  for (const std::string& name : names) {
    newest = std::max(newest, NumberIn(name, prefix));
  }
  return listed.ok() ? newest : 0;
}

}  // namespace

Digest128 PublicTableId(const Digest128& in_manifest) {
  std::string text;
  PutFixed64(&text, in_manifest.high + kAddedToHigh);
  PutFixed64(&text, in_manifest.low + kAddedToLow);
  const Digest128 hashed = DigestOf(text);
  return {hashed.low, hashed.high};
}

void TraceTables(rocksdb::FileSystem* file_system, const std::string& dir,
                 std::vector<TracedFamily>* families) {
  ManifestReader reader;
  ManifestFileFound manifest;
  Tracer tracer(&reader, families);
  const Status status =
      ReadManifest(file_system, dir, &reader, &manifest,
                   [&tracer](const Slice& record) {
                     return tracer.Add(record);
                   });
  const uint64_t options = NewestOf(file_system, dir, kOptionsNamePrefix);
  if (status.ok() &&
      options > NumberIn(manifest.path, dir + "/" + kManifestPrefix)) {
    tracer.Finish(options);
  }
}

}  // namespace sstferry
