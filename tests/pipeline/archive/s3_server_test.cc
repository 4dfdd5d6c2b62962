// Tests the store for buckets with servers of other projects. Only
// tests/archive/run runs these tests: it starts the servers and passes their
// addresses.
#include <cstdlib>
#include <ctime>

#include "pipeline/archive/check.h"
#include "pipeline/archive/init.h"
#include "pipeline/archive/push.h"
#include "pipeline/archive/s3_store.h"
#include "pipeline/base/random_id.h"
#include "tests/pipeline/archive/fake_set_source.h"
#include "tests/pipeline/archive/store_contract.h"
#include "tests/support/catch.h"

namespace sstferry::s3_server_test {
namespace {

std::unique_ptr<ObjectStore> OpenServer(const std::string& prefix,
                                        UnixSeconds clock_ahead = 0) {
  StoreOptions options;
  const char* endpoint = std::getenv("SSTFERRY_TEST_S3");
  REQUIRE(endpoint != nullptr);
  options.endpoint = endpoint;
  if (const char* ca_file = std::getenv("SSTFERRY_TEST_S3_CA")) {
    options.ca_file = ca_file;
  }
  options.where.bucket = "sstferry-test";
  options.where.prefix = prefix + "/" + ToHex(RandomId());
  options.timeouts.retry = std::chrono::milliseconds(10'000);
  options.connections = 32;
  CredentialWorld world;
  world.now = [clock_ahead] {
    return static_cast<UnixSeconds>(std::time(nullptr)) + clock_ahead;
  };
  std::unique_ptr<ObjectStore> store;
  const rocksdb::Status made = MakeS3Store(options, world, &store);
  INFO(made.ToString());
  REQUIRE(made.ok());
  return store;
}

}  // namespace

TEST_CASE("A real server keeps the contract of stores", "[.s3]") {
  CheckStoreContract(OpenServer("contract/of").get(),
                     std::getenv("SSTFERRY_TEST_S3_TAKES_ALL") == nullptr);
}

TEST_CASE("A server with an untrusted certificate is denied at once",
          "[.s3tls]") {
  ObjectInfo info;
  CHECK(OpenServer("x")->Head("a", &info).code == StoreCode::kDenied);
}

TEST_CASE("A real server lets one of 32 clients win", "[.s3]") {
  const auto store = OpenServer("race");
  const std::vector<ObjectStore*> clients(32, store.get());
  for (int round = 0; round < 10; ++round) {
    CHECK(RaceToPut(clients, "r/" + std::to_string(round)) == 1);
  }
}

// For Adobe's S3Mock: when clients race to put an object, two of them win.
TEST_CASE("Init finds a real server with two winners", "[.s3mock]") {
  const auto store = OpenServer("winners");
  ArchiveHead head;
  std::vector<std::string> notes;
  const rocksdb::Status made = InitArchive(store.get(), {}, &head, &notes);
  INFO(made.ToString());
  REQUIRE(made.ok());
  CHECK_FALSE(head.has_if_absent);
  const Archive archive(store.get());
  for (int night = 0; night < 5; ++night) {
    FakeSetSource source({night, night + 1}, "night " + std::to_string(night));
    PushSummary summary;
    PushOptions push;
    REQUIRE(PushSet(archive, &source, push, &summary).ok());
    CHECK(summary.reused_files == (night == 0 ? 0 : 1));
  }
  CheckOptions check;
  check.read_percent = 100;
  CheckSummary checked;
  const rocksdb::Status whole = CheckArchive(archive, check, &checked);
  INFO(whole.ToString());
  CHECK(whole.ok());
  CHECK(checked.sets.size() == 5);
}

TEST_CASE("A real server refuses a signature that is 16 minutes old",
          "[.s3][signature]") {
  const auto store = OpenServer("time");
  CHECK(PutBytes(store.get(), "a", "x", false, store->SigningTime() - 14 * 60)
            .ok());
  const StoreResult late =
      PutBytes(store.get(), "b", "x", false, store->SigningTime() - 16 * 60);
  INFO(late.status.ToString());
  CHECK(late.code == StoreCode::kSignatureRefused);

  const auto wrong = OpenServer("time", 20 * 60);
  const StoreResult skewed = PutBytes(wrong.get(), "c", "x", false);
  CHECK(skewed.code == StoreCode::kSignatureRefused);
  CHECK(skewed.status.ToString().find("clock is ") != std::string::npos);
}

}  // namespace sstferry::s3_server_test
