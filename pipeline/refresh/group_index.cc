#include "pipeline/refresh/group_index.h"

#include <algorithm>

#include "format/coding.h"
#include "format/end_state.h"
#include "format/limits.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Number of entries between two polls of `cancelled`.
constexpr uint64_t kCancelInterval = 1024;

constexpr size_t kDigestBytes = 16;

uint64_t SeedOf(const TransferId& salt) {
  return Digest64(Slice(reinterpret_cast<const char*>(salt.data()),
                        salt.size()));
}

// Reads entries until `take` returns false.
template <typename Take>
Status ReadEntries(EntryReader* reader, EntryDigester* digester,
                   const std::function<bool()>& cancelled, EntrySums* sums,
                   const Take& take) {
  std::string scratch;
  for (; reader->Valid(); reader->Next()) {
    const Slice key = reader->key();
    bool entity = false;
    const Slice value = reader->DigestValue(&scratch, &entity);
    const Digest128 digest = digester->DigestOfEntry(key, value, entity);
    if (!take(key, value, digest)) {
      break;
    }
    sums->Add(digest);
    if (sums->entries % kCancelInterval == 0 && cancelled && cancelled()) {
      return MakeStatus(EndState::kCancelled, "compare: stopped on request");
    }
  }
  return reader->status();
}

}  // namespace

GroupIndex::GroupIndex(const TransferId& salt, uint32_t group_entries,
                       Keep keep, const IndexLimits& limits)
    : limits_(limits),
      seed_(SeedOf(salt)),
      least_entries_(std::max<uint32_t>(1, group_entries / 2)),
      most_entries_(4 * group_entries),
      divisor_(group_entries - least_entries_ + 1),
      keep_(keep) {}

Slice GroupIndex::key(size_t kept) const {
  const uint32_t begin = kept == 0 ? 0 : key_ends_[kept - 1];
  return Slice(keys_.data() + begin, key_ends_[kept] - begin);
}

bool GroupIndex::BeginsGroup(const Slice& key) const {
  const size_t entries = group_.size() / kDigestBytes;
  return entries == 0 || entries >= most_entries_ ||
         (entries >= least_entries_ && Digest64(key, seed_) % divisor_ == 0);
}

bool GroupIndex::Add(const Slice& key, const Digest128& digest) {
  const bool begins = BeginsGroup(key);
  const bool keeps_key = begins || keep_ == Keep::kEntries;
  if ((begins && group_begins_.size() >= limits_.groups) ||
      (keeps_key && (kept() >= limits_.entries ||
                     key.size() > kMaxKeyBytes ||
                     key.size() > limits_.key_bytes - keys_.size()))) {
    return false;
  }
  if (begins) {
    EndGroup();
    group_begins_.push_back(static_cast<uint32_t>(kept()));
  }
  char bytes[kDigestBytes];
  EncodeFixed64(bytes, digest.low);
  EncodeFixed64(bytes + 8, digest.high);
  group_.append(bytes, kDigestBytes);
  if (keep_ == Keep::kEntries) {
    digests_.push_back(digest);
  }
  if (keeps_key) {
    keys_.append(key.data(), key.size());
    key_ends_.push_back(static_cast<uint32_t>(keys_.size()));
  }
  return true;
}

void GroupIndex::EndGroup() {
  if (!group_.empty()) {
    groups_.push_back(DigestOf(group_));
  }
  group_.clear();
}

void GroupIndex::Finish() { EndGroup(); }

Status IndexAll(EntryReader* reader, EntryDigester* digester,
                const std::function<bool()>& cancelled, EntrySums* sums,
                uint64_t* key_value_bytes, std::optional<GroupIndex>* index) {
  const Status status =
      ReadEntries(reader, digester, cancelled, sums,
                  [&](const Slice& key, const Slice& value,
                      const Digest128& digest) {
                    *key_value_bytes += key.size() + value.size();
                    if (*index && !(*index)->Add(key, digest)) {
                      index->reset();
                    }
                    return true;
                  });
  if (*index) {
    (*index)->Finish();
  }
  return status;
}

Status IndexFitting(EntryReader* reader, EntryDigester* digester,
                    const std::function<bool()>& cancelled, EntrySums* sums,
                    GroupIndex* index) {
  const Status status =
      ReadEntries(reader, digester, cancelled, sums,
                  [index](const Slice& key, const Slice&,
                          const Digest128& digest) {
                    return IsPlanted(CompareFault::kIndexLacksEntry) ||
                           index->Add(key, digest);
                  });
  index->Finish();
  if (status.ok() && reader->Valid() &&
      (index->kept() == 0 || reader->key().size() > kMaxKeyBytes)) {
    return MakeStatus(EndState::kRefused,
                      "compare: the target has a key of " +
                          std::to_string(reader->key().size()) +
                          " bytes, expected at most " +
                          std::to_string(kMaxKeyBytes) +
                          "; only a swap can refresh it");
  }
  return status;
}

}  // namespace sstferry
