// Tests what readers of an open database see during a refresh.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "pipeline/disk/durable.h"
#include "tests/support/catch.h"
#include "tests/support/refreshed.h"

namespace sstferry::test::refresh_reader_test {
namespace {

constexpr uint64_t kKeys = 1500;

Families TwoFamilies() {
  Families families = OneFamily(Quiet());
  families.emplace_back("other", Quiet());
  return families;
}

// Writes values that begin with a letter, a different one for each refresh.
void Write(const std::string& dir, char night) {
  OpenDb db(dir, TwoFamilies());
  for (const char* family : {"default", "other"}) {
    for (uint64_t i = 0; i < kKeys; ++i) {
      db.Put(NumberedKey(i), night + RandomBytes(700, i + night), family);
    }
  }
  db.Flush();
}

// Reads a whole database again and again, each time through one snapshot.
class Reader {
 public:
  explicit Reader(OpenDb* db)
      : db_(db), thread_([this] {
          while (!stop_) {
            std::unique_lock<std::mutex> lock(mu_);
            turn_.wait(lock, [this] { return waiting_ == 0; });
            Read();
          }
        }) {}
  ~Reader() {
    TEST_SetFaultHook(nullptr);
    Stop();
  }
  // Also reads directly after the ingest.
  void ReadAfterIngest() {
    TEST_SetFaultHook([this](const std::string& name) {
      if (name == "Ingestor:Ingested") {
        ++waiting_;
        ReadOnce();
        --waiting_;
        std::lock_guard<std::mutex> lock(mu_);
        turn_.notify_all();
      }
    });
  }
  void Stop() {
    stop_ = true;
    if (thread_.joinable()) {
      thread_.join();
    }
    ReadOnce();
  }
  // The values' letters that one snapshot showed, for each snapshot.
  const std::set<std::string>& seen() const { return seen_; }
  bool right_count() const { return right_count_; }

 private:
  void ReadOnce() {
    std::lock_guard<std::mutex> lock(mu_);
    Read();
  }
  // REQUIRES: mu_ is locked.
  void Read() {
    rocksdb::ReadOptions options;
    options.snapshot = (*db_)->GetSnapshot();
    std::set<char> letters;
    for (const char* family : {"default", "other"}) {
      const std::unique_ptr<rocksdb::Iterator> it(
          (*db_)->NewIterator(options, db_->cf(family)));
      uint64_t count = 0;
      for (it->SeekToFirst(); it->Valid(); it->Next(), ++count) {
        letters.insert(it->value()[0]);
      }
      right_count_ = right_count_ && it->status().ok() && count == kKeys;
    }
    seen_.insert(std::string(letters.begin(), letters.end()));
    (*db_)->ReleaseSnapshot(options.snapshot);
  }

  OpenDb* const db_;
  std::mutex mu_;
  // Without this counter, the reading thread would take mu_ again and again,
  // and the ingesting thread would never get it.
  std::atomic<int> waiting_{0};
  std::condition_variable turn_;
  std::set<std::string> seen_;  // under mu_, like right_count_
  bool right_count_ = true;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

PullOptions Small() {
  PullOptions options;
  options.chunk_bytes = 64 << 10;
  options.lanes = 2;
  options.compact = false;
  return options;
}

TEST_CASE("Readers see all of a refresh or nothing of it, in every family",
          "[transfer][refresh]") {
  const ScratchDir dir;
  Write(dir / "source", 'a');
  REQUIRE_OK(Refresh(dir / "source", dir / "target", Small()).status);
  Write(dir / "source", 'b');
  OpenDb target(dir / "target", TwoFamilies());
  Reader reader(&target);
  reader.ReadAfterIngest();
  const Ferried refreshed =
      RefreshOpen(dir / "source", &target, {"default", "other"}, Small());
  REQUIRE_OK(refreshed.status);
  reader.Stop();
  REQUIRE(reader.right_count());
  REQUIRE(reader.seen().count("b") == 1);
  REQUIRE(reader.seen().count("ab") == 0);
}

}  // namespace
}  // namespace sstferry::test::refresh_reader_test
