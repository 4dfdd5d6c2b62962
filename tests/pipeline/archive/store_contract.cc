#include "tests/pipeline/archive/store_contract.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <thread>

#include "format/end_state.h"
#include "tests/support/catch.h"

namespace sstferry {
namespace {

std::string Bytes(size_t n, unsigned seed) {
  std::string bytes(n, '\0');
  uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
  for (char& byte : bytes) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    byte = static_cast<char>(state >> 56);
  }
  return bytes;
}

std::string Whole(ObjectStore* store, const std::string& key) {
  std::string bytes;
  const StoreResult got = GetBytes(store, key, 64u << 20, &bytes);
  INFO(got.status.ToString());
  REQUIRE(got.ok());
  return bytes;
}

StoreCode CodeOf(const StoreResult& result) {
  UNSCOPED_INFO(result.status.ToString());
  REQUIRE(result.ok() == result.status.ok());
  return result.code;
}

std::vector<std::string> Keys(const std::vector<ObjectInfo>& objects) {
  std::vector<std::string> keys;
  for (const ObjectInfo& object : objects) {
    keys.push_back(object.key);
  }
  return keys;
}

std::vector<std::string> Listed(ObjectStore* store, const std::string& prefix) {
  std::vector<ObjectInfo> objects;
  REQUIRE(CodeOf(ListAll(store, prefix, 10'000, &objects)) == StoreCode::kOk);
  REQUIRE(std::is_sorted(objects.begin(), objects.end(),
                         [](const ObjectInfo& a, const ObjectInfo& b) {
                           return a.key < b.key;
                         }));
  return Keys(objects);
}

void CheckPutAndGet(ObjectStore* store) {
  for (const size_t n : {size_t{0}, size_t{1}, size_t{4096},
                         (size_t{3} << 20) + 17}) {
    const std::string key = "sizes/" + std::to_string(n);
    const std::string bytes = Bytes(n, static_cast<unsigned>(n) + 1);
    REQUIRE(CodeOf(PutBytes(store, key, bytes, false)) == StoreCode::kOk);
    REQUIRE(Whole(store, key) == bytes);
    ObjectInfo info;
    REQUIRE(CodeOf(store->Head(key, &info)) == StoreCode::kOk);
    REQUIRE(info.key == key);
    REQUIRE(info.bytes == n);
  }
  REQUIRE(CodeOf(PutBytes(store, "sizes/1", "other", false)) ==
          StoreCode::kOk);
  REQUIRE(Whole(store, "sizes/1") == "other");
}

void CheckIfAbsent(ObjectStore* store) {
  REQUIRE(CodeOf(PutBytes(store, "once/a", "first", true)) == StoreCode::kOk);
  REQUIRE(CodeOf(PutBytes(store, "once/a", "second", true)) ==
          StoreCode::kExists);
  REQUIRE(Whole(store, "once/a") == "first");
}

void CheckWrongDigest(ObjectStore* store) {
  const std::string bytes = Bytes(100'000, 5);
  const SliceSource source(bytes);
  PutRequest request;
  request.key = "wrong/digest";
  request.bytes = &source;
  request.digest = [](uint64_t, uint64_t, Sha256Digest* sha256) {
    *sha256 = Sha256Of("something else");
    return rocksdb::Status::OK();
  };
  REQUIRE(CodeOf(store->Put(request)) == StoreCode::kDamaged);
  ObjectInfo info;
  REQUIRE(CodeOf(store->Head("wrong/digest", &info)) == StoreCode::kAbsent);
}

// Bytes that cannot be read after the first 2 MiB.
class BrokenSource : public ByteSource {
 public:
  rocksdb::Status Read(uint64_t offset, size_t n, std::string* scratch,
                       rocksdb::Slice* out) const override {
    if (offset + n > (2u << 20)) {
      return MakeStatus(EndState::kSourceError, "the disk is gone");
    }
    scratch->assign(n, 'x');
    *out = *scratch;
    return rocksdb::Status::OK();
  }
  uint64_t size() const override { return 5u << 20; }
};

void CheckCallersFailures(ObjectStore* store) {
  const BrokenSource source;
  PutRequest request;
  request.key = "caller/fails";
  request.bytes = &source;
  request.digest = [](uint64_t, uint64_t bytes, Sha256Digest* sha256) {
    *sha256 = Sha256Of(std::string(bytes, 'x'));
    return rocksdb::Status::OK();
  };
  const StoreResult put = store->Put(request);
  REQUIRE(CodeOf(put) == StoreCode::kCaller);
  REQUIRE(EndStateOf(put.status) == EndState::kSourceError);
  ObjectInfo info;
  REQUIRE(CodeOf(store->Head("caller/fails", &info)) == StoreCode::kAbsent);

  REQUIRE(CodeOf(PutBytes(store, "caller/sink", Bytes(3u << 20, 9), false)) ==
          StoreCode::kOk);
  uint64_t taken = 0;
  const StoreResult got = store->Get(
      {.key = "caller/sink", .bytes = {}},
      [&](const rocksdb::Slice& piece) {
        taken += piece.size();
        return taken < (1u << 20) ? rocksdb::Status::OK()
                                  : MakeStatus(EndState::kNoSpace, "full");
      });
  REQUIRE(CodeOf(got) == StoreCode::kCaller);
  REQUIRE(EndStateOf(got.status) == EndState::kNoSpace);
  REQUIRE(taken < (3u << 20));
}

void CheckRanges(ObjectStore* store) {
  const std::string bytes = Bytes(300'000, 7);
  REQUIRE(CodeOf(PutBytes(store, "range/a", bytes, false)) == StoreCode::kOk);
  const auto range = [&](uint64_t offset, std::optional<uint64_t> n,
                         uint64_t max_bytes, std::string* out) {
    out->clear();
    return CodeOf(store->Get(
        {.key = "range/a", .offset = offset, .bytes = n,
         .max_bytes = max_bytes},
        [&](const rocksdb::Slice& piece) {
          out->append(piece.data(), piece.size());
          return rocksdb::Status::OK();
        }));
  };
  const std::vector<std::pair<uint64_t, uint64_t>> ranges = {
      {0, 1}, {0, 300'000}, {299'999, 1}, {65'535, 70'000}, {10, 0}};
  std::string got;
  for (const auto& [offset, n] : ranges) {
    REQUIRE(range(offset, n, 0, &got) == StoreCode::kOk);
    REQUIRE(got == bytes.substr(offset, n));
  }
  REQUIRE(range(1000, {}, 299'000, &got) == StoreCode::kOk);
  REQUIRE(got == bytes.substr(1000));
  REQUIRE(range(1000, {}, 298'999, &got) == StoreCode::kDamaged);
  REQUIRE(got.empty());
  REQUIRE(range(299'999, 2, 0, &got) == StoreCode::kDamaged);
  REQUIRE(range(300'000, 1, 0, &got) == StoreCode::kDamaged);
}

void CheckAbsent(ObjectStore* store) {
  ObjectInfo info;
  std::string bytes;
  REQUIRE(CodeOf(store->Head("no/such", &info)) == StoreCode::kAbsent);
  REQUIRE(CodeOf(GetBytes(store, "no/such", 10, &bytes)) ==
          StoreCode::kAbsent);
  REQUIRE(CodeOf(store->Delete({"no/such"})) == StoreCode::kOk);
}

void CheckLists(ObjectStore* store) {
  std::vector<std::string> keys;
  for (int i = 0; i < 30; ++i) {
    keys.push_back("list/" + std::to_string(i % 3) + "/" + std::to_string(i));
  }
  // These keys sort differently in bytewise order and in the order of
  // directories.
  for (const char* key : {"list-a", "list.a", "list/0.x", "list/0-x", "list0",
                          "list/A", "list/a", "list/_"}) {
    keys.emplace_back(key);
  }
  for (const std::string& key : keys) {
    REQUIRE(CodeOf(PutBytes(store, key, key, false)) == StoreCode::kOk);
  }
  std::sort(keys.begin(), keys.end());
  for (const std::string prefix :
       {"list", "list/", "list/0", "list/0/", "list/1/1", "nothing", "list-"}) {
    std::vector<std::string> expected;
    std::copy_if(keys.begin(), keys.end(), std::back_inserter(expected),
                 [&](const std::string& key) { return key.starts_with(prefix); });
    INFO(prefix);
    REQUIRE(Listed(store, prefix) == expected);
    for (const std::string& after : expected) {
      ListPage page;
      REQUIRE(CodeOf(store->List(prefix, after, &page)) == StoreCode::kOk);
      const auto rest =
          std::upper_bound(expected.begin(), expected.end(), after);
      REQUIRE(page.objects.empty() == (rest == expected.end()));
      if (!page.objects.empty()) {
        REQUIRE(page.objects[0].key == *rest);
        REQUIRE(page.objects[0].bytes == rest->size());
      }
    }
  }
  std::vector<ObjectInfo> few;
  REQUIRE(CodeOf(ListAll(store, "list", keys.size() - 1, &few)) ==
          StoreCode::kDamaged);
  REQUIRE(CodeOf(store->Delete({keys[0], keys[3], "no/such", keys[5]})) ==
          StoreCode::kOk);
  REQUIRE(Listed(store, "list").size() == keys.size() - 3);
  const std::vector<std::string> left = Listed(store, "list");
  REQUIRE(CodeOf(store->Delete(left)) == StoreCode::kOk);
  REQUIRE(Listed(store, "list").empty());
}

void CheckPieces(ObjectStore* store, bool is_exact) {
  constexpr uint64_t kPieceBytes = 5u << 20;  // the least that S3 permits
  const std::string bytes = Bytes(kPieceBytes + 123'456, 11);
  const SliceSource source(bytes);
  std::vector<uint64_t> asked;
  std::function<rocksdb::Status(Sha256Digest*)> at_second;
  PutRequest request;
  request.key = "pieces/a";
  request.bytes = &source;
  request.digest = [&](uint64_t offset, uint64_t n, Sha256Digest* sha256) {
    asked.push_back(offset);
    *sha256 = Sha256Of(rocksdb::Slice(bytes.data() + offset, n));
    return offset == 0 ? rocksdb::Status::OK() : at_second(sha256);
  };
  request.piece_bytes = kPieceBytes;
  request.if_absent = true;
  ObjectInfo info;

  at_second = [](Sha256Digest*) {
    return MakeStatus(EndState::kSourceError, "the disk is gone");
  };
  const StoreResult failed = store->Put(request);
  REQUIRE(CodeOf(failed) == StoreCode::kCaller);
  REQUIRE(EndStateOf(failed.status) == EndState::kSourceError);
  if (is_exact) {
    at_second = [](Sha256Digest* sha256) {
      *sha256 = Sha256Of("something else");
      return rocksdb::Status::OK();
    };
    REQUIRE(CodeOf(store->Put(request)) == StoreCode::kDamaged);
  }
  REQUIRE(CodeOf(store->Head("pieces/a", &info)) == StoreCode::kAbsent);

  UnixSeconds now = 0;
  REQUIRE(CodeOf(store->Now(&now)) == StoreCode::kOk);
  const auto remove = [&](UnixSeconds before) {
    uint64_t removed = 0;
    REQUIRE(CodeOf(store->RemoveUploads(
                before,
                [](const std::string& key) { return key == "pieces/a"; },
                &removed)) == StoreCode::kOk);
    return removed;
  };
  REQUIRE(remove(now + 600) == 0);  // a put that fails leaves nothing
  at_second = [&](Sha256Digest*) {
    // An incomplete upload is no object, and not an old one.
    REQUIRE(Listed(store, "pieces/").empty());
    REQUIRE(remove(is_exact ? now - 600 : 0) == 0);
    return rocksdb::Status::OK();
  };
  asked.clear();
  REQUIRE(CodeOf(store->Put(request)) == StoreCode::kOk);
  REQUIRE(asked == std::vector<uint64_t>{0, kPieceBytes});
  REQUIRE(Whole(store, "pieces/a") == bytes);
  at_second = [](Sha256Digest*) { return rocksdb::Status::OK(); };
  REQUIRE(CodeOf(store->Put(request)) == StoreCode::kExists);
  REQUIRE(Whole(store, "pieces/a") == bytes);
  REQUIRE(CodeOf(PutBytes(store, "pieces/small", "x", true, {}, kPieceBytes)) ==
          StoreCode::kOk);
  REQUIRE(Whole(store, "pieces/small") == "x");

  // A put whose upload is removed fails; a store that is not exact may answer
  // with an error of another kind.
  request.key = "pieces/b";
  uint64_t removed = 0;
  at_second = [&](Sha256Digest*) {
    REQUIRE(CodeOf(store->RemoveUploads(
                now + 600,
                [](const std::string& key) { return key == "pieces/b"; },
                &removed)) == StoreCode::kOk);
    return rocksdb::Status::OK();
  };
  const StoreCode code = CodeOf(store->Put(request));
  const StoreCode expected =
      removed == 0 ? StoreCode::kOk : StoreCode::kAbsent;
  if (is_exact) {
    REQUIRE(code == expected);
  }
  REQUIRE(CodeOf(store->Head("pieces/b", &info)) == expected);
  REQUIRE(remove(now + 600) == 0);
}

void CheckClock(ObjectStore* store) {
  UnixSeconds first = 0;
  UnixSeconds second = 0;
  REQUIRE(CodeOf(store->Now(&first)) == StoreCode::kOk);
  REQUIRE(CodeOf(store->Now(&second)) == StoreCode::kOk);
  REQUIRE(first > 1'600'000'000);
  REQUIRE(second >= first);
  REQUIRE(std::abs(store->SigningTime() - second) < 600);
}

void CheckThreads(ObjectStore* store) {
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 12; ++i) {
    threads.emplace_back([&, i] {
      const std::string bytes = Bytes(200'000 + i, i);
      const std::string key = "threads/" + std::to_string(i);
      std::string got;
      if (!PutBytes(store, key, bytes, true).ok() ||
          !GetBytes(store, key, 1u << 20, &got).ok() || got != bytes) {
        failed++;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  REQUIRE(failed == 0);
}

void CheckCancel(ObjectStore* store) {
  store->Cancel();
  ObjectInfo info;
  const StoreResult after = store->Head("sizes/1", &info);
  REQUIRE(CodeOf(after) == StoreCode::kCancelled);
  REQUIRE(EndStateOf(after.status) == EndState::kCancelled);
}

}  // namespace

void CheckStoreContract(ObjectStore* store, bool is_exact) {
  REQUIRE(Listed(store, "").empty());
  CheckPutAndGet(store);
  CheckIfAbsent(store);
  if (is_exact) {
    CheckWrongDigest(store);
  }
  CheckCallersFailures(store);
  CheckRanges(store);
  CheckAbsent(store);
  CheckLists(store);
  CheckPieces(store, is_exact);
  CheckClock(store);
  CheckThreads(store);
  const std::vector<std::string> left = Listed(store, "");
  REQUIRE(CodeOf(store->Delete(left)) == StoreCode::kOk);
  CheckCancel(store);
}

int RaceToPut(const std::vector<ObjectStore*>& clients,
              const std::string& key) {
  std::barrier start(static_cast<std::ptrdiff_t>(clients.size()));
  std::atomic<int> winners{0};
  std::atomic<int> strange{0};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < clients.size(); ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      const StoreResult put =
          PutBytes(clients[i], key, "client " + std::to_string(i), true);
      winners += put.ok() ? 1 : 0;
      strange += put.ok() || put.code == StoreCode::kExists ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  REQUIRE(strange == 0);
  return winners;
}

}  // namespace sstferry
