// Restores from a bucket whose server returns wrong answers. Each restore
// returns a set that was pushed, or ends with an error that says why. A restore
// never writes to the bucket.
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "format/end_state.h"
#include "pipeline/archive/init.h"
#include "pipeline/archive/push.h"
#include "pipeline/archive/restore.h"
#include "pipeline/archive/s3_store.h"
#include "pipeline/archive/snapshot_source.h"
#include "tests/support/catch.h"
#include "tests/support/fake_s3.h"
#include "tests/support/restored.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/test_db.h"

namespace sstferry::test::lying_restore_test {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;
using std::chrono::milliseconds;

constexpr char kFirstSource[] = "first";
constexpr char kSecondSource[] = "second";

CredentialWorld Credentials() {
  CredentialWorld world;
  world.variable = [](const std::string& name) -> std::optional<std::string> {
    return name == "AWS_ACCESS_KEY_ID" || name == "AWS_SECRET_ACCESS_KEY"
               ? std::optional<std::string>("secret")
               : std::nullopt;
  };
  return world;
}

std::unique_ptr<ObjectStore> Open(const FakeS3& server, milliseconds retry) {
  StoreOptions options;
  options.endpoint = server.url();
  options.where.bucket = "b";
  options.where.prefix = "p";
  options.timeouts.retry = retry;
  options.timeouts.peer = milliseconds(2000);
  std::unique_ptr<ObjectStore> store;
  REQUIRE_OK(MakeS3Store(options, Credentials(), &store));
  return store;
}

// A bucket with two sets of a database.
class Bucket {
 public:
  Bucket() {
    FakeS3 server;
    const std::unique_ptr<ObjectStore> store =
        Open(server, milliseconds(10'000));
    ArchiveHead head;
    std::vector<std::string> notes;
    REQUIRE_OK(InitArchive(store.get(), {}, &head, &notes));
    {
      OpenDb db(dir / kFirstSource, OneFamily(Quiet()));
      for (int table = 0; table < 3; ++table) {
        for (int i = 0; i < 100; ++i) {
          db.Put(NumberedKey(1000 * table + i), RandomBytes(300, i));
        }
        db.Flush();
      }
      db.Put("in", "the WAL");
    }
    const SetName first = Push(store.get(), kFirstSource);
    fs::copy(dir / kFirstSource, dir / kSecondSource);
    {
      OpenDb db(dir / kSecondSource, OneFamily(Quiet()));
      db.Put(NumberedKey(1), "changed");
      db.Flush();
    }
    // Waits for the next second of the store's clock, so that the names differ.
    SetName second = first;
    while (second.seconds == first.seconds) {
      REQUIRE_OK(Archive(store.get()).Now(&second.seconds));
    }
    second = Push(store.get(), kSecondSource);
    sources[SetNameText(first)] = kFirstSource;
    sources[SetNameText(second)] = kSecondSource;
    objects = server.Objects();
  }

  void FillServer(FakeS3* server) const {
    for (const auto& [path, bytes] : objects) {
      server->Set(path, bytes);
    }
  }

  // Restores the newest set.
  Ferried Restore(const FakeS3& server, milliseconds retry) const {
    PullOptions pull;
    pull.target_dir = dir / "target";
    pull.lanes = 2;
    pull.timeouts = TriedOnce(Timeouts());
    pull.timeouts.retry = milliseconds(250);
    // Without this, a short `retry` would also limit the first handshake.
    pull.timeouts.first_answer = milliseconds(60'000);
    pull.restart = true;
    return RestoreThrough(MakeArchiveOriginOf(Open(server, retry), "latest"),
                          pull);
  }

  // Requires that TARGET_DIR equals the set that the restore named, and removes
  // the directory.
  void RequireRight(const Ferried& restored) const {
    const std::string* source = nullptr;
    for (const auto& [set, its] : sources) {
      source = restored.notes_mention(set) ? &its : source;
    }
    REQUIRE(source != nullptr);
    ExpectSameEntries(dir / *source, dir / "target");
    fs::remove_all(dir / "target");
  }

  ScratchDir dir;
  std::map<std::string, std::string> objects;  // by path
  std::map<std::string, std::string> sources;  // by name of a set

 private:
  SetName Push(ObjectStore* store, const char* name) const {
    SnapshotOptions options;
    options.database_dir = dir / name;
    std::unique_ptr<SnapshotSource> source;
    REQUIRE_OK(SnapshotSource::Take(options, &source));
    PushSummary summary;
    REQUIRE_OK(PushSet(Archive(store), source.get(), PushOptions(), &summary));
    return summary.name;
  }
};

// A way to change an answer.
enum class Lie {
  kCutShort,       // fewer bytes than it announces
  kSmaller,        // fewer bytes, with the matching length
  kRepeated,       // the bytes twice
  kErrorIn200,     // 200 with the body of an error
  kOtherRange,     // bytes of another range, labeled as the requested one
  kWholeObject,    // 200 with the whole object
  kWrongRange,     // labels the bytes as another range
  kFlipped,        // a flipped bit
  kEmpty,
  kClosed,         // no answer at all
  kStorm,          // 503
  kGone,           // 404
  kStaleList,      // a list without its newest entries
  kLies
};

struct Liar {
  Lie lie;
  std::string where;  // part of the path, or of the prefix of a list
  uint64_t every;     // every n-th such answer; 0: only the first
  std::atomic<uint64_t> seen{0};
  uint32_t random;
  const Bucket* bucket;

  void Change(const FakeRequest& request, FakeAnswer* answer) {
    const bool is_list = request.query.count("list-type") != 0;
    const std::string what =
        is_list ? request.query.at("prefix") : request.path;
    if (what.find(where) == std::string::npos ||
        (lie == Lie::kStaleList) != is_list) {
      return;
    }
    const uint64_t number = seen++;
    if (every == 0 ? number > 0 : number % every != 0) {
      return;
    }
    std::string& body = answer->body;
    const size_t at = body.empty() ? 0 : random % body.size();
    switch (lie) {
      case Lie::kCutShort:
        answer->content_length = std::to_string(body.size());
        answer->close_after = at;
        break;
      case Lie::kSmaller:
        body.resize(at);
        break;
      case Lie::kRepeated:
        body += body;
        break;
      case Lie::kErrorIn200:
        *answer = FakeError(200, "InternalError");
        break;
      case Lie::kOtherRange: {
        const std::string& whole = bucket->objects.at(request.path);
        const std::string turned =
            whole.substr(random % (whole.size() + 1)) + whole;
        body = turned.substr(0, body.size());
        break;
      }
      case Lie::kWholeObject:
        answer->status = 200;
        answer->headers.erase("Content-Range");
        body = bucket->objects.at(request.path);
        break;
      case Lie::kWrongRange:
        answer->status = 206;
        answer->headers["Content-Range"] =
            "bytes 7-" + std::to_string(6 + body.size()) + "/99999999";
        break;
      case Lie::kFlipped:
        if (!body.empty()) {
          body[at] = static_cast<char>(body[at] ^ (1 << random % 8));
        }
        break;
      case Lie::kEmpty:
        body.clear();
        break;
      case Lie::kClosed:
        answer->close_after = 0;
        break;
      case Lie::kStorm:
        *answer = FakeError(503, "SlowDown");
        break;
      case Lie::kGone:
        *answer = FakeError(404, "NoSuchKey");
        break;
      case Lie::kStaleList: {
        // Removes the last entries of the list, which is ordered by key.
        for (uint32_t i = 0; i <= random % 3; ++i) {
          const size_t entry = body.rfind("<Contents>");
          const size_t end = body.rfind("</ListBucketResult>");
          if (entry != std::string::npos) {
            body.erase(entry, end - entry);
          }
        }
        break;
      }
      case Lie::kLies:
        break;
    }
  }
};

}  // namespace

TEST_CASE("A restore from a store that lies is right or fails with a reason, "
          "and writes nothing to the store",
          "[archive]") {
  const Bucket bucket;
  const char* const asked = std::getenv("SSTFERRY_LIES");
  const int lies = asked == nullptr ? 39 : std::atoi(asked);
  int right = 0;
  for (int i = 0; i < lies; ++i) {
    std::mt19937 random(static_cast<uint32_t>(i + 1));
    const char* const places[] = {"/files/", "/parts/", "/sets/", "/done/",
                                  "ARCHIVE", "/files/", "p/"};
    Liar liar{.lie = static_cast<Lie>(i % static_cast<int>(Lie::kLies)),
              .where = places[random() % std::size(places)],
              .every = random() % 3,
              .random = static_cast<uint32_t>(random()),
              .bucket = &bucket};
    INFO(i << ": lie " << static_cast<int>(liar.lie)
                        << " of " << liar.where << " every "
                        << liar.every);
    std::atomic<int> writes{0};
    FakeS3 server(
        [&writes](const FakeRequest& request) -> std::optional<FakeAnswer> {
          writes += request.method != "GET" && request.method != "HEAD" ? 1 : 0;
          return std::nullopt;
        },
        [&liar](const FakeRequest& request, FakeAnswer* answer) {
          liar.Change(request, answer);
        });
    bucket.FillServer(&server);
    const Ferried restored = bucket.Restore(server, milliseconds(200));
    INFO(restored.message());
    REQUIRE(writes == 0);
    REQUIRE(server.Objects() == bucket.objects);
    REQUIRE(fs::exists(bucket.dir / "target") == restored.status.ok());
    if (restored.status.ok()) {
      bucket.RequireRight(restored);
      ++right;
      continue;
    }
    const EndState state = restored.state();
    REQUIRE((state == EndState::kCorrupt || state == EndState::kDeadPeer ||
             state == EndState::kRefused || state == EndState::kSnapshotGone ||
             state == EndState::kBusy || state == EndState::kIncompatible));
    REQUIRE_FALSE(restored.message().empty());
  }
  REQUIRE(right > lies / 10);
  // Now the server answers correctly.
  FakeS3 server;
  bucket.FillServer(&server);
  const Ferried restored = bucket.Restore(server, milliseconds(200));
  REQUIRE_OK(restored.status);
  bucket.RequireRight(restored);
}

TEST_CASE("A restore goes on if the store once denies an object that it has, "
          "or a proxy has no route for a moment",
          "[archive]") {
  const Bucket bucket;
  const bool is_store = GENERATE(true, false);
  std::atomic<int> left{2};
  FakeS3 server(nullptr, [&](const FakeRequest& request, FakeAnswer* answer) {
    if (request.path.find("/files/") != std::string::npos && left-- > 0) {
      *answer = FakeError(404, "NoSuchKey");
      answer->body = is_store ? answer->body : "404 page not found\n";
    }
  });
  bucket.FillServer(&server);
  const Ferried restored = bucket.Restore(server, milliseconds(2'000));
  REQUIRE_OK(restored.status);
  REQUIRE(left < 0);
  bucket.RequireRight(restored);
}

}  // namespace sstferry::test::lying_restore_test
