// What a refresh takes for changed.
#include "pipeline/refresh/interval_plan.h"

#include <rapidcheck.h>

#include <algorithm>
#include <map>

#include "pipeline/base/key_interval.h"
#include "tests/support/catch.h"

namespace sstferry::interval_plan_test {
namespace {

FilePlan File(const std::string& smallest, const std::string& largest,
              const std::string& identity, bool flushed = false) {
  FilePlan file;
  file.smallest = smallest;
  file.largest = largest;
  file.identity = identity;
  file.flushed_by_snapshot = flushed;
  return file;
}

// By the nonce and the WALs that were replayed.
FamilyEvidence Evidence(uint64_t nonce, const Digest128& wal = {7, 7}) {
  FamilyEvidence evidence;
  evidence.merge_operator = "adds";
  evidence.wal = wal;
  evidence.nonce = nonce;
  return evidence;
}

IntervalRecord IntervalRecordOf(const std::optional<std::string>& begin,
              const std::optional<std::string>& end,
              const std::vector<FilePlan>& files, uint64_t sequence = 10) {
  IntervalRecord interval_record;
  interval_record.interval = {begin, end};
  interval_record.sequence = sequence;
  Backings(rocksdb::BytewiseComparator(), &files, Evidence(1))
      .Fill(&interval_record);
  return interval_record;
}

std::vector<PlanSegment> Compare(const std::vector<FilePlan>& files,
                                 std::vector<IntervalRecord> known,
                                 CompareMode mode = CompareMode::kFiles,
                                 const FamilyEvidence& evidence = Evidence(2),
                                 KeyInterval selection = {}) {
  IntervalComparison how;
  how.order = rocksdb::BytewiseComparator();
  how.compare = mode;
  how.sequence = 10;
  how.selection = std::move(selection);
  return CompareIntervals(
      how, Backings(how.order, &files, evidence), std::move(known));
}

const std::vector<FilePlan> kFiles = {File("a", "c", "1"), File("d", "f", "2"),
                                      File("g", "i", "3")};

std::vector<IntervalRecord> ThreeIntervals(const std::vector<FilePlan>& files) {
  return {IntervalRecordOf(std::nullopt, "d", files),
          IntervalRecordOf("d", "g", files),
          IntervalRecordOf("g", std::nullopt, files)};
}

TEST_CASE("What the same files back is unchanged, and remembered as before",
          "[source][refresh]") {
  const auto segments = Compare(kFiles, ThreeIntervals(kFiles));
  REQUIRE(segments.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    REQUIRE(segments[i].need == PartNeed::kUnchanged);
    REQUIRE(segments[i].intervals ==
            std::vector<IntervalRecord>{ThreeIntervals(kFiles)[i]});
  }
}

TEST_CASE("What other files back is compared", "[source][refresh]") {
  auto changed = kFiles;
  changed[1].identity = "9";
  const auto segments = Compare(changed, ThreeIntervals(kFiles));
  REQUIRE(segments.size() == 3);
  REQUIRE(segments[0].need == PartNeed::kUnchanged);
  REQUIRE(segments[1].need == PartNeed::kCompare);
  REQUIRE(segments[1].interval == KeyInterval{"d", "g"});
  REQUIRE(segments[1].intervals.size() == 1);
  REQUIRE(segments[2].need == PartNeed::kUnchanged);
}

TEST_CASE("A comparison by digest compares all, known and unknown",
          "[source][refresh]") {
  std::vector<IntervalRecord> intervals = ThreeIntervals(kFiles);
  intervals.pop_back();
  auto changed = kFiles;
  changed[1].identity = "9";
  const auto segments = Compare(changed, intervals, CompareMode::kDigest);
  REQUIRE(segments.size() == 3);
  for (const PlanSegment& segment : segments) {
    REQUIRE(segment.need == PartNeed::kCompare);
  }
  REQUIRE(segments[1].intervals.size() == 1);
  REQUIRE(segments[2].intervals.empty());
  // A target that holds nothing is not asked for digests.
  IntervalComparison how;
  how.order = rocksdb::BytewiseComparator();
  how.compare = CompareMode::kDigest;
  how.target_is_empty = true;
  const auto all =
      CompareIntervals(how, Backings(how.order, &changed, Evidence(2)), {});
  REQUIRE(all.size() == 1);
  REQUIRE(all[0].need == PartNeed::kSend);
}

TEST_CASE("A file more, a file less and a file that grew into an interval "
          "change it", "[source][refresh]") {
  auto files = kFiles;
  SECTION("more") { files.insert(files.begin() + 2, File("e", "e", "9")); }
  SECTION("less") { files.erase(files.begin() + 1); }
  SECTION("grew") { files[0].largest = "d"; }
  const auto segments = Compare(files, ThreeIntervals(kFiles));
  REQUIRE(segments.size() == 3);
  REQUIRE(segments[0].need == PartNeed::kUnchanged);
  REQUIRE(segments[1].need == PartNeed::kCompare);
  REQUIRE(segments[2].need == PartNeed::kUnchanged);
}

TEST_CASE("What only the snapshot's own flush lies over is compared, unless it "
          "replayed the same WALs", "[source][refresh]") {
  auto files = kFiles;
  files.insert(files.begin() + 1, File("b", "e", "own", true));
  const auto segments = Compare(files, ThreeIntervals(kFiles));
  REQUIRE(segments.size() == 3);
  REQUIRE(segments[0].need == PartNeed::kCompare);
  REQUIRE(segments[1].need == PartNeed::kCompare);
  REQUIRE(segments[2].need == PartNeed::kUnchanged);
  REQUIRE(segments[0].intervals.at(0).flushed);

  auto again = files;
  again[1].identity = "own of another night";
  for (const auto& same : Compare(again, ThreeIntervals(files))) {
    REQUIRE(same.need == PartNeed::kUnchanged);
  }
  for (const Digest128& wal : {Digest128{7, 8}, Digest128()}) {
    REQUIRE(Compare(again, ThreeIntervals(files), CompareMode::kFiles,
                    Evidence(2, wal))[0].need == PartNeed::kCompare);
  }
  // What nobody knows does not equal itself.
  auto unknown = ThreeIntervals(files);
  unknown[0].wal = Digest128();
  REQUIRE(Compare(again, unknown, CompareMode::kFiles,
                  Evidence(2, Digest128()))[0].need == PartNeed::kCompare);
  // The log was emptied, into no file.
  REQUIRE(Compare(kFiles, ThreeIntervals(files))[0].need == PartNeed::kCompare);
}

TEST_CASE("What a target doubts is compared, and a file without identity never "
          "equals", "[source][refresh]") {
  auto intervals = ThreeIntervals(kFiles);
  intervals[1].doubted = true;
  const auto segments = Compare(kFiles, intervals);
  REQUIRE(segments[1].need == PartNeed::kCompare);
  REQUIRE_FALSE(segments[1].intervals.at(0).doubted);
  auto nameless = kFiles;
  nameless[2].identity.clear();
  REQUIRE(Compare(nameless, ThreeIntervals(nameless))[2].need ==
          PartNeed::kCompare);
}

TEST_CASE("A snapshot whose WALs lie in memory proves nothing without them",
          "[source][refresh]") {
  FamilyEvidence evidence = Evidence(2);
  evidence.in_memory = true;
  for (const auto& segment : Compare(kFiles, ThreeIntervals(kFiles),
                                     CompareMode::kFiles, evidence)) {
    REQUIRE(segment.need == PartNeed::kCompare);
  }
  std::vector<IntervalRecord> intervals = ThreeIntervals(kFiles);
  const Backings backings(rocksdb::BytewiseComparator(), &kFiles, evidence);
  for (IntervalRecord& interval_record : intervals) {
    backings.Fill(&interval_record);
  }
  REQUIRE(Compare(kFiles, intervals, CompareMode::kFiles, evidence)[0].need ==
          PartNeed::kUnchanged);
  evidence.wal.low++;
  REQUIRE(Compare(kFiles, intervals, CompareMode::kFiles, evidence)[0].need ==
          PartNeed::kCompare);
}

Digest128 BackingOf(std::vector<FilePlan> files, const KeyInterval& interval,
                    const FamilyEvidence& evidence = Evidence(1)) {
  std::sort(files.begin(), files.end(),
            [](const FilePlan& a, const FilePlan& b) {
              return a.smallest < b.smallest;
            });
  IntervalRecord interval_record;
  interval_record.interval = interval;
  Backings(rocksdb::BytewiseComparator(), &files, evidence)
      .Fill(&interval_record);
  return interval_record.backing;
}

FilePlan At(uint64_t depth, FilePlan file) {
  file.depth = depth;
  return file;
}

TEST_CASE("What backs an interval is told by more than which files they are",
          "[source][refresh]") {
  const KeyInterval all;
  const Digest128 backing = BackingOf(kFiles, all);
  auto files = kFiles;
  SECTION("a size") { files[1].bytes++; }
  SECTION("a smallest sequence") { files[1].smallest_sequence++; }
  SECTION("a largest sequence") { files[1].largest_sequence++; }
  SECTION("the same file twice") { files.push_back(kFiles[1]); }
  REQUIRE_FALSE(BackingOf(files, all) == backing);
}

TEST_CASE("A family made anew, or read in another way, is another",
          "[source][refresh]") {
  FamilyEvidence other = Evidence(1);
  SECTION("made anew") { other.family_id++; }
  SECTION("ordered otherwise") { other.comparator = "backwards"; }
  SECTION("merges otherwise") { other.merge_operator = "appends"; }
  REQUIRE_FALSE(BackingOf(kFiles, {}, other) == BackingOf(kFiles, {}));
}

TEST_CASE("A move that rewrites no file changes no backing, and another winner "
          "does", "[source][refresh]") {
  const std::vector<FilePlan> files = {
      At(0, File("a", "m", "new")), At(1, File("c", "p", "older")),
      At(1000, File("b", "d", "low")), At(1000, File("n", "z", "far"))};
  const Digest128 backing = BackingOf(files, {});
  // "far" meets only "older": both may sink; "new" may not below "low".
  REQUIRE(BackingOf({files[0], files[1], files[2],
                     At(2000, files[3])}, {}) == backing);
  REQUIRE(BackingOf({At(5, files[0]), At(900, files[1]), At(3000, files[2]),
                     At(1000, files[3])}, {}) == backing);
  REQUIRE_FALSE(BackingOf({At(1, files[0]), At(0, files[1]), files[2],
                           files[3]}, {}) == backing);
  REQUIRE_FALSE(BackingOf({files[0], files[1], files[2],
                           At(0, files[3])}, {}) == backing);
  // What lies above elsewhere has no part in it.
  const KeyInterval left{std::nullopt, "b"};
  REQUIRE(BackingOf({At(5000, files[0]), files[1], files[2], files[3]}, left) ==
          BackingOf(files, left));
}

TEST_CASE("The order of overlapping files is in what backs them",
          "[source][refresh][property]") {
  REQUIRE(rc::check([] {
    const auto count = *rc::gen::inRange<size_t>(1, 7);
    std::vector<FilePlan> files;
    for (size_t i = 0; i < count; ++i) {
      const auto begin = *rc::gen::inRange(0, 9);
      const auto end = *rc::gen::inRange(begin, 10);
      files.push_back(File(std::string(1, static_cast<char>('a' + begin)),
                           std::string(1, static_cast<char>('a' + end)),
                           std::to_string(i)));
      files.back().depth = *rc::gen::inRange<uint64_t>(0, 1000) * 10 + i;
    }
    auto moved = files;
    for (size_t i = 0; i < count; ++i) {
      moved[i].depth = *rc::gen::inRange<uint64_t>(0, 1000) * 10 + i;
    }
    bool same_order = true;
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = 0; j < i; ++j) {
        const bool overlap = files[i].smallest <= files[j].largest &&
                             files[j].smallest <= files[i].largest;
        same_order = same_order &&
                     (!overlap || (files[i].depth < files[j].depth) ==
                                      (moved[i].depth < moved[j].depth));
      }
    }
    RC_ASSERT((BackingOf(files, {}) == BackingOf(moved, {})) == same_order);
  }));
}

TEST_CASE("Segments tile the selection, whatever a target says it remembers",
          "[source][refresh][property]") {
  REQUIRE(rc::check([] {
    const auto bound = [] {
      const auto at = *rc::gen::inRange(0, 12);
      return at == 0 ? std::nullopt
                     : std::optional(std::string(1, static_cast<char>(
                                                        'a' + at)));
    };
    std::vector<IntervalRecord> known;
    const auto count = *rc::gen::inRange<size_t>(0, 6);
    for (size_t i = 0; i < count; ++i) {
      IntervalRecord interval_record =
          IntervalRecordOf(bound(), bound(), kFiles);
      if (*rc::gen::arbitrary<bool>()) {
        interval_record.backing.low++;
      }
      interval_record.doubted = *rc::gen::arbitrary<bool>();
      known.push_back(interval_record);
    }
    KeyInterval selection{bound(), bound()};
    RC_PRE((!selection.begin || !selection.end ||
            *selection.begin < *selection.end));
    const auto segments =
        Compare(kFiles, known, CompareMode::kFiles, Evidence(2), selection);
    RC_ASSERT(!segments.empty());
    RC_ASSERT(segments.front().interval.begin == selection.begin);
    RC_ASSERT(segments.back().interval.end == selection.end);
    for (size_t i = 0; i < segments.size(); ++i) {
      const KeyInterval& interval = segments[i].interval;
      RC_ASSERT((!interval.begin || !interval.end ||
                 *interval.begin < *interval.end));
      if (i > 0) {
        RC_ASSERT(interval.begin.has_value());
        RC_ASSERT(interval.begin == segments[i - 1].interval.end);
        RC_ASSERT((segments[i].need != PartNeed::kSend ||
                   segments[i - 1].need != PartNeed::kSend));
      }
      if (!segments[i].intervals.empty()) {
        RC_ASSERT(segments[i].intervals[0].interval == interval);
      }
    }
    for (const FilePlan& file : kFiles) {
      const SegmentSpan span =
          SegmentsOf(rocksdb::BytewiseComparator(), segments, file.smallest,
                     file.largest);
      for (size_t i = 0; i < segments.size(); ++i) {
        RC_ASSERT(MeetsSpan(segments[i].interval,
                            rocksdb::BytewiseComparator(), file.smallest,
                            file.largest) ==
                  (i >= span.first && i < span.end));
      }
    }
  }));
}

}  // namespace
}  // namespace sstferry::interval_plan_test
