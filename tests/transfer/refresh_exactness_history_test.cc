// Random histories of refreshes of every kind: of parts and of everything, from
// sources that are rolled back, cloned or exchanged, into targets that others
// write to, compact, restore, or strip of sstferry's files. After each refresh,
// the target must have the requested data and its own other data. Or the
// refresh was refused for a known reason, and nothing changed.
// (tests/support/random_histories.h explains the environment variables.)
#include <rapidcheck.h>

#include <atomic>
#include <filesystem>
#include <iostream>
#include <map>

#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/disk/durable.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/random_histories.h"
#include "tests/support/refreshed.h"
#include "tests/support/refreshed_world.h"
#include "tests/support/replica_contents.h"
#include "tests/support/sample_database.h"

namespace sstferry::test::refresh_exactness_history_test {
namespace {

namespace fs = std::filesystem;

struct Night {
  std::vector<Deed> source;
  std::vector<Deed> target;
  PullMode mode;
  uint32_t families;  // bit set of requested families; 0, or above 7: all
  uint32_t begin;     // first key; below 20,000: no interval
  uint32_t end;       // end of the interval; from 20,000 on: no end
  uint32_t hidden;    // 1 or 2: hides this family; requests others
  uint32_t most_point_deletions;
  bool adopts;
  bool drops_missing;
  bool compacts;
  bool verifies;
  bool is_open;  // an application's database is refreshed
  bool is_looked_at;  // also checks a compacted copy
  uint32_t lanes;
  uint32_t chunk_bytes;
  uint32_t compact_from;  // above 700: the source is not compacted
  uint32_t stops_at;      // the fault point of its stop; above 60: none
};

struct World {
  bool single_deletes;  // the applications use SingleDelete
  std::vector<uint32_t> kinds;
  std::vector<Step> start;  // the source's first steps
  std::vector<Deed> past;   // the target's history
  std::vector<Night> nights;
};

void ShowDeeds(const char* who, const std::vector<Deed>& deeds,
               std::ostream& os) {
  os << "\n  " << who;
  for (const Deed& deed : deeds) {
    os << " ";
    showValue(deed, os);
  }
}

void showValue(const Night& night, std::ostream& os) {
  os << "\n night";
  ShowDeeds("source", night.source, os);
  ShowDeeds("target", night.target, os);
  os << "\n  mode " << PullModeName(night.mode) << " families "
     << night.families << " begin " << night.begin << " end " << night.end
     << " hidden " << night.hidden << " most_point_deletions "
     << night.most_point_deletions << " adopts " << night.adopts
     << " drops_missing " << night.drops_missing << " compacts "
     << night.compacts << " verifies " << night.verifies << " is_open "
     << night.is_open << " is_looked_at " << night.is_looked_at << " lanes "
     << night.lanes << " chunk_bytes " << night.chunk_bytes << " compact_from "
     << night.compact_from << " stops_at " << night.stops_at;
}

void showValue(const World& world, std::ostream& os) {
  os << "single_deletes " << world.single_deletes << " kinds";
  for (const uint32_t kind : world.kinds) os << " " << kind;
  os << "\n  start";
  for (const Step& step : world.start) {
    os << " ";
    showValue(step, os);
  }
  ShowDeeds("past", world.past, os);
  for (const Night& night : world.nights) showValue(night, os);
}

rc::Gen<Night> NightGen() {
  return rc::gen::build<Night>(
      rc::gen::set(&Night::source, SourceDeeds()),
      rc::gen::set(&Night::target, TargetDeeds()),
      rc::gen::set(&Night::mode,
                   rc::gen::weightedElement<PullMode>(
                       {{8, PullMode::kRefresh}, {1, PullMode::kSwap}})),
      rc::gen::set(&Night::families, Below(30)),
      rc::gen::set(&Night::begin, Below(25'000)),
      rc::gen::set(&Night::end, Below(25'000)),
      rc::gen::set(&Night::hidden, Below(16)),
      rc::gen::set(&Night::most_point_deletions,
                   rc::gen::element<uint32_t>(0, 1, 3, 20, 10'000)),
      rc::gen::set(&Night::adopts, rc::gen::arbitrary<bool>()),
      rc::gen::set(&Night::drops_missing, rc::gen::arbitrary<bool>()),
      rc::gen::set(&Night::compacts, rc::gen::arbitrary<bool>()),
      rc::gen::set(&Night::verifies, rc::gen::arbitrary<bool>()),
      rc::gen::set(&Night::is_open, rc::gen::arbitrary<bool>()),
      rc::gen::set(&Night::is_looked_at, rc::gen::arbitrary<bool>()),
      rc::gen::set(&Night::lanes, rc::gen::inRange<uint32_t>(1, 5)),
      rc::gen::set(&Night::chunk_bytes,
                   rc::gen::inRange<uint32_t>(64 << 10, 200 << 10)),
      rc::gen::set(&Night::compact_from, Below(3000)),
      rc::gen::set(&Night::stops_at, Below(600)));
}

rc::Gen<World> WorldGen() {
  const auto kind = rc::gen::map(
      rc::gen::inRange<uint32_t>(0, 3 * kKinds), [](uint32_t number) {
        const uint32_t found = number % kKinds;  // universal is mostly refused
        return found == kUniversalKind && number != found ? 0 : found;
      });
  const auto night = NightGen();
  const auto world = rc::gen::build<World>(
      rc::gen::set(&World::single_deletes,
                   rc::gen::weightedElement<bool>({{1, true}, {5, false}})),
      rc::gen::set(&World::kinds,
                   rc::gen::mapcat(
                       rc::gen::resize(100, rc::gen::inRange<size_t>(1, 4)),
                       [kind](size_t count) {
                         return rc::gen::container<std::vector<uint32_t>>(
                             count, rc::gen::resize(100, kind));
                       })),
      rc::gen::set(&World::start, SourceSteps()),
      rc::gen::set(&World::past,
                   rc::gen::oneOf(rc::gen::just(std::vector<Deed>()),
                                  TargetDeeds())),
      rc::gen::set(&World::nights,
                   rc::gen::mapcat(
                       rc::gen::resize(100, rc::gen::inRange<size_t>(2, 9)),
                       [night](size_t count) {
                         return rc::gen::container<std::vector<Night>>(count,
                                                                       night);
                       })));
  return rc::gen::map(world, [](World made) {
    if (!made.single_deletes) {  // otherwise most refreshes are refused
      LeaveOutSingleDeletes(&made.start);
      LeaveOutSingleDeletes(&made.past);
      for (Night& one : made.nights) {
        LeaveOutSingleDeletes(&one.source);
        LeaveOutSingleDeletes(&one.target);
      }
    }
    return made;
  });
}

struct Counts {
  uint64_t refreshes = 0;
  uint64_t parts = 0;
  uint64_t open = 0;
  uint64_t sent = 0;
  uint64_t unchanged = 0;
  uint64_t compared = 0;
  uint64_t deltas = 0;  // chunks
  uint64_t range_deletions = 0;  // ingested tables with range deletions
  uint64_t hidden = 0;
  uint64_t stopped = 0;
  uint64_t resumed = 0;
  std::map<std::string, uint64_t> refused;
};

// Returns the expected reason that the message of a refusal contains, or "".
std::string ReasonOf(const Ferried& ended) {
  for (const char* const reason : {"--adopt", "--restart", "may hold more than",
                                   "SingleDelete", "so only a swap"}) {
    if (ended.message().find(reason) != std::string::npos) {
      return reason;
    }
  }
  return "";
}

class Histories {
 public:
  Histories(const ScratchDir& dir, const World& world, Counts* counts)
      : world_(world),
        kept_(MakeKept(dir)),
        source_(dir / "from", world.kinds, kept_),
        target_(dir / "to", world.kinds, kept_),
        looked_(dir / "looked"),
        counts_(counts) {}

  void Live() {
    source_.player()->Play(world_.start);
    target_.Do(world_.past);
    for (const Night& night : world_.nights) {
      Spend(night);
    }
  }

 private:
  struct Stopped {  // a stopped refresh
    std::string transfer_id;
    Contents source;
  };

  static std::string MakeKept(const ScratchDir& dir) {
    fs::create_directory(dir / "kept");
    return dir / "kept";
  }

  void Spend(const Night& night) {
    source_.Do(night.source);
    if (night.compact_from <= 700) {
      source_.player()->CompactPart(night.compact_from);
      source_.Do(Tail(night.source));
    }
    if (target_.exists()) {
      target_.Do(night.target);
    }
    PullOptions options = OptionsOf(night);
    std::string hidden;
    Select(night, &options.selection, &hidden);
    std::atomic<uint32_t> stops_at = night.stops_at > 60 ? 0 : night.stops_at;
    // Repeats with the option that the refusal names, as an operator would.
    for (int tries = 0; tries < 3; ++tries) {
      const std::string refused = Run(night, options, hidden, &stops_at);
      if (refused == "--adopt") {
        options.adopt = true;
      } else if (refused == "--restart") {
        options.restart = true;
      } else {
        return;
      }
    }
    RC_FAIL("refused again and again");
  }

  // Returns the steps after the compaction, whose entries stay in the WAL.
  static std::vector<Deed> Tail(const std::vector<Deed>& deeds) {
    std::vector<Deed> tail;
    if (!deeds.empty() && deeds.back().kind == Deed::Kind::kPlay) {
      Deed last = deeds.back();
      std::erase_if(last.steps, [](const Step& step) {
        return step.act != Act::kPut && step.act != Act::kDelete &&
               step.act != Act::kMerge;
      });
      tail.push_back(last);
    }
    return tail;
  }

  PullOptions OptionsOf(const Night& night) const {
    PullOptions options;
    options.method = PullMethod::kIngest;
    options.source.directory = source_.database();
    options.target_dir = target_.database();
    options.snapshot_ttl = std::chrono::seconds(0);  // any snapshot is a leak
    options.mode = night.mode;
    options.adopt = night.adopts;
    options.most_point_deletions = night.most_point_deletions;
    options.verify = night.verifies;
    options.compact = night.compacts;
    options.lanes = night.lanes;
    options.chunk_bytes = night.chunk_bytes;
    options.registry.comparators = {ByLengthComparator()};
    return options;
  }

  // Selects among the source's families. With a hidden family, never selects
  // all families.
  void Select(const Night& night, Selection* selection, std::string* hidden) {
    const Contents there = *ContentsOf(source_.database(), source_.families());
    const Families& families = source_.families();
    if (night.hidden > 0 && night.hidden < families.size()) {
      *hidden = families[night.hidden].name;  // never the default one
    }
    const bool is_part = night.families > 0 && night.families < 8;
    std::vector<std::string> others;
    for (size_t i = 0; i < families.size(); ++i) {
      if (!there.contains(families[i].name) || families[i].name == *hidden) {
        continue;
      }
      others.push_back(families[i].name);
      if (is_part && (night.families >> i & 1) != 0) {
        selection->families.push_back(families[i].name);
      }
    }
    if (!hidden->empty() && selection->families.empty()) {
      selection->families = others;
    }
    // Always selects "default" for a new target. Otherwise RocksDB would create
    // it with its own options, and this test's application could not open it.
    const bool is_new = !target_.exists() || night.mode == PullMode::kSwap;
    if (is_new && !selection->families.empty() &&
        selection->families.front() != "default") {
      selection->families.insert(selection->families.begin(), "default");
    }
    if (night.begin < 20'000) {
      return;
    }
    selection->interval.begin = PlayedKey(night.begin);
    if (night.end >= 20'000) {
      return;
    }
    selection->interval.end = PlayedKey(night.end);
    if (!Ascends(*selection)) {
      std::swap(selection->interval.begin, selection->interval.end);
    }
    if (!Ascends(*selection)) {  // some families have another order
      selection->interval.end.reset();
    }
  }

  bool Ascends(const Selection& selection) const {
    const std::vector<std::string>& names = selection.families;
    return std::all_of(
        source_.families().begin(), source_.families().end(),
        [&](const auto& family) {
          return (!names.empty() && std::find(names.begin(), names.end(),
                                              family.name) == names.end()) ||
                 family.options.comparator->Compare(
                     *selection.interval.begin, *selection.interval.end) < 0;
        });
  }

  // Returns the reason of a refusal, or "".
  std::string Run(const Night& night, PullOptions options,
                  const std::string& hidden,
                  std::atomic<uint32_t>* stops_at) {
    const bool is_open =
        night.is_open && target_.exists() && night.mode != PullMode::kSwap;
    if (is_open) {
      target_.player()->Play({});  // creates missing families
    }
    options.drop_missing = night.drops_missing &&
                           options.selection.families.empty() &&
                           !options.selection.interval.begin &&
                           !options.selection.interval.end;
    const Contents source =
        *ContentsOf(source_.database(), source_.families());
    const auto before = ContentsOf(target_.database(), target_.families());
    const bool stops = *stops_at > 0;
    Ferried ended;
    {
      std::optional<HiddenFamily> hiding;
      if (!hidden.empty()) {
        hiding.emplace(source_.database(), hidden);
      }
      const std::string untouched = Fingerprint(source_.database());
      ended = is_open ? RefreshOpened(options, stops_at)
                      : RunAndStop(*MakePull(options), stops_at);
      RC_ASSERT(Fingerprint(source_.database()) == untouched);
    }
    RequireAlone(source_);
    counts_->hidden += hidden.empty() || !ended.status.ok() ? 0 : 1;
    const bool stopped = stops && *stops_at == 0;
    RefreshAsked asked;
    asked.selection = options.selection;
    asked.replaces_all = night.mode == PullMode::kSwap;
    asked.drops_missing = options.drop_missing;
    return Judge(night, asked, ended, stopped, before, source);
  }

  Ferried RefreshOpened(const PullOptions& options,
                        std::atomic<uint32_t>* stops_at) {
    Ferried ended;
    target_.player()->While([&](OpenDb* db) {
      OpenReplica replica;
      replica.db = db->get();
      for (const auto& family : target_.families()) {
        replica.families.push_back(db->cf(family.name));
      }
      ended = RunAndStop(*MakeRefresh(options, replica), stops_at);
    });
    return ended;
  }

  static Ferried RunAndStop(Operation& operation,
                            std::atomic<uint32_t>* stops_at) {
    TEST_SetFaultHook([&operation, stops_at](const std::string&) {
      uint32_t left = stops_at->load();
      while (left > 0 && !stops_at->compare_exchange_weak(left, left - 1)) {
      }
      if (left == 1) {
        operation.Cancel();
      }
    });
    Ferried ended;
    ended.status = operation.Run(&ended.summary);
    TEST_SetFaultHook(nullptr);
    return ended;
  }

  // Returns true if this run continued the transfer of the stopped run.
  bool GoesOn(const Ferried& ended) const {
    return stopped_.has_value() &&
           stopped_->transfer_id == ended.summary.transfer_id;
  }

  const Contents& PinnedBy(const Ferried& ended, const Contents& now) const {
    return GoesOn(ended) ? stopped_->source : now;
  }

  std::string Judge(const Night& night, const RefreshAsked& asked,
                    const Ferried& ended, bool was_stopped,
                    const std::optional<Contents>& before,
                    const Contents& source) {
    const auto found = ContentsOf(target_.database(), target_.families());
    if (ended.status.ok()) {
      JudgeDone(night, asked, ended, was_stopped, before, source, *found);
      return "";
    }
    if (ended.state() == EndState::kCancelled) {
      JudgeStopped(asked, ended, before, source, found);
      return "";
    }
    const std::string reason = ReasonOf(ended);
    if (reason.empty()) {
      RC_FAIL("not for a reason that is known: " + ended.message());
    }
    RC_ASSERT(found.has_value() == before.has_value());
    if (found) {
      RequireSame("a refused refresh changed", *before, *found);
    }
    counts_->refused[reason]++;
    return reason;
  }

  void JudgeDone(const Night& night, const RefreshAsked& asked,
                 const Ferried& ended, bool was_stopped,
                 const std::optional<Contents>& before, const Contents& source,
                 const Contents& found) {
    const bool goes_on = GoesOn(ended);
    const Contents expected = ContentsAfter(asked, source_.families(), before,
                                            PinnedBy(ended, source));
    stopped_.reset();
    if (ended.notes_mention("compaction filter")) {
      RequireSame("after the refresh, but for empty values",
                  WithoutEmptyValues(expected), WithoutEmptyValues(found));
    } else {
      RequireSame("after the refresh", expected, found);
    }
    RC_ASSERT((ended.summary.verified || !night.verifies));
    if (!was_stopped) {  // else the next run removes what this one left
      RequireAlone(target_);
    }
    if (night.is_looked_at) {
      LookAtCompacted(found);
    }
    Count(asked, night, ended.summary, goes_on);
  }

  // Requires that a compaction brings back no entry that deletions hide.
  void LookAtCompacted(const Contents& found) {
    fs::remove_all(looked_);
    fs::copy(target_.database(), looked_, fs::copy_options::recursive);
    Families there;
    for (const auto& family : source_.families()) {
      if (found.contains(family.name)) {
        there.push_back(family);
      }
    }
    {
      OpenDb db(looked_, there);
      for (const auto& family : there) {
        db.Compact(family.name);
      }
    }
    RequireSame("once it was compacted", found,
                *ContentsOf(looked_, source_.families()));
    fs::remove_all(looked_);
  }

  void JudgeStopped(const RefreshAsked& asked, const Ferried& ended,
                    const std::optional<Contents>& before,
                    const Contents& source, std::optional<Contents> found) {
    const Contents after = ContentsAfter(asked, source_.families(), before,
                                         PinnedBy(ended, source));
    if (!GoesOn(ended) && !ended.summary.transfer_id.empty()) {
      stopped_ = Stopped{ended.summary.transfer_id, source};
    }
    counts_->stopped++;
    const bool ended_it = found && *found == after;
    if (found && before) {
      DropEmptyNew(*before, &*found);  // a family made for later entries
    }
    RC_ASSERT((ended_it || found == before));
  }

  static void DropEmptyNew(const Contents& before, Contents* found) {
    std::erase_if(*found, [&before](const auto& family) {
      return family.second.empty() && !before.contains(family.first);
    });
  }

  void RequireAlone(const PlayedSite& site) {
    const std::vector<std::string> strangers = site.strangers();
    if (!strangers.empty()) {
      RC_FAIL("left beside a database: " + strangers.front());
    }
  }

  void Count(const RefreshAsked& asked, const Night& night,
             const Summary& summary, bool goes_on) {
    counts_->refreshes++;
    counts_->parts += !asked.selection.families.empty() ||
                      asked.selection.interval.begin.has_value();
    counts_->open += night.is_open;
    counts_->sent += summary.parts_sent;
    counts_->unchanged += summary.parts_unchanged;
    counts_->compared += summary.parts_compared;
    counts_->deltas += summary.chunks_delta;
    counts_->range_deletions +=
        IngestedRangeDeletions(target_.database(), target_.families());
    counts_->resumed += goes_on;
  }

  const World& world_;
  const std::string kept_;
  PlayedSite source_;
  PlayedSite target_;
  const std::string looked_;
  std::optional<Stopped> stopped_;
  Counts* const counts_;
};

}  // namespace

TEST_CASE("A refresh leaves the requested data and the target's other data, or "
          "refuses, whatever happened to both sides",
          "[transfer][refresh]") {
  const int worlds = HistoryCount(60);
  Counts counts;
  const auto play = [&] {
    const World world = *WorldGen();
    const ScratchDir dir;
    Histories(dir, world, &counts).Live();
  };
  const bool received =
      CheckHistories("a refresh is exact or refused", worlds, 100, play);
  std::cerr << counts.refreshes << " refreshes (" << counts.parts
            << " of parts, " << counts.open << " of open databases, "
            << counts.hidden
            << " beside a family that cannot be opened): " << counts.sent
            << " parts sent, " << counts.unchanged << " unchanged, "
            << counts.compared << " compared, " << counts.deltas << " deltas, "
            << counts.range_deletions
            << " tables with range deletions ingested; " << counts.stopped
            << " stopped, " << counts.resumed << " gone on with; refused";
  for (const auto& [reason, count] : counts.refused) {
    std::cerr << " '" << reason << "' " << count;
  }
  std::cerr << "\n";
  REQUIRE(received);
  REQUIRE(counts.sent > 0);
  REQUIRE(counts.unchanged > 0);
  REQUIRE(counts.compared > 0);
  REQUIRE(counts.deltas > 0);
  REQUIRE((worlds < 100 || counts.range_deletions > 0));
  REQUIRE(counts.parts > 0);
}

}  // namespace sstferry::test::refresh_exactness_history_test
