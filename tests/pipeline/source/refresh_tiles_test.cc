// Chunks that replace intervals: whatever both sides hold, in whatever order
// they arrive, the target then holds what the source does.
#include <rapidcheck.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <random>

#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/base/tile.h"
#include "pipeline/source/chunk/chunk_builder.h"
#include "pipeline/source/plan/planner.h"
#include "rocksdb/metadata.h"
#include "tests/support/catch.h"
#include "tests/support/named_comparator.h"
#include "tests/support/scratch_dir.h"

namespace sstferry {
namespace {

using rocksdb::Comparator;
using rocksdb::Slice;
using rocksdb::Status;

using Entries = std::map<std::string, std::string>;

// Each chunk a file of a directory.
class FileSink final : public ChunkSink {
 public:
  explicit FileSink(const std::string& directory) : directory_(directory) {}

  Status Begin(const ChunkBegin&) override {
    paths.push_back(directory_ + "/" + std::to_string(paths.size()) + ".sst");
    out_.open(paths.back(), std::ios::binary);
    return Status::OK();
  }
  Status Append(const Slice& bytes) override {
    out_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return Status::OK();
  }
  Status End(const ChunkEnd& end) override {
    out_.close();
    chunks.push_back(end);
    return Status::OK();
  }

  std::vector<std::string> paths;
  std::vector<ChunkEnd> chunks;

 private:
  const std::string directory_;
  std::ofstream out_;
};

struct World {
  const Comparator* order = rocksdb::BytewiseComparator();
  ScratchDir dir;
  std::unique_ptr<rocksdb::DB> source;
  std::unique_ptr<rocksdb::DB> target;

  rocksdb::Options options() const {
    rocksdb::Options made;
    made.create_if_missing = true;
    made.comparator = order;
    made.disable_auto_compactions = true;
    // With dynamic levels what replaces data of the last level lands in level
    // 0: no other is in use.
    made.level_compaction_dynamic_level_bytes = false;
    return made;
  }
  void Open() {
    REQUIRE_OK(rocksdb::DB::Open(options(), dir / "source", IntoDb(&source)));
    REQUIRE_OK(rocksdb::DB::Open(options(), dir / "target", IntoDb(&target)));
    std::filesystem::create_directory(dir / "chunks");
  }
  // In one file of the last level, then in another above it, then in memory.
  static void Fill(rocksdb::DB* db, const Entries& entries, int depth) {
    for (const auto& [key, value] : entries) {
      REQUIRE_OK(db->Put({}, key, "older"));
    }
    if (depth > 0) {
      REQUIRE_OK(db->Flush({}));
      REQUIRE_OK(db->CompactRange({}, nullptr, nullptr));
    }
    for (const auto& [key, value] : entries) {
      REQUIRE_OK(db->Put({}, key, value));
    }
    if (depth > 1) {
      REQUIRE_OK(db->Flush({}));
    }
  }
  // What the target holds into the last level: chunks land above it, and meet
  // what is written after them before they meet that.
  void SinkTarget() const {
    rocksdb::CompactRangeOptions down;
    down.change_level = true;
    down.target_level = 6;
    REQUIRE_OK(target->CompactRange(down, nullptr, nullptr));
  }
  static Entries Read(rocksdb::DB* db) {
    Entries found;
    std::unique_ptr<rocksdb::Iterator> iterator(db->NewIterator({}));
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      found[iterator->key().ToString()] = iterator->value().ToString();
    }
    REQUIRE_OK(iterator->status());
    return found;
  }
  ReplacedFamily Replaced() const {
    ReplacedFamily replaced;
    std::unique_ptr<rocksdb::Iterator> iterator(target->NewIterator({}));
    iterator->SeekToFirst();
    if (iterator->Valid()) {
      replaced.first = iterator->key().ToString();
      iterator->SeekToLast();
      replaced.last = iterator->key().ToString();
    }
    return replaced;
  }
  Status Build(const Range& range, const RangeRequest& request,
               uint64_t chunk_bytes, FileSink* sink) const {
    ChunkBuilderOptions built;
    built.chunk_bytes = chunk_bytes;
    built.replaces = Replaced();
    return ChunkBuilder(source.get(), source->DefaultColumnFamily(), options(),
                        built, sink)
        .Build(range, request);
  }
  Status Ingest(const std::vector<std::string>& paths) const {
    rocksdb::IngestExternalFileOptions how;
    how.allow_global_seqno = true;
    how.move_files = true;
    return target->IngestExternalFile(paths, how);
  }
};

std::string RandomKey() {
  return *rc::gen::container<std::string>(
      *rc::gen::inRange<size_t>(0, 4),
      rc::gen::element('\0', 'a', 'b', '\xff'));
}

Entries RandomEntries(const std::string& mark, bool with_empty) {
  Entries entries;
  const auto count = *rc::gen::inRange<size_t>(0, 12);
  for (size_t i = 0; i < count; ++i) {
    entries[RandomKey()] = mark + std::to_string(i);
  }
  if (!with_empty) {
    entries.erase("");
  }
  return entries;
}

// Ranges that tile everything, or the interval between two keys.
std::vector<Range> RandomRanges(const Comparator* order, bool with_empty,
                                KeyInterval* interval) {
  std::vector<std::string> cuts;
  const auto count = *rc::gen::inRange<size_t>(0, 6);
  for (size_t i = 0; i < count; ++i) {
    const bool closed = *rc::gen::arbitrary<bool>();
    cuts.push_back(closed ? ClosedEnd(order, RandomKey()) : RandomKey());
  }
  if (!with_empty) {
    std::erase(cuts, "");
  }
  std::sort(cuts.begin(), cuts.end(),
            [order](const std::string& a, const std::string& b) {
              return order->Compare(a, b) < 0;
            });
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  size_t first = 0;
  if (cuts.size() > 1 && *rc::gen::arbitrary<bool>()) {
    interval->begin = cuts.front();
    interval->end = cuts.back();
    first = 1;
    cuts.pop_back();
  }
  std::vector<Range> ranges(1);
  ranges[0].interval.begin = interval->begin;
  for (size_t i = first; i < cuts.size(); ++i) {
    ranges.back().interval.end = cuts[i];
    ranges.emplace_back().id = static_cast<uint32_t>(ranges.size() - 1);
    ranges.back().interval.begin = cuts[i];
  }
  ranges.back().interval.end = interval->end;
  return ranges;
}

bool Inside(const Comparator* order, const KeyInterval& interval,
            const std::string& key) {
  return (!interval.begin || order->Compare(key, *interval.begin) >= 0) &&
         (!interval.end || order->Compare(key, *interval.end) < 0);
}

// A value stands inside of its chunk's range deletion, or, last of all, by
// itself where no key is known behind it.
void CheckTiles(const Comparator* order, const std::vector<ChunkEnd>& chunks) {
  for (const ChunkEnd& chunk : chunks) {
    const bool lone = !chunk.clears && !chunk.deletes_last;
    std::string behind;
    RC_ASSERT(!lone || (chunk.entries == 1 &&
                        chunk.smallest == chunk.largest &&
                        !KeyBehind(order, chunk.largest, &behind)));
    RC_ASSERT(!chunk.clears ||
              order->Compare(chunk.smallest, chunk.largest) < 0);
  }
}

// The application deletes all that came, which goes together with its value
// when both are compacted, and nothing older shows.
void CheckSingleDeletes(const World& world, const KeyInterval& interval,
                        const Entries& theirs) {
  std::string last;
  for (const auto& [key, value] : theirs) {
    if (last.empty() || world.order->Compare(last, key) < 0) {
      last = key;
    }
  }
  std::string behind;
  Entries left = World::Read(world.target.get());
  for (const auto& [key, value] : theirs) {
    const bool documented =
        (key == last || key.empty()) && !interval.end &&
        !KeyBehind(world.order, key, &behind);
    if (Inside(world.order, interval, key) && !documented) {
      REQUIRE_OK(world.target->SingleDelete({}, key));
      left.erase(key);
    }
  }
  RC_ASSERT(World::Read(world.target.get()) == left);
  REQUIRE_OK(world.target->CompactRange({}, nullptr, nullptr));
  RC_ASSERT(World::Read(world.target.get()) == left);
}

void CheckReplaces(const Comparator* order, bool with_empty) {
  World world;
  world.order = order;
  world.Open();
  const Entries theirs = RandomEntries("source", with_empty);
  const Entries before = RandomEntries("target", with_empty);
  World::Fill(world.source.get(), theirs, *rc::gen::inRange(0, 3));
  World::Fill(world.target.get(), before, *rc::gen::inRange(0, 3));
  if (*rc::gen::arbitrary<bool>()) {
    world.SinkTarget();
  }
  KeyInterval interval;
  const std::vector<Range> ranges =
      RandomRanges(order, with_empty, &interval);
  const uint64_t chunk_bytes = *rc::gen::element<uint64_t>(1, 20, 1'000'000);

  FileSink sink(world.dir / "chunks");
  for (const Range& range : ranges) {
    const size_t first = sink.chunks.size();
    REQUIRE_OK(world.Build(range, {}, chunk_bytes, &sink));
    const uint64_t chunks = sink.chunks.size() - first;
    if (chunks == 0) {
      continue;
    }
    // Going on behind any of its chunks makes the same ones.
    RangeRequest request;
    request.held.chunks = *rc::gen::inRange<uint64_t>(1, chunks + 1);
    const ChunkEnd& held = sink.chunks[first + request.held.chunks - 1];
    request.after = NextBegin(order, EndOf(held));
    if (request.after == held.smallest) {
      continue;  // nothing is known behind it: nobody asks
    }
    std::filesystem::create_directory(world.dir / "again");
    FileSink again(world.dir / "again");
    REQUIRE_OK(world.Build(range, request, chunk_bytes, &again));
    RC_ASSERT(again.chunks.size() + request.held.chunks == chunks);
    for (size_t i = 0; i < again.chunks.size(); ++i) {
      const ChunkEnd& one = sink.chunks[first + request.held.chunks + i];
      RC_ASSERT(again.chunks[i].smallest == one.smallest);
      RC_ASSERT(again.chunks[i].largest == one.largest);
      RC_ASSERT(again.chunks[i].entries == one.entries);
    }
  }

  std::vector<std::string> paths = sink.paths;
  const auto seed = *rc::gen::arbitrary<uint32_t>();
  std::shuffle(paths.begin(), paths.end(), std::mt19937(seed));
  const rocksdb::Snapshot* const old = world.target->GetSnapshot();
  for (const std::string& path : paths) {
    REQUIRE_OK(world.Ingest({path}));
  }
  Entries expected;
  for (const auto& [key, value] : before) {
    if (!Inside(order, interval, key)) {
      expected[key] = value;
    }
  }
  for (const auto& [key, value] : theirs) {
    if (Inside(order, interval, key)) {
      expected[key] = value;
    }
  }
  RC_ASSERT(World::Read(world.target.get()) == expected);
  CheckTiles(order, sink.chunks);
  for (const auto& [key, value] : before) {
    rocksdb::ReadOptions then;
    then.snapshot = old;
    std::string found;
    REQUIRE_OK(world.target->Get(then, key, &found));
    RC_ASSERT(found == value);
  }
  world.target->ReleaseSnapshot(old);
  CheckSingleDeletes(world, interval, theirs);
}

TEST_CASE("Chunks that arrive in any order replace exactly their interval",
          "[source][refresh][property]") {
  const sstferry::test::NamedComparator own("test.own");
  REQUIRE(rc::check("bytewise", [] {
    CheckReplaces(rocksdb::BytewiseComparator(), true);
  }));
  REQUIRE(rc::check("reverse bytewise", [] {
    CheckReplaces(rocksdb::ReverseBytewiseComparator(), true);
  }));
  REQUIRE(rc::check("an order of the application's",
                    [&own] { CheckReplaces(&own, false); }));
}

TEST_CASE("SingleDelete of a chunk's last key leaves nothing, whatever stands "
          "near it",
          "[source][refresh]") {
  const sstferry::test::NamedComparator own("test.own");
  World world;
  world.order =
      GENERATE_REF(rocksdb::BytewiseComparator(),
                   rocksdb::ReverseBytewiseComparator(),
                   static_cast<const Comparator*>(&own));
  world.Open();
  const std::string nul(1, '\0');
  Entries theirs;
  for (const std::string key : {"a", "b", "c", "d"}) {
    for (int nuls = 0; nuls < (key == "d" ? 1 : 5); ++nuls) {
      std::string near = key;
      near.append(static_cast<size_t>(nuls), '\0');
      theirs[near] = "new";
    }
  }
  theirs["c" + nul + nul + "x"] = "new";
  Entries before = theirs;
  before["b" + nul + "x"] = "old";
  before["bx"] = "old";
  World::Fill(world.source.get(), theirs, 1);
  World::Fill(world.target.get(), before, 1);
  world.SinkTarget();
  const uint64_t chunk_bytes = GENERATE(1, 8, 20, 1'000'000);
  FileSink sink(world.dir / "chunks");
  REQUIRE_OK(world.Build({}, {}, chunk_bytes, &sink));
  for (const std::string& path : sink.paths) {
    REQUIRE_OK(world.Ingest({path}));
  }
  REQUIRE(World::Read(world.target.get()) == theirs);
  for (const auto& [key, value] : theirs) {
    REQUIRE_OK(world.target->SingleDelete({}, key));
  }
  // It goes together with the value that it deletes: an older one would show.
  REQUIRE_OK(world.target->CompactRange({}, nullptr, nullptr));
  // In an order that tells of no key behind the last one, that one is outside.
  Entries left;
  if (world.order == &own) {
    left["d"] = "new";
  }
  REQUIRE(World::Read(world.target.get()) == left);
}

TEST_CASE("The empty key in an order of the application's is refused",
          "[source][refresh]") {
  const sstferry::test::NamedComparator own("test.own");
  World world;
  world.order = &own;
  world.Open();
  World::Fill(world.source.get(), {{"", "1"}, {"a", "2"}}, 0);
  FileSink sink(world.dir / "chunks");
  const Status status = world.Build({}, {}, 1'000'000, &sink);
  REQUIRE(EndStateOf(status) == EndState::kRefused);
  REQUIRE(status.ToString().find("swap") != std::string::npos);
}

TEST_CASE("Tiles with closed ends share no key, and land in one level",
          "[source][refresh]") {
  World world;
  world.order = GENERATE(rocksdb::BytewiseComparator(),
                         rocksdb::ReverseBytewiseComparator());
  world.Open();
  Entries theirs;
  for (int i = 0; i < 200; ++i) {
    theirs["k" + std::to_string(1000 + i)] = std::string(100, 'v');
  }
  World::Fill(world.source.get(), theirs, 0);
  World::Fill(world.target.get(), {{"k1000", "x"}, {"k1111", "y"}, {"z", "z"}},
              1);
  world.SinkTarget();
  FileSink sink(world.dir / "chunks");
  REQUIRE_OK(world.Build({}, {}, 1000, &sink));
  REQUIRE(sink.paths.size() > 5);
  for (size_t i = 1; i < sink.chunks.size(); ++i) {
    REQUIRE(world.order->Compare(sink.chunks[i - 1].largest,
                                 sink.chunks[i].smallest) < 0);
  }
  std::vector<std::string> paths = sink.paths;
  std::shuffle(paths.begin(), paths.end(), std::mt19937(7));
  for (const std::string& path : paths) {
    REQUIRE_OK(world.Ingest({path}));
  }
  rocksdb::ColumnFamilyMetaData metadata;
  world.target->GetColumnFamilyMetaData(&metadata);
  size_t levels = 0;
  for (const rocksdb::LevelMetaData& level : metadata.levels) {
    levels += level.files.empty() ? 0 : 1;
  }
  REQUIRE(metadata.levels[0].files.empty());
  REQUIRE(levels <= 2);  // the old file's, and one above it
  REQUIRE(World::Read(world.target.get()) == theirs);
}

}  // namespace
}  // namespace sstferry
