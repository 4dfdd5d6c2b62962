// An application whose keys are each put once and then deleted by SingleDelete,
// above a refresh whose chunks are not compacted yet.
#include "rocksdb/comparator.h"
#include "tests/support/catch.h"
#include "tests/support/named_comparator.h"
#include "tests/support/refreshed.h"

namespace sstferry::test {
namespace {

constexpr uint64_t kKeys = 400;

void PutAll(const std::string& dir, uint64_t seed) {
  OpenDb db(dir, OneFamily(Quiet()));
  for (uint64_t i = 0; i < kKeys; ++i) {
    db.Put(NumberedKey(i), RandomBytes(1000, seed + i));
  }
  db.Flush();
  db.Compact();
}

TEST_CASE("SingleDelete of every key of a refreshed family leaves nothing",
          "[transfer][refresh]") {
  const Visibility visibility =
      GENERATE(Visibility::kAll, Visibility::kChunk);
  const TempDir dir;
  PutAll(dir / "source", 1);
  PutAll(dir / "target", 10'000);  // what the refresh replaces
  PullOptions options;
  options.visibility = visibility;
  options.chunk_bytes = 64 << 10;
  options.lanes = 2;
  options.adopt = true;
  options.compact = false;
  const Ferried refreshed =
      Refresh(dir / "source", dir / "target", options);
  REQUIRE_OK(refreshed.status);
  ExpectSameEntries(dir / "source", dir / "target");
  {
    OpenDb target(dir / "target", OneFamily(Quiet()));
    for (uint64_t i = 0; i < kKeys; ++i) {
      REQUIRE_OK(target->SingleDelete({}, NumberedKey(i)));
    }
    target.Flush();
    target.Compact();
  }
  REQUIRE(EntriesOf(dir / "target", OneFamily()).empty());
}

// A database in an order that tells of no key behind `last`, and its refreshed
// replica. A range deletion of the replica cannot include that key.
class LastKey {
 public:
  LastKey(const rocksdb::Comparator* order, std::string last)
      : last_(std::move(last)) {
    family_.comparator = order;
    options_.registry.comparators = {&kOwn};
    options_.compact = false;  // nothing merges the older one away
    OpenDb db(source(), families());
    db.Put("a", "first");
    db.Put("b", "second");
    db.Put(last_, "last");
    db.Flush();
  }

  static const rocksdb::Comparator* Own() { return &kOwn; }
  std::string source() const { return dir_ / "source"; }
  std::string target() const { return dir_ / "target"; }
  Families families() const { return OneFamily(family_); }
  Ferried Run(CompareMode compare) {
    options_.compare = compare;
    return Refresh(source(), target(), options_);
  }
  void Put(const std::string& key, const std::string& value) {
    OpenDb db(source(), families());
    db.Put(key, value);
    db.Flush();
  }
  // As the application would, at the source or at the replica.
  void DeleteOnce(const std::string& directory, const std::string& key) {
    OpenDb db(directory, families());
    REQUIRE_OK(db->SingleDelete({}, key));
    db.Flush();
  }
  const std::string& last() const { return last_; }
  PullOptions* options() { return &options_; }
  void ExpectSame() const {
    ExpectSameEntries(source(), target(), Expectation{families(), {}, {}});
  }
  auto TargetEntries() const { return EntriesOf(target(), families()); }

 private:
  static const NamedComparator kOwn;

  const TempDir dir_;
  const std::string last_;
  rocksdb::ColumnFamilyOptions family_ = Quiet();
  PullOptions options_;
};
const NamedComparator LastKey::kOwn("sstferry.test.own");

// Compacts all files but those of the last level that has any, and not into it.
void CompactAboveTheLastLevel(const std::string& directory,
                              const Families& families) {
  OpenDb db(directory, families);
  rocksdb::ColumnFamilyMetaData metadata;
  db->GetColumnFamilyMetaData(&metadata);
  int last = 0;
  for (const rocksdb::LevelMetaData& level : metadata.levels) {
    last = level.files.empty() ? last : level.level;
  }
  std::vector<std::string> files;
  for (const rocksdb::LevelMetaData& level : metadata.levels) {
    for (const rocksdb::SstFileMetaData& file : level.files) {
      if (level.level < last) {
        files.push_back(file.name);
      }
    }
  }
  REQUIRE(!files.empty());
  REQUIRE_OK(db->CompactFiles({}, files, last - 1));
}

LastKey MakeLastKey(bool own) {
  return own ? LastKey(LastKey::Own(), "z")
             : LastKey(rocksdb::ReverseBytewiseComparator(), "");
}

TEST_CASE("SingleDelete of a last key that nothing can clear uncovers nothing",
          "[transfer][refresh]") {
  LastKey pair = MakeLastKey(GENERATE(true, false));
  pair.options()->visibility = GENERATE(Visibility::kAll, Visibility::kChunk);
  REQUIRE_OK(pair.Run(CompareMode::kFiles).status);
  for (const char* const value : {"once more", "and again"}) {
    pair.Put("b", value);
    const Ferried again = pair.Run(CompareMode::kFull);
    REQUIRE_OK(again.status);
    REQUIRE(again.summary.ranges_sent == 1);
    pair.ExpectSame();
  }
  const Ferried unchanged = pair.Run(CompareMode::kFiles);
  REQUIRE_OK(unchanged.status);
  REQUIRE(unchanged.summary.ranges_sent == 0);
  pair.DeleteOnce(pair.target(), pair.last());
  CompactAboveTheLastLevel(pair.target(), pair.families());
  REQUIRE(pair.TargetEntries().size() == 2);
}

TEST_CASE("A last key that nothing can clear comes with its new value",
          "[transfer][refresh]") {
  LastKey pair = MakeLastKey(GENERATE(true, false));
  REQUIRE_OK(pair.Run(CompareMode::kFiles).status);
  pair.Put(pair.last(), "another value");
  REQUIRE_OK(pair.Run(CompareMode::kFull).status);
  pair.ExpectSame();
}

TEST_CASE("A last key that nothing can clear is refused before data moves "
          "where the application uses SingleDelete",
          "[transfer][refresh]") {
  LastKey pair = MakeLastKey(GENERATE(true, false));
  const CompareMode compare =
      GENERATE(CompareMode::kFiles, CompareMode::kFull);
  REQUIRE_OK(pair.Run(CompareMode::kFiles).status);
  const bool is_said = GENERATE(true, false);
  if (is_said) {
    pair.options()->single_delete = true;
    pair.Put("b", "once more");
  } else {
    pair.DeleteOnce(pair.source(), "b");
  }
  const auto before = pair.TargetEntries();
  const Ferried refused = pair.Run(compare);
  INFO(refused.message());
  REQUIRE(refused.state() == EndState::kRefused);
  REQUIRE(refused.message().find("cannot replace the last key") !=
          std::string::npos);
  REQUIRE(refused.message().find("refresh by swap instead") !=
          std::string::npos);
  REQUIRE(pair.TargetEntries() == before);
  // A new last key lies above no other.
  if (pair.last() == "z") {
    pair.Put("zz", "put once");
    REQUIRE_OK(pair.Run(compare).status);
    pair.ExpectSame();
    pair.DeleteOnce(pair.target(), "zz");
    OpenDb target(pair.target(), pair.families());
    target.Compact();
    std::string value;
    REQUIRE(target->Get({}, "zz", &value).IsNotFound());
  }
}

}  // namespace
}  // namespace sstferry::test
