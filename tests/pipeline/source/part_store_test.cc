// The store of chunks that are built once for several readers.
#include "pipeline/parts/part_store.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include "pipeline/snapshot/posix_files.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::part_store_test {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

constexpr uint64_t kChunks = 12;
constexpr size_t kBytes = 300'000;

std::string KeyAt(uint64_t ordinal) { return "key" + std::to_string(ordinal); }

std::string ContentsAt(uint64_t ordinal) {
  return std::string(kBytes, static_cast<char>('a' + ordinal));
}

// Builds chunks of known contents, and counts them.
struct Factory {
  std::atomic<uint64_t> built{0};
  uint64_t fails_at = kChunks;

  Status Build(const PartRequest& from, const std::function<bool()>& cancelled,
               ChunkSink* sink) {
    Status status;
    for (uint64_t i = from.received.chunks; status.ok() && i < kChunks; ++i) {
      ChunkBegin begin;
      begin.part_id = from.part_id;
      begin.ordinal = static_cast<uint32_t>(i);
      status = sink->Begin(begin);
      const std::string contents = ContentsAt(i);
      for (size_t at = 0; status.ok() && at < kBytes; at += kBytes / 3) {
        status = cancelled() ? MakeStatus(EndState::kCancelled, "stopped")
                             : sink->Append(Slice(contents.data() + at,
                                                  kBytes / 3));
        if (status.ok() && i == fails_at) {
          status = MakeStatus(EndState::kSourceError, "a test said so");
        }
      }
      if (status.ok()) {
        ++built;
        ChunkEnd end;
        end.part_id = from.part_id;
        end.ordinal = begin.ordinal;
        end.largest = KeyAt(i);
        end.file_bytes = kBytes;
        status = sink->End(end);
      }
    }
    return status;
  }
};

// A sink that checks what it receives. `before_chunk` may block.
class CheckingSink : public ChunkSink {
 public:
  explicit CheckingSink(uint64_t first) : next_(first) {}
  Status Begin(const ChunkBegin& begin) override {
    if (before_chunk) {
      before_chunk(begin.ordinal);
    }
    contents_.clear();
    return begin.ordinal == next_ ? Status::OK() : Status::Corruption("order");
  }
  Status Append(const Slice& data) override {
    contents_.append(data.data(), data.size());
    return Status::OK();
  }
  Status End(const ChunkEnd& end) override {
    const bool right = end.ordinal == next_ && end.largest == KeyAt(next_) &&
                       contents_ == ContentsAt(next_);
    ++next_;
    return right ? Status::OK() : Status::Corruption("contents");
  }
  std::function<void(uint64_t ordinal)> before_chunk;
  uint64_t next() const { return next_; }

 private:
  uint64_t next_;
  std::string contents_;
};

struct Bench {
  explicit Bench(uint64_t max_bytes, uint64_t newest = 0)
      : Bench(std::make_shared<SpoolBudget>(max_bytes, 1000), newest) {}
  explicit Bench(std::shared_ptr<SpoolBudget> budget, uint64_t newest = 0,
                 uint64_t max_memory_bytes = 64u << 20) {
    PartStoreOptions options;
    options.directory = dir.path();
    options.budget = std::move(budget);
    options.chunk_bytes = kBytes;
    options.max_memory_bytes = max_memory_bytes;
    options.newest_bytes = newest;
    options.free_bytes = [this] { return free_bytes.load(); };
    store = std::make_unique<PartStore>(options);
    store->AddTarget();
    store->AddTarget();
  }
  PartRead From(uint64_t ordinal) {
    PartRead read;
    read.request.part_id = 7;
    read.request.received.chunks = ordinal;
    if (ordinal > 0) {
      read.request.after = KeyAt(ordinal - 1);
    }
    read.part = &part;
    read.build = [this](const PartRequest& from,
                        const std::function<bool()>& cancelled,
                        const OnProgress&, ChunkSink* sink) {
      return factory.Build(from, cancelled, sink);
    };
    read.build_for_all = read.build;
    read.cancelled = [] { return false; };
    read.cancelled_in_wait = read.cancelled;
    return read;
  }
  // Reads the chunks from `ordinal` on. Adds to *by_itself the number of chunks
  // that were built directly into the sink, without the store.
  Status ReadAll(uint64_t ordinal, CheckingSink* lane, uint64_t* by_itself) {
    PartRead read = From(ordinal);
    read.build = [this, by_itself](const PartRequest& from,
                                   const std::function<bool()>& cancelled,
                                   const OnProgress&, ChunkSink* sink) {
      *by_itself += kChunks - from.received.chunks;
      return own.Build(from, cancelled, sink);
    };
    return store->Send(std::move(read), lane);
  }
  std::atomic<uint64_t> free_bytes{UINT64_MAX};  // above --min-free
  ScratchDir dir;
  Factory factory;
  Factory own;
  Part part;
  std::unique_ptr<PartStore> store;
};

TEST_CASE("Readers of one part share chunks that are built once",
          "[chunk][share]") {
  // Chunks are kept in files, in both, or in memory.
  Bench bench(100 * kBytes, GENERATE(0, kBytes / 10, 100 * kBytes));
  std::vector<std::thread> threads;
  std::atomic<uint64_t> wrong{0};
  std::atomic<uint64_t> by_itself{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      CheckingSink sink(0);
      uint64_t own = 0;
      if (!bench.ReadAll(0, &sink, &own).ok() || sink.next() != kChunks) {
        ++wrong;
      }
      by_itself += own;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  REQUIRE(wrong == 0);
  REQUIRE(by_itself == 0);
  REQUIRE(bench.factory.built == kChunks);
  REQUIRE(bench.store->sent() == 8 * kChunks);
  // A later reader gets the chunks from the files, even if it has some already.
  CheckingSink late(5);
  uint64_t own = 0;
  REQUIRE_OK(bench.ReadAll(5, &late, &own));
  REQUIRE(late.next() == kChunks);
  REQUIRE(bench.factory.built == kChunks);
  REQUIRE(bench.store->bytes() == kChunks * kBytes);
  REQUIRE(std::filesystem::is_empty(bench.dir.path()));
}

// A part of twelve keys. Four of them are a chunk of the store.
struct TwelveKeys {
  static std::string KeyAt(uint64_t n) { return {static_cast<char>('a' + n)}; }

  static Status Build(const PartRequest& from, ChunkSink* sink) {
    uint64_t key = from.after ? from.after->at(0) - 'a' + 1 : 0;
    Status status;
    for (uint64_t i = from.received.chunks; status.ok() && key < 12; ++i) {
      ChunkBegin begin;
      begin.ordinal = static_cast<uint32_t>(i);
      std::string keys;
      for (uint64_t n = 0; n < 4 && key < 12; ++n, ++key) {
        keys += KeyAt(key);
      }
      ChunkEnd end;
      end.ordinal = begin.ordinal;
      end.largest = KeyAt(key - 1);
      end.file_bytes = keys.size();
      status = sink->Begin(begin);
      if (status.ok()) status = sink->Append(keys);
      if (status.ok()) status = sink->End(end);
    }
    return status;
  }

  // Returns the keys that a target receives that has `chunks` chunks up to key
  // `after`. Calls `at_first`, if set, when the first chunk begins.
  static std::string Received(PartStore* store, uint64_t chunks,
                              std::optional<std::string> after,
                              std::function<void()> at_first = nullptr) {
    struct Keys : ChunkSink {
      Status Begin(const ChunkBegin&) override {
        if (at_first) std::exchange(at_first, nullptr)();
        return Status::OK();
      }
      Status Append(const Slice& data) override {
        keys.append(data.data(), data.size());
        return Status::OK();
      }
      Status End(const ChunkEnd&) override { return Status::OK(); }
      std::function<void()> at_first;
      std::string keys;
    } sink;
    sink.at_first = std::move(at_first);
    const Part part;
    PartRead read;
    read.part = &part;
    read.request.received.chunks = chunks;
    read.request.after = std::move(after);
    read.build = [](const PartRequest& from, const std::function<bool()>&,
                    const OnProgress&, ChunkSink* to) {
      return Build(from, to);
    };
    read.build_for_all = read.build;
    read.cancelled = [] { return false; };
    read.cancelled_in_wait = read.cancelled;
    const Status status = store->Send(read, &sink);
    return status.ok() ? sink.keys : status.ToString();
  }
};

// After a lost chunk, a target receives smaller chunks, and its chunks end at
// other keys than those of the store.
TEST_CASE("Targets whose chunks end at different keys each get a whole part",
          "[chunk][share]") {
  Bench bench(100 * kBytes);
  PartStore* const store = bench.store.get();
  REQUIRE(TwelveKeys::Received(store, 0, std::nullopt) == "abcdefghijkl");
  REQUIRE(store->sent() == 3);
  SECTION("as many chunks as the whole part has in the store") {
    REQUIRE(TwelveKeys::Received(store, 3, "c") == "defghijkl");
  }
  SECTION("one chunk less") {
    REQUIRE(TwelveKeys::Received(store, 2, "b") == "cdefghijkl");
  }
  SECTION("one chunk that another target may wait for") {
    const std::string whole =
        TwelveKeys::Received(store, 0, std::nullopt, [store] {
          REQUIRE(TwelveKeys::Received(store, 1, "l").empty());
        });
    REQUIRE(whole == "abcdefghijkl");
  }
}

TEST_CASE("The stores of a server share one budget of files and of bytes",
          "[chunk][share]") {
  const bool by_files = GENERATE(true, false);
  const auto budget = std::make_shared<SpoolBudget>(
      by_files ? 1000 * kBytes : 8 * kBytes, by_files ? 8 : 1000);
  auto greedy = std::make_unique<Bench>(budget);
  uint64_t own = 0;
  uint64_t most = 0;
  const auto read_all = [&](Bench* bench) {
    CheckingSink sink(0);
    sink.before_chunk = [&](uint64_t) {
      most = std::max(most, by_files ? budget->files() : budget->bytes());
    };
    REQUIRE_OK(bench->ReadAll(0, &sink, &own));
    REQUIRE(sink.next() == kChunks);
  };
  read_all(greedy.get());
  REQUIRE(greedy->store->files() == 8);
  // The first store has no readers now, so another store gets its budget.
  Bench other(budget);
  read_all(&other);
  REQUIRE(other.factory.built == kChunks);
  REQUIRE(own == 0);
  REQUIRE(other.store->files() >= 4);
  REQUIRE(most <= (by_files ? 8 : 8 * kBytes));
  REQUIRE(budget->files() == greedy->store->files() + other.store->files());
  REQUIRE(budget->bytes() == budget->files() * kBytes);
  greedy.reset();
  REQUIRE(budget->files() == other.store->files());
}

// Limits the size of files of this process while it exists.
class SmallFiles {
 public:
  explicit SmallFiles(uint64_t bytes) {
    old_action_ = signal(SIGXFSZ, SIG_IGN);
    REQUIRE(getrlimit(RLIMIT_FSIZE, &old_) == 0);
    const rlimit limit{bytes, old_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~SmallFiles() {
    setrlimit(RLIMIT_FSIZE, &old_);
    signal(SIGXFSZ, old_action_);
  }

 private:
  rlimit old_{};
  void (*old_action_)(int) = nullptr;
};

TEST_CASE("A chunk for which disk and memory have no room is abandoned",
          "[chunk][share]") {
  const bool fits = GENERATE(true, false);
  const auto budget = std::make_shared<SpoolBudget>(100 * kBytes, 1000);
  Bench bench(budget, 0, fits ? kBytes : kBytes / 2);
  const SmallFiles small(kBytes / 3);
  CheckingSink sink(0);
  uint64_t own = 0;
  if (fits) {
    REQUIRE_OK(bench.ReadAll(0, &sink, &own));
    REQUIRE(sink.next() == kChunks);
    return;
  }
  std::promise<void> begun;  // the reader has the chunk's first bytes
  sink.before_chunk = [&](uint64_t) { begun.set_value(); };
  PartRead read = bench.From(0);
  read.build_for_all = [&](const PartRequest& from, const std::function<bool()>&,
                   const OnProgress&, ChunkSink* chunk) {
    ChunkBegin begin;
    begin.part_id = from.part_id;
    Status status = chunk->Begin(begin);
    for (int third = 0; status.ok() && third < 3; ++third) {
      if (third == 2) {
        begun.get_future().wait();
      }
      status = chunk->Append(ContentsAt(0).substr(0, kBytes / 3));
    }
    return status;
  };
  REQUIRE(EndStateOf(bench.store->Send(read, &sink)) == EndState::kDeadPeer);
  // The target requests the chunk again, and the reader builds it itself.
  CheckingSink again(0);
  REQUIRE_OK(bench.ReadAll(0, &again, &own));
  REQUIRE(again.next() == kChunks);
  REQUIRE(own == kChunks);
  REQUIRE(budget->files() == 0);
  REQUIRE(budget->bytes() == 0);
}

TEST_CASE("No reader waits for a reader that has stopped", "[chunk][share]") {
  Bench bench(6 * kBytes);
  std::promise<void> stopped;
  std::promise<void> resume;
  bool slow_is_right = false;
  std::thread slow([&] {
    CheckingSink sink(0);
    sink.before_chunk = [&](uint64_t ordinal) {
      if (ordinal == 1) {
        stopped.set_value();
        resume.get_future().wait();
      }
    };
    uint64_t own = 0;
    slow_is_right =
        bench.ReadAll(0, &sink, &own).ok() && sink.next() == kChunks;
  });
  stopped.get_future().wait();
  CheckingSink fast(0);
  uint64_t own = 0;
  REQUIRE_OK(bench.ReadAll(0, &fast, &own));
  REQUIRE(fast.next() == kChunks);
  REQUIRE(bench.store->bytes() <= 6 * kBytes);
  resume.set_value();
  slow.join();
  REQUIRE(slow_is_right);
  // chunks for the slow one were built again
  REQUIRE(bench.factory.built > kChunks);
}

TEST_CASE("A reader checks for cancellation after each wait for its builder",
          "[chunk][share]") {
  Bench bench(kChunks * kBytes);
  std::atomic<int> asked{0};
  std::atomic<int> when_built{0};
  PartRead read = bench.From(0);
  read.cancelled_in_wait = [&asked] {
    ++asked;
    return false;
  };
  read.build_for_all = [&](const PartRequest& from,
                           const std::function<bool()>& cancelled,
                           const OnProgress&, ChunkSink* sink) {
    while (asked == 0) {
      std::this_thread::yield();  // until the reader waits
    }
    when_built = asked.load();
    return bench.factory.Build(from, cancelled, sink);
  };
  CheckingSink lane(0);
  int when_sent = 0;
  lane.before_chunk = [&](uint64_t ordinal) {
    when_sent = ordinal == 0 ? asked.load() : when_sent;
  };
  REQUIRE_OK(bench.store->Send(std::move(read), &lane));
  REQUIRE(when_sent > when_built);
}

TEST_CASE("A builder that fails fails all readers of its chunk",
          "[chunk][share]") {
  Bench bench(100 * kBytes);
  bench.factory.fails_at = 4;
  CheckingSink sink(0);
  uint64_t own = 0;
  const Status status = bench.ReadAll(0, &sink, &own);
  REQUIRE(EndStateOf(status) == EndState::kSourceError);
  REQUIRE(sink.next() == 4);
  bench.factory.fails_at = kChunks;
  CheckingSink again(4);
  REQUIRE_OK(bench.ReadAll(4, &again, &own));
  REQUIRE(again.next() == kChunks);
}

TEST_CASE("A reader of a chunk whose builder failed ends while another builder "
          "runs",
          "[chunk][share]") {
  Bench bench(100 * kBytes);
  std::promise<void> reads;       // the first reader has bytes
  std::promise<void> runs;        // the second builder runs
  std::promise<void> first_ended; // the first reader has ended
  const std::shared_future<void> ended = first_ended.get_future().share();
  std::atomic<int> builders{0};
  const auto build = [&](const PartRequest& from,
                         const std::function<bool()>& cancelled,
                         const OnProgress&, ChunkSink* sink) {
    if (++builders == 1) {
      ChunkBegin begin;
      begin.part_id = from.part_id;
      Status status = sink->Begin(begin);
      if (status.ok()) status = sink->Append(ContentsAt(0).substr(0, 1000));
      reads.get_future().wait();
      return status.ok() ? MakeStatus(EndState::kSourceError, "a test said so")
                         : status;
    }
    runs.set_value();
    ended.wait();
    return bench.factory.Build(from, cancelled, sink);
  };
  class BlockedSink : public CheckingSink {
   public:
    explicit BlockedSink(std::function<void()> retained)
        : CheckingSink(0), retained_(std::move(retained)) {}
    Status Append(const Slice& data) override {
      retained_();
      return CheckingSink::Append(data);
    }

   private:
    const std::function<void()> retained_;
  };
  // The first reader continues only once the second builder runs.
  BlockedSink first([&] {
    reads.set_value();
    runs.get_future().wait();
  });
  std::atomic<bool> give_up{false};
  std::promise<Status> first_status;
  std::thread first_reader([&] {
    PartRead read = bench.From(0);
    read.build_for_all = build;
    read.cancelled_in_wait = [&give_up] { return give_up.load(); };
    first_status.set_value(bench.store->Send(read, &first));
  });
  CheckingSink second(0);
  Status second_status;
  std::thread second_reader([&] {
    do {  // fails until the first builder has ended
      second = CheckingSink(0);
      PartRead read = bench.From(0);
      read.build_for_all = build;
      second_status = bench.store->Send(read, &second);
    } while (!second_status.ok());
  });
  std::future<Status> status = first_status.get_future();
  const bool ends =
      status.wait_for(std::chrono::seconds(60)) == std::future_status::ready;
  give_up = true;
  first_ended.set_value();
  first_reader.join();
  second_reader.join();
  REQUIRE(ends);
  REQUIRE(EndStateOf(status.get()) == EndState::kSourceError);
  REQUIRE(second.next() == kChunks);
  REQUIRE(builders == 2);
}

TEST_CASE(
    "A reader continues from memory in the middle of a read from a file",
    "[chunk][share]") {
  // The chunk has two pieces, and memory keeps only the second one. A read of
  // the file ends in the middle of it.
  constexpr size_t kPiece = 700'000;
  std::string contents;
  while (contents.size() < 2 * kPiece) {
    contents += std::to_string(contents.size()) + ",";
  }
  contents.resize(2 * kPiece);
  Bench bench(100 * kBytes, /*newest_bytes=*/kPiece + 100);
  std::promise<void> appended;
  std::promise<void> received;  // the chunk ends only then
  PartRead read = bench.From(0);
  read.build_for_all = [&](const PartRequest& from, const std::function<bool()>&,
                   const OnProgress&, ChunkSink* sink) {
    ChunkBegin begin;
    begin.part_id = from.part_id;
    Status status = sink->Begin(begin);
    if (status.ok()) status = sink->Append(Slice(contents.data(), kPiece));
    if (status.ok()) {
      status = sink->Append(Slice(contents.data() + kPiece, kPiece));
    }
    appended.set_value();
    received.get_future().wait();
    ChunkEnd end;
    end.part_id = from.part_id;
    end.file_bytes = contents.size();
    return status.ok() ? sink->End(end) : status;
  };
  class Collecting : public ChunkSink {
   public:
    Collecting(std::future<void> appended, size_t size,
               std::promise<void>* received)
        : appended_(std::move(appended)), size_(size), received_(received) {}
    Status Begin(const ChunkBegin&) override {
      appended_.wait();
      return Status::OK();
    }
    Status Append(const Slice& data) override {
      const bool was_less = contents.size() < size_;
      contents.append(data.data(), data.size());
      if (was_less && contents.size() >= size_) {
        received_->set_value();
      }
      return Status::OK();
    }
    Status End(const ChunkEnd&) override { return Status::OK(); }
    std::string contents;

   private:
    const std::future<void> appended_;
    const size_t size_;
    std::promise<void>* const received_;
  } sink(appended.get_future(), contents.size(), &received);
  REQUIRE_OK(bench.store->Send(read, &sink));
  REQUIRE((sink.contents == contents));
}

TEST_CASE("A chunk for a single target, or of a special size, is not spooled",
          "[chunk][share]") {
  Bench bench(100 * kBytes);
  PartRead read = bench.From(0);
  SECTION("there is no other reader") { bench.store->RemoveTarget(); }
  SECTION("it is a delta") { read.build_for_all = nullptr; }
  SECTION("the lane requested smaller chunks") {
    read.request.chunk_bytes = kBytes / 4;
  }
  CheckingSink sink(0);
  REQUIRE_OK(bench.store->Send(read, &sink));
  REQUIRE(sink.next() == kChunks);
  REQUIRE(bench.store->built() == 0);
  REQUIRE(bench.store->bytes() == 0);
}

TEST_CASE("A lane that builds by itself shares from its next chunk on when a "
          "second target arrives",
          "[chunk][share]") {
  Bench bench(100 * kBytes);
  bench.store->RemoveTarget();
  CheckingSink sink(0);
  sink.before_chunk = [&bench](uint64_t ordinal) {
    if (ordinal == 3) {
      bench.store->AddTarget();
    }
  };
  uint64_t own = 0;
  REQUIRE_OK(bench.ReadAll(0, &sink, &own));
  REQUIRE(sink.next() == kChunks);
  REQUIRE(bench.own.built == 4);
  REQUIRE(bench.factory.built == kChunks - 4);
  // The second target gets the chunks that were built for the first one.
  CheckingSink second(4);
  REQUIRE_OK(bench.ReadAll(4, &second, &own));
  REQUIRE(bench.factory.built == kChunks - 4);
}

TEST_CASE("If a store has no room, readers build by themselves",
          "[chunk][share]") {
  Bench bench(kBytes / 2);
  CheckingSink sink(0);
  uint64_t own = 0;
  REQUIRE_OK(bench.ReadAll(0, &sink, &own));
  REQUIRE(sink.next() == kChunks);
  REQUIRE(own == kChunks);
  REQUIRE(bench.store->bytes() == 0);
}

TEST_CASE("A store leaves --min-free of the disk free", "[chunk][share]") {
  Bench bench(100 * kBytes);
  bench.free_bytes = 2 * kBytes - 1;
  CheckingSink poor(0);
  uint64_t own = 0;
  REQUIRE_OK(bench.ReadAll(0, &poor, &own));
  REQUIRE(poor.next() == kChunks);
  REQUIRE(own == kChunks);
  REQUIRE(bench.factory.built == 0);
  REQUIRE(bench.store->bytes() == 0);
  // With enough space again, the store keeps chunks.
  bench.free_bytes = 2 * kBytes;
  CheckingSink rich(0);
  own = 0;
  REQUIRE_OK(bench.ReadAll(0, &rich, &own));
  REQUIRE(rich.next() == kChunks);
  REQUIRE(own == 0);
  REQUIRE(bench.factory.built == kChunks);
  REQUIRE(bench.store->bytes() == kChunks * kBytes);
}

TEST_CASE("The bytes above --min-free are the free bytes minus that share",
          "[chunk][share]") {
  const ScratchDir dir;
  REQUIRE(FreeBytesAbove(dir.path()) > 0);
  REQUIRE(FreeBytesAbove(dir.path(), 100) == 0);
  REQUIRE(FreeBytesAbove(dir.path(), 1) < FreeBytesAbove(dir.path()));
  REQUIRE(FreeBytesAbove(dir / "absent", 100) == UINT64_MAX);
}

TEST_CASE("Building stops when its last reader leaves", "[chunk][share]") {
  Bench bench(100 * kBytes);
  CheckingSink sink(0);
  PartRead read = bench.From(0);
  class Refusing : public CheckingSink {
   public:
    Refusing() : CheckingSink(0) {}
    Status End(const ChunkEnd&) override { return Status::IOError("gone"); }
  } refusing;
  REQUIRE(bench.store->Send(read, &refusing).IsIOError());
  const uint64_t spooled = bench.store->bytes();
  bench.store.reset();
  REQUIRE(bench.factory.built < kChunks);
  REQUIRE(spooled > 0);
}

}  // namespace
}  // namespace sstferry::part_store_test
