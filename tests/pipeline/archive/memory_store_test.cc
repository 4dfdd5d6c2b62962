// The store in memory that model tests use keeps the contract of stores. It
// returns wrong answers only where a test asks for them.
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "format/end_state.h"
#include "pipeline/archive/archive.h"
#include "tests/pipeline/archive/store_contract.h"
#include "tests/support/catch.h"
#include "tests/support/memory_store.h"

namespace sstferry::memory_store_test {

TEST_CASE("A store in memory keeps the contract of stores", "[archive]") {
  MemoryStore server;
  CheckStoreContract(server.NewClient().get());
  MemoryStore of_small_pages({.max_page = 7});
  CheckStoreContract(of_small_pages.NewClient().get());
}

TEST_CASE("A key of a store cannot lead out of it", "[archive]") {
  for (const char* key : {"a", "a/b", "files/0a/b-1.c_D", "a.b", "a-", "-a"}) {
    CHECK(IsStoreKey(key));
  }
  for (const char* key :
       {"", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/.b", ".a",
        "a b", "a+b", "a=b", "a%b", "a\\b", "caf\xc3\xa9", "a\nb"}) {
    CHECK_FALSE(IsStoreKey(key));
  }
  CHECK_FALSE(IsStoreKey(rocksdb::Slice("a\0b", 3)));
  CHECK(IsStoreKey(std::string(kMaxStoreKeyBytes, 'a')));
  CHECK_FALSE(IsStoreKey(std::string(kMaxStoreKeyBytes + 1, 'a')));
}

TEST_CASE("A test stops, delays and deceives a client in memory",
          "[archive]") {
  MemoryStore server;
  CallFate fate = CallFate::kArrives;
  size_t stale_changes = 0;
  UnixSeconds on_the_way = 0;
  const auto client = server.NewClient([&](StoreCall* call) {
    call->stale_changes = stale_changes;
    server.Advance(on_the_way);
    return fate;
  });
  REQUIRE(PutBytes(client.get(), "a", "1", true).ok());

  fate = CallFate::kNeverArrives;
  CHECK(PutBytes(client.get(), "b", "1", true).code ==
        StoreCode::kUnreachable);
  CHECK_FALSE(server.Has("b"));
  fate = CallFate::kAnswerLost;
  CHECK(PutBytes(client.get(), "b", "1", true).code ==
        StoreCode::kUnreachable);
  CHECK(server.Has("b"));
  fate = CallFate::kArrives;

  ListPage page;
  stale_changes = 1;
  REQUIRE(client->List("", "", &page).ok());
  CHECK(page.objects.size() == 1);
  stale_changes = 0;
  REQUIRE(client->List("", "", &page).ok());
  CHECK(page.objects.size() == 2);

  on_the_way = 901;
  CHECK(PutBytes(client.get(), "late", "1", true).code ==
        StoreCode::kSignatureRefused);
  on_the_way = 0;
  const UnixSeconds before = client->SigningTime();
  server.Advance(901);
  CHECK(PutBytes(client.get(), "late", "1", true, before).code ==
        StoreCode::kSignatureRefused);
  server.rules().checks_signatures = false;
  CHECK(PutBytes(client.get(), "late", "1", true, before).ok());
  server.rules().honours_if_absent = false;
  CHECK(PutBytes(client.get(), "late", "2", true).ok());
  CHECK(server.Objects().at("late") == "2");
}

TEST_CASE("The archives below a prefix are found, but not their objects",
          "[archive]") {
  MemoryStore server({.max_page = 4});
  size_t lists = 0;
  const auto client = server.NewClient([&lists](StoreCall* call) {
    lists += call->kind == StoreCallKind::kList ? 1 : 0;
    return CallFate::kArrives;
  });
  const std::set<std::string> archives = {"a", "a-b", "deep/er/c", "z"};
  for (const std::string& name : archives) {
    REQUIRE(PutBytes(client.get(), name + "/ARCHIVE", "1", true).ok());
    for (int i = 0; i < 100; ++i) {
      const std::string key = name + "/files/" + std::to_string(i);
      REQUIRE(PutBytes(client.get(), key, "1", true).ok());
    }
  }
  std::set<std::string> found;
  REQUIRE_OK(FindArchives(client.get(), &found));
  REQUIRE(found == archives);
  REQUIRE(lists <= 2 * archives.size());
}

// A store whose list does not end.
class EndlessStore : public ObjectStore {
 public:
  // `keys` returns the keys of a page.
  explicit EndlessStore(
      std::function<std::vector<std::string>(uint64_t page)> keys)
      : keys_(std::move(keys)) {}

  StoreResult List(const std::string&, const std::string&,
                   ListPage* page) override {
    for (std::string& key : keys_(++pages_)) {
      page->objects.push_back({std::move(key), 1, 0});
    }
    page->more = true;
    page->next = "p" + std::to_string(1'000'000'000 + pages_);
    return {};
  }
  void Cancel() override {}
  const std::string& place() const override { return place_; }
  StoreResult Now(UnixSeconds*) override { return {}; }
  UnixSeconds SigningTime() const override { return 0; }
  StoreResult Put(const PutRequest&) override { return {}; }
  StoreResult GetUnproven(const GetRequest&, const ObjectSink&) override {
    return {};
  }
  StoreResult HeadUnproven(const std::string&, ObjectInfo*) override {
    return {};
  }
  StoreResult Delete(const std::vector<std::string>&) override { return {}; }
  StoreResult RemoveUploads(UnixSeconds,
                            const std::function<bool(const std::string&)>&,
                            uint64_t*) override {
    return {};
  }

  uint64_t pages() const { return pages_; }

 private:
  const std::function<std::vector<std::string>(uint64_t)> keys_;
  const std::string place_ = "s3://endless";
  uint64_t pages_ = 0;
};

TEST_CASE("A list that does not end keeps nobody busy, and fills no memory",
          "[archive]") {
  std::set<std::string> found;
  SECTION("empty pages") {
    EndlessStore store([](uint64_t) { return std::vector<std::string>(); });
    std::vector<ObjectInfo> objects;
    REQUIRE(ListAll(&store, "files/", 1000, &objects).code ==
            StoreCode::kDamaged);
    REQUIRE(store.pages() == 1002);
    REQUIRE(EndStateOf(FindArchives(&store, &found)) == EndState::kCorrupt);
  }
  SECTION("objects") {
    EndlessStore store([](uint64_t page) {
      return std::vector<std::string>(
          kMaxStorePage, "p" + std::to_string(1'000'000'000 + page));
    });
    REQUIRE(EndStateOf(FindArchives(&store, &found)) == EndState::kCorrupt);
    REQUIRE(store.pages() <= kMaxArchiveObjects / kMaxStorePage + 1);
  }
  SECTION("archives") {
    EndlessStore store([](uint64_t page) {
      std::vector<std::string> keys;
      for (uint32_t i = 0; i < kMaxStorePage; ++i) {
        keys.push_back("p" + std::to_string(1'000'000'000 + page) +
                       std::string(900, 'x') + std::to_string(1000 + i) +
                       "/ARCHIVE");
      }
      return keys;
    });
    REQUIRE(EndStateOf(FindArchives(&store, &found)) == EndState::kCorrupt);
    REQUIRE(store.pages() < 200);
  }
}

}  // namespace sstferry::memory_store_test
