#include "pipeline/refresh/group_index.h"

#include <algorithm>

#include "format/coding.h"
#include "format/end_state.h"
#include "format/limits.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Entries between two calls of `cancelled`.
constexpr uint64_t kCancelInterval = 1024;

constexpr size_t kDigestBytes = 16;

struct EncodedDigest {
  explicit EncodedDigest(const Digest128& digest) {
    EncodeFixed64(bytes, digest.low);
    EncodeFixed64(bytes + 8, digest.high);
  }
  char bytes[kDigestBytes];
};

void PutDigest(std::string* out, const Digest128& digest) {
  out->append(EncodedDigest(digest).bytes, kDigestBytes);
}

uint64_t SeedOf(const TransferId& salt) {
  return Digest64(Slice(reinterpret_cast<const char*>(salt.data()),
                        salt.size()));
}

}  // namespace

GroupIndex::GroupIndex(const TransferId& salt, uint32_t group_entries,
                       Keep keep)
    : salt_bytes_(salt.size()),
      seed_(SeedOf(salt)),
      least_entries_(std::max<uint32_t>(1, group_entries / 2)),
      most_entries_(4 * group_entries),
      divisor_(group_entries - least_entries_ + 1),
      keep_(keep),
      scratch_(reinterpret_cast<const char*>(salt.data()), salt.size()) {}

Slice GroupIndex::key(size_t kept) const {
  const uint32_t begin = kept == 0 ? 0 : key_ends_[kept - 1];
  return Slice(keys_.data() + begin, key_ends_[kept] - begin);
}

Digest128 GroupIndex::DigestOfEntry(const Slice& key, const Slice& value,
                                    bool is_entity) {
  // Behind the salt, which stays. Sizes are alike from entry to entry, so that
  // this rarely fills anything.
  scratch_.resize(salt_bytes_ + 5 + key.size() + value.size());
  char* at = scratch_.data() + salt_bytes_;
  *at++ = is_entity ? 1 : 0;
  EncodeFixed32(at, static_cast<uint32_t>(key.size()));
  at = std::copy_n(key.data(), key.size(), at + 4);
  std::copy_n(value.data(), value.size(), at);
  return DigestOf(scratch_);
}

bool GroupIndex::BeginsGroup(const Slice& key) const {
  const size_t entries = group_.size() / kDigestBytes;
  return entries >= most_entries_ ||
         (entries >= least_entries_ && Digest64(key, seed_) % divisor_ == 0);
}

void GroupIndex::Add(const Slice& key, const Slice& value, bool is_entity) {
  const Digest128 digest = DigestOfEntry(key, value, is_entity);
  const bool begins = group_.empty() || BeginsGroup(key);
  if (begins) {
    EndGroup();
  }
  PutDigest(&group_, digest);
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

bool GroupIndex::Fits(const Slice& key) const {
  return kept() < kMaxIndexEntries && groups_.size() + 1 < kMaxGroups &&
         keys_.size() + key.size() <= kMaxIndexKeyBytes &&
         key.size() <= kMaxKeyBytes;
}

void GroupIndex::KeepKey(const Slice& key) {
  if (!Fits(key)) {
    Overflow();
    return;
  }
  keys_.append(key.data(), key.size());
  key_ends_.push_back(static_cast<uint32_t>(keys_.size()));
}

void GroupIndex::EndGroup() {
  all_.Add(group_);
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

void AddDigest(const Digest128& digest, Digest128Stream* stream) {
  stream->Add(Slice(EncodedDigest(digest).bytes, kDigestBytes));
}

Status IndexEntries(EntryReader* reader, bool only_fitting,
                    const std::function<bool()>& cancelled,
                    GroupIndex* index) {
  std::string scratch;
  for (; reader->Valid(); reader->Next()) {
    if (only_fitting && !index->Fits(reader->key())) {
      break;
    }
    bool entity = false;
    const Slice value = reader->DigestValue(&scratch, &entity);
    index->Add(reader->key(), value, entity);
    if (index->entries() % kCancelInterval == 0 && cancelled && cancelled()) {
      return MakeStatus(EndState::kCancelled, "compare: stopped on request");
    }
  }
  index->Finish();
  if (only_fitting && reader->Valid() && reader->key().size() > kMaxKeyBytes) {
    return MakeStatus(EndState::kRefused,
                      "compare: the target has a key of " +
                          std::to_string(reader->key().size()) +
                          " bytes, expected at most " +
                          std::to_string(kMaxKeyBytes) +
                          "; refresh by swap instead");
  }
  return reader->status();
}

}  // namespace sstferry
