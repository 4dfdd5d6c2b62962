#include "tests/support/played_history.h"

#include <filesystem>
#include <ostream>

#include "rocksdb/compaction_filter.h"
#include "rocksdb/convenience.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/table.h"
#include "tests/support/catch.h"
#include "tests/support/named_comparator.h"

namespace sstferry::test {
namespace {

class ByLength : public NamedComparator {
 public:
  ByLength() : NamedComparator("sstferry.test.ByLength") {}
  int Compare(const rocksdb::Slice& a, const rocksdb::Slice& b) const override {
    return a.size() != b.size() ? (a.size() < b.size() ? -1 : 1) : a.compare(b);
  }
};
const ByLength kByLength;

const rocksdb::CompactionFilter* EmptyValueRemover() {
  static const rocksdb::CompactionFilter* const kRemover = [] {
    const rocksdb::CompactionFilter* made = nullptr;
    REQUIRE_OK(rocksdb::CompactionFilter::CreateFromString(
        rocksdb::ConfigOptions(), "RemoveEmptyValueCompactionFilter", &made));
    return made;
  }();
  return kRemover;
}

std::string ValueOf(uint32_t other) {
  if (other % 50 == 0) return "";
  if (other % 101 == 0) return RandomBytes(100'000, other);
  if (other % 3 == 0) return std::string(other % 700, 'v');
  return RandomBytes(other % 900, other);
}

rc::Gen<Act> ActGen() {
  using rc::gen::just;
  return rc::gen::weightedElement<Act>(
      {{8, Act::kPut}, {4, Act::kDelete}, {3, Act::kPutOnce},
       {2, Act::kSingleDelete}, {2, Act::kDeleteRange}, {5, Act::kMerge},
       {3, Act::kFlush}, {1, Act::kCompact}, {1, Act::kIngest},
       {1, Act::kReopen}, {1, Act::kSnapshot}, {3, Act::kPutMany}});
}

bool IsOnce(const rocksdb::Slice& key) { return key.starts_with("once"); }

}  // namespace

// Returns one of few keys, so that steps often meet the same key. Some are
// unusual: empty, very long, with zero bytes.
std::string PlayedKey(uint32_t number) {
  switch (number % 97) {
    case 0: return "";
    case 1: return std::string(1, '\0');
    case 2: return std::string(3, '\xff');
    case 3: return std::string("a\0b", 3);
    case 4: return std::string(5000, 'k');
    default: return NumberedKey(number % 700);
  }
}

const rocksdb::Comparator* ByLengthComparator() { return &kByLength; }

void showValue(const Step& step, std::ostream& os) {
  os << "{" << static_cast<int>(step.act) << " f" << step.family << " k"
     << step.key << " o" << step.other << "}";
}

rc::Gen<Step> StepGen() { return StepGen(ActGen()); }

rc::Gen<Step> StepGen(const rc::Gen<Act>& act) {
  using rc::gen::inRange;
  return rc::gen::build<Step>(
      rc::gen::set(&Step::act, act),
      rc::gen::set(&Step::family, inRange<uint32_t>(0, 12)),
      rc::gen::set(&Step::key, inRange<uint32_t>(0, 10'000)),
      rc::gen::set(&Step::other, inRange<uint32_t>(0, 10'000)));
}

rocksdb::ColumnFamilyOptions OfKind(uint32_t kind) {
  rocksdb::ColumnFamilyOptions options = Quiet();
  rocksdb::BlockBasedTableOptions table;
  table.block_size = 1024;
  options.merge_operator =
      MergeOperatorNamed("id=stringappend;delimiter=/");
  switch (kind) {
    case 0:
      options.compression = rocksdb::kNoCompression;
      break;
    case 1:
      options.comparator = rocksdb::ReverseBytewiseComparator();
      break;
    case 2:
      options.enable_blob_files = true;
      options.min_blob_size = 64;
      break;
    case 3:
      table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
      table.whole_key_filtering = false;
      options.prefix_extractor.reset(rocksdb::NewCappedPrefixTransform(3));
      break;
    case 4:
      options.comparator = &kByLength;
      break;
    case 5:
      options.compression = rocksdb::kZSTD;
      options.compression_opts.max_dict_bytes = 4096;
      break;
    case 6:
      options.compaction_style = rocksdb::kCompactionStyleUniversal;
      options.num_levels = 4;
      break;
    case 7:
      options.merge_operator = MergeOperatorNamed("max");
      table.index_type =
          rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
      break;
    case 8:
      options.level_compaction_dynamic_level_bytes = true;
      options.num_levels = 3;
      table.checksum = rocksdb::kxxHash64;
      break;
    default:  // compacts automatically, with small files
      options = rocksdb::ColumnFamilyOptions();
      options.merge_operator =
          MergeOperatorNamed("id=stringappend;delimiter=/");
      options.write_buffer_size = 64 << 10;
      options.target_file_size_base = 32 << 10;
      options.max_bytes_for_level_base = 64 << 10;
      options.level0_file_num_compaction_trigger = 2;
      break;
  }
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

Player::Player(const std::string& dir, const std::vector<uint32_t>& kinds,
               const std::string& kept_dir)
    : dir_(dir), kept_dir_(kept_dir) {
  for (size_t i = 0; i < kinds.size(); ++i) {
    families_.emplace_back(i == 0 ? "default" : NumberedKey(i),
                           OfKind(kinds[i]));
  }
  once_.resize(families_.size());
}

void Player::Play(const std::vector<Step>& steps) {
  Open();
  for (const Step& step : steps) {
    Take(step);
  }
  Close();
}

void Player::CompactPart(uint32_t from) {
  Open();
  rocksdb::CompactRangeOptions options;
  options.bottommost_level_compaction =
      rocksdb::BottommostLevelCompaction::kForceOptimized;
  std::string begin = NumberedKey(from);
  std::string end = NumberedKey(from + 300);
  for (const auto& family : families_) {
    const bool ascends =
        family.options.comparator->Compare(begin, end) < 0;
    const rocksdb::Slice first(ascends ? begin : end);
    const rocksdb::Slice last(ascends ? end : begin);
    RC_ASSERT((*db_)
                  ->CompactRange(options, db_->cf(family.name), &first,
                                 &last)
                  .ok());
  }
  Close();
}

void Player::While(const std::function<void(OpenDb*)>& work) {
  Open();
  work(db_.get());
  Close();
}

void Player::ForgetOnce() {
  for (std::set<std::string>& keys : once_) {
    keys.clear();
  }
  lives_++;
}

void Player::RemovesEmptyValues(size_t family) {
  families_[family].options.compaction_filter = EmptyValueRemover();
}

void Player::Open() {
  rocksdb::DBOptions options;
  options.allow_fallocate = false;  // takes most of a short run's time
  options.avoid_flush_during_shutdown = true;  // leaves tails in the WAL
  options.avoid_flush_during_recovery = true;
  db_ = std::make_unique<OpenDb>(dir_, families_, options);
}

void Player::Close() {
  for (const rocksdb::Snapshot* snapshot : snapshots_) {
    (*db_)->ReleaseSnapshot(snapshot);
  }
  snapshots_.clear();
  db_.reset();
}

void Player::IngestFile(const std::string& path, const std::string& name,
                        bool moves, bool stamps) {
  rocksdb::IngestExternalFileOptions ingest;
  ingest.move_files = moves;
  ingest.write_global_seqno = stamps;
  rocksdb::Status status;
  int tries = 0;
  do {  // TryAgain: a flush came between two steps of the ingestion
    status = (*db_)->IngestExternalFile(db_->cf(name), {path}, ingest);
  } while (status.IsTryAgain() && ++tries < 10);
  REQUIRE_OK(status);
}

void Player::Ingest(const Step& step, const std::string& name) {
  const rocksdb::Comparator* order = db_->cf(name)->GetComparator();
  const auto before = [order](const std::string& a, const std::string& b) {
    return order->Compare(a, b) < 0;
  };
  std::set<std::string, decltype(before)> keys(before);
  for (uint32_t i = 0; i < step.other % 60 + 1; ++i) {
    keys.insert(PlayedKey(step.key + i * 7));
  }
  rocksdb::Options options((*db_)->GetOptions(db_->cf(name)));
  options.enable_blob_files = false;
  const std::string path = dir_ + ".ingest";
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
  REQUIRE_OK(writer.Open(path));
  uint32_t number = step.other;
  for (const std::string& key : keys) {
    const rocksdb::Status added =
        ++number % 6 == 0 ? writer.Delete(key)
                          : writer.Put(key, ValueOf(number));
    REQUIRE_OK(added);
  }
  REQUIRE_OK(writer.Finish());
  IngestFile(path, name, /*moves=*/true, /*stamps=*/step.other % 2 == 0);
}

void Player::IngestKept(const Step& step, const std::string& name) {
  const uint32_t number = step.key % 3;
  const std::string path =
      kept_dir_ + "/" + name + "-" + std::to_string(number) + ".sst";
  if (!std::filesystem::exists(path)) {
    rocksdb::Options options((*db_)->GetOptions(db_->cf(name)));
    options.enable_blob_files = false;
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
    REQUIRE_OK(writer.Open(path));
    const bool ascends = options.comparator->Compare("a", "b") < 0;
    for (uint32_t i = 0; i < 20; ++i) {  // the same keys in each file
      REQUIRE_OK(writer.Put(NumberedKey((ascends ? i : 19 - i) * 30),
                            ValueOf(number * 101 + i)));
    }
    REQUIRE_OK(writer.Finish());
  }
  IngestFile(path, name, /*moves=*/false, /*stamps=*/step.other % 2 == 0);
}

void Player::Drop(size_t family) {
  if (family != 0) {  // the default one cannot be dropped
    db_->Drop(families_[family].name);
    once_[family].clear();
  }
}

void Player::DeleteFiles(const Step& step, const std::string& name) {
  std::string begin = PlayedKey(step.key);
  std::string end = PlayedKey(step.other);
  const int order = db_->cf(name)->GetComparator()->Compare(begin, end);
  if (order > 0) std::swap(begin, end);
  const rocksdb::Slice first(begin);
  const rocksdb::Slice last(end);
  REQUIRE_OK(rocksdb::DeleteFilesInRange(db_->get(), db_->cf(name), &first,
                                         &last));
}

void Player::RemoveOnce(const Step& step, const std::string& name) {
  std::vector<std::string> keys;
  rocksdb::ReadOptions all;
  all.total_order_seek = true;
  const std::unique_ptr<rocksdb::Iterator> it(
      (*db_)->NewIterator(all, db_->cf(name)));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    if (IsOnce(it->key())) keys.push_back(it->key().ToString());
  }
  REQUIRE_OK(it->status());
  if (keys.empty()) {
    return;
  }
  const std::string& key = keys[step.key % keys.size()];
  REQUIRE_OK((*db_)->SingleDelete({}, db_->cf(name), key));
  std::string value;
  RC_ASSERT((*db_)->Get({}, db_->cf(name), key, &value).IsNotFound());
}

void Player::DeleteRange(const Step& step, const std::string& name) {
  std::string begin = PlayedKey(step.key);
  std::string end = PlayedKey(step.other);
  const int order = db_->cf(name)->GetComparator()->Compare(begin, end);
  if (order > 0) std::swap(begin, end);
  if (order != 0) db_->DeleteRange(begin, end, name);
}

void Player::Take(const Step& step) {
  const size_t at = step.family % families_.size();
  const std::string& name = families_[at].name;
  if (!db_->Has(name)) {
    db_->Create(families_[at]);
  }
  switch (step.act) {
    case Act::kPut:
      db_->Put(PlayedKey(step.key), ValueOf(step.other), name);
      break;
    case Act::kDelete:
      db_->Delete(PlayedKey(step.key), name);
      break;
    case Act::kPutOnce: {  // a SingleDelete needs keys that were put once
      const std::string life = lives_ == 0 ? "" : NumberedKey(lives_);
      const std::string key = "once" + life + PlayedKey(step.key);
      if (once_[at].insert(key).second) db_->Put(key, "value", name);
      break;
    }
    case Act::kSingleDelete:
      if (!once_[at].empty()) {
        const std::string key = *once_[at].begin();
        RC_ASSERT(
            (*db_)->SingleDelete({}, db_->cf(name), key).ok());
        once_[at].erase(key);
      }
      break;
    case Act::kDeleteRange:
      DeleteRange(step, name);
      break;
    case Act::kMerge:
      db_->Merge(PlayedKey(step.key), ValueOf(step.other % 1000), name);
      break;
    case Act::kFlush:
      RC_ASSERT((*db_)->Flush({}, db_->cf(name)).ok());
      break;
    case Act::kCompact:
      db_->Compact(name);
      break;
    case Act::kIngest:
      Ingest(step, name);
      break;
    case Act::kReopen:
      Close();
      Open();
      break;
    case Act::kSnapshot:
      snapshots_.push_back((*db_)->GetSnapshot());
      break;
    case Act::kIngestKept:
      IngestKept(step, name);
      break;
    case Act::kDrop:
      Drop(at);
      break;
    case Act::kDeleteFiles:
      DeleteFiles(step, name);
      break;
    case Act::kRemoveOnce:
      RemoveOnce(step, name);
      break;
    case Act::kPutMany:
      for (uint32_t i = 0; i < step.other % 400; ++i) {
        db_->Put(PlayedKey(step.key + i), ValueOf(step.other + i), name);
      }
      break;
  }
}

}  // namespace sstferry::test
