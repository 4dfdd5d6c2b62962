// The messages of a target about groups that differ. For entries that the
// source has, it sends only a mark (some bytes of their digest).
#include "pipeline/refresh/group_compare.h"

#include <rapidcheck.h>

#include <algorithm>
#include <map>

#include "pipeline/refresh/common_marks.h"
#include "tests/support/catch.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/test_db.h"

namespace sstferry::test::group_compare_test {
namespace {

constexpr uint64_t kEntries = 2000;
constexpr uint32_t kGroupEntries = 16;
constexpr uint64_t kDistance = 25;  // between entries that differ

using Entries = std::map<std::string, std::string>;

Entries Numbered() {
  Entries entries;
  for (uint64_t i = 0; i < kEntries; ++i) {
    entries[NumberedKey(i)] = RandomBytes(20, i);
  }
  return entries;
}

void AddAll(const Entries& entries, EntryDigester* digester, EntrySums* sums,
            GroupIndex* index) {
  for (const auto& [key, value] : entries) {
    const Digest128 digest = digester->DigestOfEntry(key, value, false);
    REQUIRE(index->Add(key, digest));
    sums->Add(digest);
  }
  index->Finish();
}

// The target's side of one part. The target has `entries`.
class Target {
 public:
  explicit Target(Entries entries)
      : entries_(std::move(entries)),
        comparer_(
            &lanes_,
            [this](const Part&, const KeyInterval&, EntryDigester* digester,
                   EntrySums* sums, GroupIndex* index,
                   std::optional<std::string>*) {
              AddAll(entries_, digester, sums, index);
              return rocksdb::Status::OK();
            },
            nullptr) {
    lanes_.starts.resize(1);
    comparer_.BeginPlan({"default"}, 0);
  }
  // Compares with a source that has these entries. Returns the request with the
  // target's marks.
  SiftRequest Ask(const Entries& source) {
    compare_ = comparer_.Begin(part_, kGroupEntries, HowToTell::kWhatDiffers);
    REQUIRE_OK(compare_->Read());
    EntryDigester digester(lanes_.transfer_id);
    EntrySums sums;
    GroupIndex index(lanes_.transfer_id, kGroupEntries,
                     GroupIndex::Keep::kFirstKeys);
    AddAll(source, &digester, &sums, &index);
    GroupReply reply;
    reply.entries = sums.entries;
    reply.content = sums.sum;
    reply.groups = index.groups();
    std::optional<SiftRequest> sift;
    std::vector<DeltaRequest> delta;
    REQUIRE_OK(compare_->Compare(&reply, &sift, &delta));
    REQUIRE(sift.has_value());
    return *sift;
  }
  std::vector<DeltaRequest> Take(const SiftReply& reply) {
    std::vector<DeltaRequest> delta;
    compare_->TakeSifted(reply, &delta);
    return delta;
  }

 private:
  const Entries entries_;
  const Part part_;
  LaneShared lanes_;
  GroupComparer comparer_;
  std::unique_ptr<PartComparison> compare_;
};

size_t ToldBy(const std::vector<DeltaRequest>& delta) {
  size_t told = 0;
  for (const DeltaRequest& message : delta) {
    told += message.entries.size();
  }
  return told;
}

TEST_CASE("A target takes entries for equal only by digests, not by marks",
          "[refresh][delta]") {
  // About half of the groups differ.
  Entries source = Numbered();
  for (uint64_t i = 0; i < kEntries; i += kDistance) {
    source[NumberedKey(i)] = RandomBytes(20, kEntries + i);
  }
  Target target(Numbered());
  const SiftRequest asked = target.Ask(source);
  const size_t marks = asked.marks.size() / kMarkBytes;
  REQUIRE(marks > kEntries / 4);
  REQUIRE(marks < kEntries);
  // A source whose marks match by chance says that it has all entries.
  SiftReply reply;
  SECTION("a digest of other entries") { reply.common = {1, 2}; }
  SECTION("a digest of no entry") { reply.common = Digest128Stream().Finish(); }
  SECTION("too many entries to compare") {}
  SECTION("an index too large") {
    reply.others = {static_cast<uint32_t>(marks)};
  }
  SECTION("an index twice") { reply.others = {1, 1}; }
  const std::vector<DeltaRequest> delta = target.Take(reply);
  REQUIRE(delta.front().basis == DeltaBasis::kGroups);
  REQUIRE(delta.front().groups == asked.groups);
  REQUIRE(delta.back().complete);
  REQUIRE(ToldBy(delta) == marks);
}

TEST_CASE("Keys of entries that the source has are not sent",
          "[refresh][delta]") {
  const std::string other = NumberedKey(1000);
  Entries source = Numbered();
  source[other] = "another";
  for (uint64_t i = 0; i < kEntries; i += kDistance) {
    source[NumberedKey(i) + "x"] = "only there";
  }
  const Entries entries = Numbered();
  Target target(entries);
  const SiftRequest asked = target.Ask(source);
  // Find the entries by the marks in the request.
  EntryDigester digester{TransferId()};
  SiftReply reply;
  Digest128Stream common;
  auto entry = entries.begin();
  for (size_t i = 0; i < asked.marks.size() / kMarkBytes; ++i) {
    const auto mark = [&] {
      const Digest128 digest =
          digester.DigestOfEntry(entry->first, entry->second, false);
      uint32_t number = 0;
      for (size_t byte = kMarkBytes; byte > 0; --byte) {
        number = number << 8 |
                 static_cast<uint8_t>(asked.marks[i * kMarkBytes + byte - 1]);
      }
      return number == MarkOf(digest);
    };
    while (!mark()) {
      ++entry;
      REQUIRE(entry != entries.end());
    }
    if (entry->first == other) {
      reply.others.push_back(static_cast<uint32_t>(i));
    } else {
      AddDigest(digester.DigestOfEntry(entry->first, entry->second, false),
                &common);
    }
  }
  REQUIRE(reply.others.size() == 1);
  reply.common = common.Finish();
  const std::vector<DeltaRequest> delta = target.Take(reply);
  REQUIRE(delta.size() == 2);
  REQUIRE(delta.front().basis == DeltaBasis::kSifted);
  REQUIRE(delta.back().complete);
  REQUIRE(delta.back().entries.size() == 1);
  REQUIRE(delta.back().entries.front().key == other);
}

TEST_CASE("Marks pair entries in order, each once", "[refresh][delta]") {
  using Marks = std::vector<uint32_t>;
  using Pairs = std::vector<std::pair<uint32_t, uint32_t>>;
  REQUIRE(FindCommonMarks({}, {1}).empty());
  REQUIRE(FindCommonMarks({1, 2, 3}, {1, 9, 2, 3}) ==
          Pairs{{0, 0}, {1, 2}, {2, 3}});
  // A mark that occurs twice on one side is not paired.
  REQUIRE(FindCommonMarks({1, 5, 5, 2}, {1, 5, 2}) == Pairs{{0, 0}, {3, 2}});
  REQUIRE(FindCommonMarks({1, 5, 2}, {1, 5, 5, 2}) == Pairs{{0, 0}, {2, 3}});
  // A changed entry with the mark of a distant entry.
  REQUIRE(FindCommonMarks({9, 1, 2, 3}, {1, 2, 3, 9}) ==
          Pairs{{1, 0}, {2, 1}, {3, 2}});
  REQUIRE(rc::check("any marks", [] {
    const auto here = *rc::gen::container<Marks>(rc::gen::inRange(0u, 40u));
    const auto there = *rc::gen::container<Marks>(rc::gen::inRange(0u, 40u));
    const Pairs pairs = FindCommonMarks(here, there);
    for (size_t i = 0; i < pairs.size(); ++i) {
      const auto [mine, theirs] = pairs[i];
      RC_ASSERT(here.at(mine) == there.at(theirs));
      RC_ASSERT(std::count(here.begin(), here.end(), here[mine]) == 1);
      RC_ASSERT(std::count(there.begin(), there.end(), here[mine]) == 1);
      if (i > 0) {  // RC_ASSERT evaluates both sides of ||
        RC_ASSERT(pairs[i - 1].first < mine);
        RC_ASSERT(pairs[i - 1].second < theirs);
      }
    }
    // If both sides are equal, all unique marks are paired.
    Marks unlike;
    for (const uint32_t mark : here) {
      if (std::count(here.begin(), here.end(), mark) == 1) {
        unlike.push_back(mark);
      }
    }
    RC_ASSERT(FindCommonMarks(unlike, unlike).size() == unlike.size());
  }));
}

}  // namespace
}  // namespace sstferry::test::group_compare_test
