// The store in memory that model tests use keeps the contract of stores. It
// returns wrong answers only where a test asks for them.
#include <set>
#include <string>

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

}  // namespace sstferry::memory_store_test
