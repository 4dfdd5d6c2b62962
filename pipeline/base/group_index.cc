#include "pipeline/base/group_index.h"

#include <algorithm>

#include "format/coding.h"
#include "format/end_state.h"
#include "format/limits.h"
#include "pipeline/base/interval_reader.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Entries between two calls of `cancelled`.
constexpr uint64_t kCancelInterval = 1024;

void PutDigest(std::string* out, const Digest128& digest) {
  PutFixed64(out, digest.low);
  PutFixed64(out, digest.high);
}

uint64_t SeedOf(const TransferId& salt) {
  return Digest64(Slice(reinterpret_cast<const char*>(salt.data()),
                        salt.size()));
}

}  // namespace

GroupIndex::GroupIndex(const TransferId& salt, uint32_t group_entries,
                       Keep keep)
    : salt_(salt),
      seed_(SeedOf(salt)),
      least_entries_(std::max<uint32_t>(1, group_entries / 2)),
      most_entries_(4 * group_entries),
      divisor_(group_entries - least_entries_ + 1),
      keep_(keep) {}

Slice GroupIndex::key(size_t kept) const {
  const uint32_t begin = kept == 0 ? 0 : key_ends_[kept - 1];
  return Slice(keys_.data() + begin, key_ends_[kept] - begin);
}

Digest128 GroupIndex::DigestOfEntry(const Slice& key, const Slice& value,
                                    bool is_entity) {
  scratch_.assign(reinterpret_cast<const char*>(salt_.data()), salt_.size());
  PutFixed8(&scratch_, is_entity ? 1 : 0);
  PutBytes(&scratch_, key);
  scratch_.append(value.data(), value.size());
  return DigestOf(scratch_);
}

bool GroupIndex::BeginsGroup(const Slice& key) const {
  const size_t entries = group_.size() / 16;
  return entries >= most_entries_ ||
         (entries >= least_entries_ && Digest64(key, seed_) % divisor_ == 0);
}

void GroupIndex::Add(const Slice& key, const Slice& value, bool is_entity) {
  const Digest128 digest = DigestOfEntry(key, value, is_entity);
  const bool begins = group_.empty() || BeginsGroup(key);
  if (begins) {
    EndGroup();
  }
  const size_t at = group_.size();
  PutDigest(&group_, digest);
  all_.Add(Slice(group_.data() + at, group_.size() - at));
  ++entries_;
  key_value_bytes_ += key.size() + value.size();
  if (overflown_) {
    return;
  }
  if (begins) {
    group_begins_.push_back(static_cast<uint32_t>(kept()));
  }
  if (keep_ == Keep::kEntries) {
    digests_.push_back(digest);
  }
  if (begins || keep_ == Keep::kEntries) {
    KeepKey(key);
  }
}

void GroupIndex::KeepKey(const Slice& key) {
  if (kept() >= kMaxIndexEntries || groups_.size() + 1 >= kMaxGroups ||
      keys_.size() + key.size() > kMaxIndexKeyBytes ||
      key.size() > kMaxKeyBytes) {
    Overflow();
    return;
  }
  keys_.append(key.data(), key.size());
  key_ends_.push_back(static_cast<uint32_t>(keys_.size()));
}

void GroupIndex::EndGroup() {
  if (!group_.empty() && !overflown_) {
    groups_.push_back(DigestOf(group_));
  }
  group_.clear();
}

void GroupIndex::Overflow() {
  overflown_ = true;
  groups_ = {};
  group_begins_ = {};
  digests_ = {};
  key_ends_ = {};
  keys_ = std::string();
}

void GroupIndex::Finish() {
  EndGroup();
  content_ = all_.Finish();
}

Status IndexInterval(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family,
                     const KeyInterval& interval, uint64_t readahead_bytes,
                     const std::function<bool()>& cancelled,
                     GroupIndex* index) {
  IntervalReader reader(db, family, interval, readahead_bytes);
  std::string scratch;
  for (reader.SeekToBegin(); reader.Valid(); reader.Next()) {
    bool entity = false;
    const Slice value = reader.DigestValue(&scratch, &entity);
    index->Add(reader.key(), value, entity);
    if (index->entries() % kCancelInterval == 0 && cancelled && cancelled()) {
      return MakeStatus(EndState::kCancelled, "compare: stopped on request");
    }
  }
  index->Finish();
  return reader.status();
}

}  // namespace sstferry
