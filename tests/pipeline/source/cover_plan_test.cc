// What a refresh takes for changed.
#include "pipeline/source/cover_plan.h"

#include <rapidcheck.h>

#include <algorithm>
#include <map>

#include "pipeline/key_interval.h"
#include "tests/support/catch.h"

namespace sstferry {
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

Cover CoverOf(const std::optional<std::string>& begin,
              const std::optional<std::string>& end,
              const std::vector<FilePlan>& files, uint64_t sequence = 10) {
  Cover cover;
  cover.interval = {begin, end};
  cover.sequence = sequence;
  Backings(rocksdb::BytewiseComparator(), &files, 1).Fill(&cover);
  return cover;
}

std::vector<PlanSegment> Compare(const std::vector<FilePlan>& files,
                                 std::vector<Cover> known,
                                 CompareMode mode = CompareMode::kFiles,
                                 uint64_t sequence = 10,
                                 KeyInterval selection = {}) {
  CoverComparison how;
  how.order = rocksdb::BytewiseComparator();
  how.compare = mode;
  how.sequence = sequence;
  how.selection = std::move(selection);
  return CompareCovers(
      how, Backings(how.order, &files, 2), std::move(known));
}

const std::vector<FilePlan> kFiles = {File("a", "c", "1"), File("d", "f", "2"),
                                      File("g", "i", "3")};

std::vector<Cover> ThreeCovers(const std::vector<FilePlan>& files) {
  return {CoverOf(std::nullopt, "d", files), CoverOf("d", "g", files),
          CoverOf("g", std::nullopt, files)};
}

TEST_CASE("What the same files back is unchanged, and remembered as before",
          "[source][refresh]") {
  const auto segments = Compare(kFiles, ThreeCovers(kFiles));
  REQUIRE(segments.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    REQUIRE(segments[i].need == RangeNeed::kUnchanged);
    REQUIRE(segments[i].cover == ThreeCovers(kFiles)[i]);
  }
}

TEST_CASE("What other files back is sent, or compared if asked for",
          "[source][refresh]") {
  const CompareMode mode = GENERATE(CompareMode::kFiles, CompareMode::kDigest);
  auto changed = kFiles;
  changed[1].identity = "9";
  const auto segments = Compare(changed, ThreeCovers(kFiles), mode);
  REQUIRE(segments.size() == 3);
  REQUIRE(segments[0].need == RangeNeed::kUnchanged);
  REQUIRE(segments[1].need == (mode == CompareMode::kFiles
                                   ? RangeNeed::kSend
                                   : RangeNeed::kCompare));
  REQUIRE(segments[1].interval == KeyInterval{"d", "g"});
  REQUIRE(segments[1].cover.has_value() == (mode == CompareMode::kDigest));
  REQUIRE(segments[2].need == RangeNeed::kUnchanged);
}

TEST_CASE("A file more, a file less and a file that grew into an interval "
          "change it", "[source][refresh]") {
  auto files = kFiles;
  SECTION("more") { files.insert(files.begin() + 2, File("e", "e", "9")); }
  SECTION("less") { files.erase(files.begin() + 1); }
  SECTION("grew") { files[0].largest = "d"; }
  const auto segments = Compare(files, ThreeCovers(kFiles));
  REQUIRE(segments.size() == 3);
  REQUIRE(segments[0].need == RangeNeed::kUnchanged);
  REQUIRE(segments[1].need == RangeNeed::kSend);
  REQUIRE(segments[2].need == RangeNeed::kUnchanged);
}

TEST_CASE("What only the snapshot's own flush lies over is compared, unless it "
          "is the flush of the last time", "[source][refresh]") {
  auto files = kFiles;
  files.insert(files.begin() + 1, File("b", "e", "own", true));
  const auto segments = Compare(files, ThreeCovers(kFiles));
  REQUIRE(segments.size() == 3);
  REQUIRE(segments[0].need == RangeNeed::kCompare);
  REQUIRE(segments[1].need == RangeNeed::kCompare);
  REQUIRE(segments[2].need == RangeNeed::kUnchanged);
  REQUIRE(segments[0].cover->flushed);

  auto again = files;
  again[1].identity = "own of another night";
  for (const auto& same : Compare(again, ThreeCovers(files))) {
    REQUIRE(same.need == RangeNeed::kUnchanged);
  }
  REQUIRE(Compare(again, ThreeCovers(files), CompareMode::kFiles, 11)[0].need ==
          RangeNeed::kCompare);
  // The log was emptied, into no file.
  REQUIRE(Compare(kFiles, ThreeCovers(files))[0].need == RangeNeed::kCompare);
}

TEST_CASE("What a target doubts is compared, and a file without identity never "
          "equals", "[source][refresh]") {
  auto covers = ThreeCovers(kFiles);
  covers[1].doubted = true;
  const auto segments = Compare(kFiles, covers);
  REQUIRE(segments[1].need == RangeNeed::kCompare);
  REQUIRE_FALSE(segments[1].cover->doubted);
  auto nameless = kFiles;
  nameless[2].identity.clear();
  REQUIRE(Compare(nameless, ThreeCovers(nameless))[2].need ==
          RangeNeed::kSend);
}

TEST_CASE("Full sends everything", "[source][refresh]") {
  const auto segments =
      Compare(kFiles, ThreeCovers(kFiles), CompareMode::kFull);
  REQUIRE(segments.size() == 1);
  REQUIRE(segments[0].need == RangeNeed::kSend);
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
    std::vector<Cover> known;
    const auto count = *rc::gen::inRange<size_t>(0, 6);
    for (size_t i = 0; i < count; ++i) {
      Cover cover = CoverOf(bound(), bound(), kFiles);
      if (*rc::gen::arbitrary<bool>()) {
        cover.backing.low++;
      }
      cover.doubted = *rc::gen::arbitrary<bool>();
      known.push_back(cover);
    }
    KeyInterval selection{bound(), bound()};
    RC_PRE((!selection.begin || !selection.end ||
            *selection.begin < *selection.end));
    const auto segments =
        Compare(kFiles, known, CompareMode::kFiles, 10, selection);
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
        RC_ASSERT((segments[i].need != RangeNeed::kSend ||
                   segments[i - 1].need != RangeNeed::kSend));
      }
      if (segments[i].cover.has_value()) {
        RC_ASSERT(segments[i].cover->interval == interval);
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
}  // namespace sstferry
