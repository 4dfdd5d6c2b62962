// Sets and segments that a prune keeps for --keep-log.
#include "pipeline/archive/log_retention.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace sstferry::log_retention_test {
namespace {

SetId Id(uint8_t n) {
  SetId id{};
  id[0] = n;
  return id;
}

// A log whose segment N ends at N * 10. Sets are named by their moments. The
// first set of a lineage has its id.
struct World {
  void Add(uint8_t lineage, uint64_t first, uint64_t last) {
    for (uint64_t n = first; n <= last; ++n) {
      log.lineages[Id(lineage)].segments[n] =
          LogKey{Id(lineage), n, n * 10 - 9, n * 10};
    }
  }
  // Makes a lineage continue segment `number` of `parent`.
  void Continue(uint8_t lineage, uint8_t parent, uint64_t number) {
    log.lineages[Id(lineage)].parent = Id(parent);
    log.lineages[Id(lineage)].parent_number = number;
  }
  void Set(uint8_t lineage, uint64_t moment) {
    LoggedSet set;
    const bool is_first = std::none_of(
        sets.begin(), sets.end(), [lineage](const LoggedSet& other) {
          return other.log.lineage == Id(lineage);
        });
    set.name = {moment, Id(is_first ? lineage : 100 + lineage)};
    set.log.lineage = Id(lineage);
    set.log.segment = moment / 10 + 1;
    set.log.moment_micros = moment;
    sets.push_back(set);
  }
  // Returns the moments of the chosen sets.
  std::set<uint64_t> Chosen(uint64_t keep_from) const {
    std::set<uint64_t> moments;
    for (const SetName& name : ChooseLogSets(log, sets, keep_from)) {
      moments.insert(name.seconds);
    }
    return moments;
  }

  ArchiveLog log;
  std::vector<LoggedSet> sets;
};

using Moments = std::set<uint64_t>;

TEST_CASE("A kept log needs the newest set before it, and no later one",
          "[archive]") {
  World world;
  world.Add(1, 1, 10);
  for (const uint64_t moment : {5, 25, 45, 65, 85}) world.Set(1, moment);
  REQUIRE(world.Chosen(50) == Moments{45});
  REQUIRE(world.Chosen(45) == Moments{45});
  REQUIRE(world.Chosen(44) == Moments{25});
  REQUIRE(world.Chosen(1) == Moments{5});
  // No segment follows, but the next one may.
  REQUIRE(world.Chosen(200) == Moments{85});
}

TEST_CASE("A kept log needs a set of each log that begins in it",
          "[archive]") {
  World world;
  world.Add(1, 1, 4);
  world.Set(1, 5);
  world.Set(1, 25);
  world.Add(2, 5, 9);
  world.Set(2, 41);
  world.Set(2, 65);
  REQUIRE(world.Chosen(30) == Moments{25, 41});
  // If the first set of a log is damaged or removed, the next one is needed.
  std::erase_if(world.sets, [](const LoggedSet& set) {
    return set.log.moment_micros == 41;
  });
  REQUIRE(world.Chosen(30) == Moments{25, 65});
}

TEST_CASE("A log that continues another one needs no set of its own",
          "[archive]") {
  World world;
  world.Add(1, 1, 4);
  world.Set(1, 5);
  world.Set(1, 25);
  world.Add(2, 5, 9);
  world.Continue(2, 1, 4);
  world.Set(2, 65);
  REQUIRE(world.Chosen(30) == Moments{25});
  // Unless its connection to the other one is not known.
  world.log.lineages[Id(2)].parent_number = 0;
  REQUIRE(world.Chosen(30) == Moments{25, 65});
}

TEST_CASE("A kept log of two followers needs a set before it in each",
          "[archive]") {
  // The second follower continued the first one's log at segment 2, and died
  // at 70. Its set at 45 is the newest one before the kept log.
  World world;
  world.Add(1, 1, 12);
  world.Add(2, 3, 7);
  world.Continue(2, 1, 2);
  world.Set(1, 5);
  world.Set(1, 40);
  world.Set(2, 45);
  world.Set(1, 80);
  REQUIRE(world.Chosen(50) == Moments{40, 45});
}

TEST_CASE("A kept log needs a set after a missing segment", "[archive]") {
  World world;
  world.Add(1, 1, 10);
  world.log.lineages[Id(1)].segments.erase(6);
  for (const uint64_t moment : {5, 25, 65, 85}) world.Set(1, moment);
  REQUIRE(world.Chosen(30) == Moments{25, 65});
}

TEST_CASE("A set whose log has not begun is kept for a kept log",
          "[archive]") {
  World world;
  world.Add(1, 1, 4);
  world.Set(1, 25);
  world.Set(2, 60);
  REQUIRE(world.Chosen(30) == Moments{25, 60});
}

TEST_CASE("Segments without times are kept unless a later one is too old",
          "[archive]") {
  World world;
  world.Add(1, 1, 4);
  for (const uint64_t number : {3, 4}) {
    LogKey& key = world.log.lineages[Id(1)].segments[number];
    key.begin_micros = key.end_micros = 0;
  }
  world.Set(1, 5);
  REQUIRE(world.Chosen(90) == Moments{5});
  world.Add(1, 5, 5);
  world.Set(1, 65);  // the newest one; no segment follows it
  REQUIRE(world.Chosen(70) == Moments{65});
}

TEST_CASE("A set keeps the segments after it, in logs that continue it too",
          "[archive]") {
  World world;
  world.Add(1, 1, 4);
  world.Add(2, 3, 5);
  world.Continue(2, 1, 2);
  world.Add(3, 1, 2);
  SetLog cut;
  cut.lineage = Id(1);
  cut.segment = 2;
  const auto kept = [&](uint8_t written) {
    return ChooseSegments(world.log, {cut, SetLog()}, [&](const SetId& id) {
      return id == Id(written);
    });
  };
  const auto key = [&](uint8_t lineage, uint64_t number) {
    return LogKeyText(world.log.lineages[Id(lineage)].segments[number]);
  };
  std::set<std::string> expected = {key(1, 2), key(1, 3), key(1, 4),
                                    key(2, 3), key(2, 4), key(2, 5)};
  REQUIRE(kept(9) == expected);
  expected.insert({key(3, 1), key(3, 2)});
  REQUIRE(kept(3) == expected);
}

// A follower that is killed each minute restarts as often in five weeks.
TEST_CASE("A log of 50,000 restarts is one path", "[archive]") {
  constexpr uint64_t kRestarts = 50'000;
  const auto id_of = [](uint64_t n) {
    SetId id{};
    for (size_t i = 0; i < id.size(); ++i) {
      id[i] = static_cast<uint8_t>(n >> (8 * i));
    }
    return id;
  };
  ArchiveLog log;
  for (uint64_t n = 1; n <= kRestarts; ++n) {
    ArchiveLog::Lineage& lineage = log.lineages[id_of(n)];
    lineage.segments[n] = LogKey{id_of(n), n, n * 10 - 10, n * 10};
    if (n > 1) {
      lineage.parent = id_of(n - 1);
      lineage.parent_number = n - 1;
    }
  }
  SetLog first;
  first.lineage = id_of(1);
  first.segment = 1;
  first.moment_micros = 1;
  uint64_t paths = 0;
  log.PathsOf(first, [&](const LogPath& path) {
    ++paths;
    REQUIRE(path.segments.size() == kRestarts);
    REQUIRE(path.segments.front().number == 1);
    REQUIRE(path.segments.back().number == kRestarts);
    return true;
  });
  REQUIRE(paths == 1);
  log.sets.push_back({SetName(), 0, first});
  const std::vector<LogWindow> windows = log.Windows();
  REQUIRE(windows.size() == 1);
  REQUIRE(windows[0].end_micros == kRestarts * 10);
}

// Hourly sets in a log of months: each set must not look at the whole log
// behind it.
TEST_CASE("The windows of many sets are found by few looks", "[archive]") {
  constexpr uint64_t kSegments = 2000;
  World world;
  world.Add(1, 1, kSegments);
  world.Add(2, kSegments + 1, kSegments + 4);
  world.Continue(2, 1, kSegments);
  for (auto& [id, lineage] : world.log.lineages) {
    for (auto& [number, key] : lineage.segments) {
      key.begin_micros = number * 10 - 10;
    }
  }
  for (uint64_t moment = 5; moment < kSegments * 10; moment += 40) {
    world.Set(1, moment);
  }
  world.log.sets = world.sets;
  uint64_t looks = 0;
  std::vector<LogWindow> windows = world.log.Windows(&looks);
  REQUIRE(looks <= 2 * (kSegments + world.sets.size()));
  REQUIRE(windows.size() == 1);
  REQUIRE(windows[0].begin_micros == 5);
  REQUIRE(windows[0].end_micros == (kSegments + 4) * 10);
  REQUIRE(windows[0].set == world.sets.front().name);
  REQUIRE(windows[0].why.empty());
  uint64_t runs = 0;
  LogPaths(world.log).Of(world.sets.front().log, [&](const LogRuns& path) {
    runs += path.runs.size();
    return true;
  });
  REQUIRE(runs == 2);
  // If there is a gap in time between two segments, a set's time in the gap,
  // here 1005, is in no window.
  world.log.lineages[Id(1)].segments[101].begin_micros = 1008;
  world.log.lineages[Id(1)].segments[100].end_micros = 1002;
  windows = world.log.Windows();
  REQUIRE(windows.size() == 2);
  REQUIRE(windows[0].end_micros == 1002);
  REQUIRE(windows[0].why == "outage");
  REQUIRE(windows[1].begin_micros == 1008);
}

TEST_CASE("Logs that continue a log at several places are paths of their own",
          "[archive]") {
  // 1: 1 to 6; 2 continues it at 4, 3 at its end, and 4 continues 2 at 5.
  World world;
  world.Add(1, 1, 6);
  world.Add(2, 5, 9);
  world.Continue(2, 1, 4);
  world.Add(3, 7, 8);
  world.Continue(3, 1, 6);
  world.Add(4, 6, 7);
  world.Continue(4, 2, 5);
  SetLog first;
  first.lineage = Id(1);
  first.segment = 2;
  std::vector<std::string> paths;
  bool goes_on = true;
  const auto take = [&](const LogPath& path) {
    std::string& text = paths.emplace_back();
    for (const LogKey& key : path.segments) {
      text += std::to_string(key.lineage[0]) + ":" +
              std::to_string(key.number) + " ";
    }
    return goes_on;
  };
  world.log.PathsOf(first, take);
  REQUIRE(paths == std::vector<std::string>{
                       "1:2 1:3 1:4 2:5 4:6 4:7 ",
                       "1:2 1:3 1:4 2:5 2:6 2:7 2:8 2:9 ",
                       "1:2 1:3 1:4 1:5 1:6 3:7 3:8 "});
  paths.clear();
  goes_on = false;
  world.log.PathsOf(first, take);
  REQUIRE(paths.size() == 1);
}

}  // namespace
}  // namespace sstferry::log_retention_test
