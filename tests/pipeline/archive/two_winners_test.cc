// An archive in a bucket whose conditional put can have two winners, like that
// of Adobe's S3Mock when many clients put one object at once.
#include <atomic>
#include <map>
#include <mutex>

#include "pipeline/archive/check.h"
#include "pipeline/archive/init.h"
#include "pipeline/archive/prune.h"
#include "pipeline/archive/push.h"
#include "pipeline/archive/s3_store.h"
#include "tests/pipeline/archive/fake_set_source.h"
#include "tests/support/catch.h"
#include "tests/support/fake_s3.h"

namespace sstferry::two_winners_test {
namespace {

// Answers the first two clients of an object that they created it, and all
// others that it exists.
class TwoWinners {
 public:
  std::optional<FakeAnswer> Before(const FakeRequest& request) {
    const auto condition = request.headers.find("if-none-match");
    if (request.method != "PUT" || condition == request.headers.end()) {
      return std::nullopt;
    }
    const std::lock_guard<std::mutex> lock(mu_);
    const int puts = ++puts_[request.path];
    if (puts > 2) {
      return FakeError(412, "PreconditionFailed");
    }
    if (puts == 2) {
      second_winners_++;
      FakeAnswer won;
      won.headers["ETag"] = "\"second\"";
      return won;
    }
    return std::nullopt;
  }
  uint64_t second_winners() const { return second_winners_; }

 private:
  std::mutex mu_;
  std::map<std::string, int> puts_;  // under mu_
  std::atomic<uint64_t> second_winners_{0};
};

TEST_CASE("Init detects a store with two winners, and an archive in it works",
          "[archive]") {
  TwoWinners rule;
  FakeS3 server([&rule](const FakeRequest& request) {
    return rule.Before(request);
  });
  StoreOptions options;
  options.endpoint = server.url();
  options.where.bucket = "b";
  options.connections = 32;
  CredentialWorld world;
  world.variable = [](const std::string& name) -> std::optional<std::string> {
    return name == "AWS_ACCESS_KEY_ID"       ? std::optional("user")
           : name == "AWS_SECRET_ACCESS_KEY" ? std::optional("secret")
                                             : std::nullopt;
  };
  std::unique_ptr<ObjectStore> store;
  REQUIRE_OK(MakeS3Store(options, world, &store));
  ArchiveHead head;
  std::vector<std::string> notes;
  REQUIRE_OK(InitArchive(store.get(), {}, &head, &notes));
  REQUIRE_FALSE(head.has_if_absent);
  REQUIRE(rule.second_winners() == 1);  // Init needed no other race
  REQUIRE(notes.size() == 2);
  REQUIRE(notes[0].find("not support 'put if absent'") != std::string::npos);

  const Archive archive(store.get());
  PushSummary summary;
  for (int night = 0; night < 5; ++night) {
    FakeSetSource source({night, night + 1}, "night " + std::to_string(night));
    PushOptions push;
    push.lanes = 3;
    REQUIRE_OK(PushSet(archive, &source, push, &summary));
    REQUIRE(summary.reused_files == (night == 0 ? 0 : 1));
  }
  // After Init, no call depends on a condition.
  REQUIRE(rule.second_winners() == 1);
  PruneOptions prune;
  prune.retention.last = 1;
  PruneSummary pruned;
  REQUIRE_OK(PruneArchive(archive, prune, &pruned));
  REQUIRE(pruned.marked_sets == 4);
  CheckOptions check;
  check.read_percent = 100;
  CheckSummary checked;
  REQUIRE_OK(CheckArchive(archive, check, &checked));
  REQUIRE(checked.sets.size() == 5);
}

}  // namespace
}  // namespace sstferry::two_winners_test
