// Tests the store for buckets with a server that returns wrong answers. Calls
// return correct bytes, or fail with the matching code.
#include "pipeline/archive/s3_store.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <thread>

#include "format/end_state.h"
#include "pipeline/archive/connection_gate.h"
#include "pipeline/archive/init.h"
#include "pipeline/archive/s3_answer.h"
#include "tests/support/catch.h"
#include "tests/support/fake_s3.h"

namespace sstferry::s3_store_test {
namespace {

using std::chrono::milliseconds;

constexpr char kSecret[] = "wJalrXUtnFEMI-the-secret";

StoreOptions OptionsOf(const FakeS3& server) {
  StoreOptions options;
  options.endpoint = server.url();
  options.where.bucket = "b";
  options.where.prefix = "p";
  options.timeouts.retry = milliseconds(20'000);
  options.connections = 16;
  return options;
}

CredentialWorld World() {
  CredentialWorld world;
  world.variable = [](const std::string& name) -> std::optional<std::string> {
    if (name == "AWS_ACCESS_KEY_ID") return "AKIDEXAMPLE";
    if (name == "AWS_SECRET_ACCESS_KEY") return kSecret;
    return std::nullopt;
  };
  return world;
}

std::unique_ptr<ObjectStore> Open(const StoreOptions& options,
                                  const CredentialWorld& world = World()) {
  std::unique_ptr<ObjectStore> store;
  const rocksdb::Status made = MakeS3Store(options, world, &store);
  INFO(made.ToString());
  REQUIRE(made.ok());
  return store;
}

StoreOptions TriedOnceOptions(const FakeS3& server) {
  StoreOptions options = OptionsOf(server);
  options.timeouts.retry = milliseconds(0);
  return options;
}

// Returns a result's code, and requires that its message contains no secret.
StoreCode CodeOf(const StoreResult& result) {
  REQUIRE(result.status.ToString().find(kSecret) == std::string::npos);
  REQUIRE(result.ok() == result.status.ok());
  return result.code;
}

StoreResult GetPart(ObjectStore* store, const std::string& key,
                    uint64_t offset, uint64_t n, std::string* bytes) {
  GetRequest request;
  request.key = key;
  request.offset = offset;
  request.bytes = n;
  bytes->clear();
  return store->Get(request, [&](const rocksdb::Slice& piece) {
    bytes->append(piece.data(), piece.size());
    return rocksdb::Status::OK();
  });
}

std::string Digits(size_t n) {
  std::string text;
  while (text.size() < n) {
    text += std::to_string(text.size()) + ",";
  }
  text.resize(n);
  return text;
}

// Runs `test` for 0 .. n-1 on 16 threads. Returns how often it returned false.
int CountFailures(int n, const std::function<bool(int)>& test) {
  std::atomic<int> next{0};
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      for (int at = next++; at < n; at = next++) {
        failed += test(at) ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return failed;
}

// Returns the number after the last '-' of a path. By it, tests tell the server
// what to do.
int NumberOf(const FakeRequest& request) {
  const size_t dash = request.path.rfind('-');
  return dash == std::string::npos ? -1
                                   : std::atoi(request.path.c_str() + dash + 1);
}

// Returns the 404 of something other than a store.
FakeAnswer PageNotFound() {
  FakeAnswer answer;
  answer.status = 404;
  answer.body = "404 page not found\n";
  return answer;
}

// Returns a page with status 200 that does not come from a store.
FakeAnswer WelcomePage() {
  FakeAnswer answer;
  answer.body = "<html>Welcome</html>";
  return answer;
}

}  // namespace

TEST_CASE("An answer that ends at any byte is continued, or fails",
          "[archive]") {
  const std::string bytes = Digits(200);
  std::mutex mu;
  std::map<std::string, int> seen;
  FakeS3 server(nullptr, [&](const FakeRequest& request, FakeAnswer* answer) {
    std::lock_guard<std::mutex> lock(mu);
    const bool is_first = seen[request.method + request.path]++ == 0;
    if (request.method == "GET" &&
        (is_first || request.path.find("always") != std::string::npos)) {
      answer->close_after = NumberOf(request);
    }
  });
  // The body has 200 bytes, and the head of an answer less than 250.
  constexpr int kLongest = 450;
  for (int i = 0; i <= kLongest; ++i) {
    server.Set("/b/p/once-" + std::to_string(i), bytes);
    server.Set("/b/p/always-" + std::to_string(i), bytes);
  }
  const auto store = Open(OptionsOf(server));
  CHECK(CountFailures(kLongest, [&](int i) {
          std::string got;
          return GetPart(store.get(), "once-" + std::to_string(i), 0, 200, &got)
                     .ok() &&
                 got == bytes;
        }) == 0);
  const auto impatient = Open(TriedOnceOptions(server));
  CHECK(CountFailures(kLongest, [&](int i) {
          std::string got;
          const StoreResult result = GetPart(
              impatient.get(), "always-" + std::to_string(i), 0, 200, &got);
          return result.ok() ? got == bytes
                             : result.code == StoreCode::kUnreachable &&
                                   bytes.starts_with(got);
        }) == 0);
}

TEST_CASE("Bytes that are not of the requested range are never passed on",
          "[archive]") {
  std::function<void(FakeAnswer*)> lie;
  FakeS3 server(nullptr, [&](const FakeRequest& request, FakeAnswer* answer) {
    if (request.method == "GET") {
      lie(answer);
    }
  });
  const std::string bytes = Digits(1000);
  server.Set("/b/p/a", bytes);
  const auto store = Open(OptionsOf(server));
  const std::vector<std::function<void(FakeAnswer*)>> lies = {
      [](FakeAnswer* a) { a->headers["Content-Range"] = "bytes 0-99/1000"; },
      [](FakeAnswer* a) { a->headers["Content-Range"] = "bytes 100-198/1000"; },
      [](FakeAnswer* a) { a->headers["Content-Range"] = "bytes 100-200/1000"; },
      [](FakeAnswer* a) { a->headers["Content-Range"] = "bytes 100-199/*"; },
      [](FakeAnswer* a) { a->headers["Content-Range"] = "rubbish"; },
      [](FakeAnswer* a) { a->headers.erase("Content-Range"); },
      [](FakeAnswer* a) { a->status = 204; },
      [](FakeAnswer* a) { a->body += a->body; },
      [](FakeAnswer* a) { a->body = std::string(5u << 20, 'x'); },
  };
  for (size_t i = 0; i < lies.size(); ++i) {
    INFO(i);
    lie = lies[i];
    std::string got;
    const StoreResult result = GetPart(store.get(), "a", 100, 100, &got);
    INFO(result.status.ToString());
    CHECK(CodeOf(result) == StoreCode::kDamaged);
    CHECK(bytes.substr(100, 100).starts_with(got.substr(0, 100)));
    CHECK(got.size() <= 100);
  }
  std::string got;
  lie = [](FakeAnswer* a) { *a = FakeError(200, "AccessDenied"); };
  CHECK(CodeOf(GetPart(store.get(), "a", 100, 100, &got)) ==
        StoreCode::kDenied);
  CHECK(got.empty());
  // A short answer is accepted, and the missing bytes are requested.
  lie = [](FakeAnswer* a) {
    a->body.resize(std::min<size_t>(50, a->body.size()));
  };
  CHECK(CodeOf(GetPart(store.get(), "a", 100, 100, &got)) == StoreCode::kOk);
  CHECK(got == bytes.substr(100, 100));
  lie = [](FakeAnswer*) {};
  CHECK(CodeOf(GetPart(store.get(), "a", 100, 100, &got)) == StoreCode::kOk);
  CHECK(got == bytes.substr(100, 100));
}

TEST_CASE("A store or proxy that changes all answers is not reported as damage",
          "[archive]") {
  std::function<void(FakeAnswer*)> lie;
  FakeS3 server(nullptr, [&](const FakeRequest& request, FakeAnswer* answer) {
    if (request.method != "PUT") {
      lie(answer);
    }
  });
  const std::string bytes = Digits(1000);
  server.Set("/b/p/a", bytes);
  const auto store = Open(OptionsOf(server));
  const auto ignores_range = [&](FakeAnswer* a) {
    a->status = 200;
    a->headers.erase("Content-Range");
    a->body = bytes;
  };
  const auto keeps_status = [](FakeAnswer* a) {
    a->status = 200;
    a->headers.erase("Content-Range");
  };
  const auto compresses = [](FakeAnswer* a) {
    a->headers["Content-Encoding"] = "gzip";
    a->body = "\x1f\x8b\x08";
  };
  const auto compresses_much = [](FakeAnswer* a) {
    a->headers["Content-Encoding"] = "gzip";
    a->body = std::string(5u << 20, 'x');
  };
  const auto is_cold = [](FakeAnswer* a) {
    *a = FakeError(403, "InvalidObjectState");
  };
  const std::vector<
      std::pair<std::function<void(FakeAnswer*)>, std::string>>
      lies = {{ignores_range, "ignores Range"},
              {keeps_status, "ignores Range"},
              {compresses, "'Content-Encoding: gzip'"},
              {compresses_much, "'Content-Encoding: gzip'"},
              {is_cold, "restore the archive's objects"}};
  for (size_t i = 0; i < lies.size(); ++i) {
    INFO(i);
    lie = lies[i].first;
    std::string got;
    const StoreResult result = GetPart(store.get(), "a", 100, 100, &got);
    INFO(result.status.ToString());
    CHECK(CodeOf(result) == (i + 1 == lies.size() ? StoreCode::kCold
                                                  : StoreCode::kUnsupported));
    CHECK(result.status.ToString().find(lies[i].second) != std::string::npos);
    CHECK(got.empty());
  }
  lie = compresses;
  GetRequest whole;
  whole.key = "a";
  CHECK(CodeOf(store->Get(
            whole, [](const rocksdb::Slice&) {
              return rocksdb::Status::OK();
            })) == StoreCode::kUnsupported);
  ListPage page;
  CHECK(CodeOf(store->List("", "", &page)) == StoreCode::kUnsupported);
  lie = [](FakeAnswer* a) { a->headers["Content-Encoding"] = "aws-chunked"; };
  std::string got;
  CHECK(CodeOf(GetPart(store.get(), "a", 100, 100, &got)) == StoreCode::kOk);
  CHECK(got == bytes.substr(100, 100));
}

TEST_CASE("An object that is replaced in the middle is not continued",
          "[archive]") {
  std::atomic<int> gets{0};
  FakeS3* self = nullptr;
  FakeS3 server(nullptr, [&](const FakeRequest& request, FakeAnswer* answer) {
    if (request.method == "GET" && gets++ == 0) {
      self->Set("/b/p/a", std::string(1000, 'n'));
      answer->close_after = 700;
    }
  });
  self = &server;
  server.Set("/b/p/a", Digits(1000));
  const auto store = Open(OptionsOf(server));
  std::string got;
  CHECK(CodeOf(GetPart(store.get(), "a", 0, 1000, &got)) ==
        StoreCode::kOtherVersion);
  CHECK(Digits(1000).starts_with(got));
}

TEST_CASE("Calls to a store that fails for a while are repeated", "[archive]") {
  std::atomic<int> left{0};
  FakeAnswer failure;
  FakeS3 server([&](const FakeRequest&) -> std::optional<FakeAnswer> {
    return left-- > 0 ? std::optional<FakeAnswer>(failure) : std::nullopt;
  });
  const auto store = Open(OptionsOf(server));
  const auto impatient = Open(TriedOnceOptions(server));
  int i = 0;
  const std::vector<std::pair<FakeAnswer, StoreCode>> passing = {
      {FakeError(503, "SlowDown"), StoreCode::kThrottled},
      {FakeError(429, "Whatever"), StoreCode::kThrottled},
      {FakeError(500, "InternalError"), StoreCode::kUnreachable},
      {FakeError(409, "ConditionalRequestConflict"), StoreCode::kUnreachable},
      {FakeError(400, "RequestTimeout"), StoreCode::kUnreachable},
      // An error with the status of success.
      {FakeError(200, "InternalError"), StoreCode::kUnreachable},
      {FakeError(200, "SlowDown"), StoreCode::kThrottled},
      {FakeError(502, ""), StoreCode::kUnreachable},
      {PageNotFound(), StoreCode::kUnreachable},
      {WelcomePage(), StoreCode::kUnreachable},
  };
  for (const auto& [answer, code] : passing) {
    INFO(answer.status << answer.body);
    failure = answer;
    left = 2;
    const std::string key = "a" + std::to_string(i++);
    CHECK(CodeOf(PutBytes(store.get(), key, "x", true)) == StoreCode::kOk);
    CHECK(server.Objects().at("/b/p/" + key) == "x");
    left = 1'000;
    CHECK(CodeOf(PutBytes(impatient.get(), key, "y", false)) == code);
    left = 0;
    CHECK(server.Objects().at("/b/p/" + key) == "x");
  }
  const std::vector<std::pair<FakeAnswer, StoreCode>> lasting = {
      {FakeError(403, "AccessDenied"), StoreCode::kDenied},
      {FakeError(403, "SignatureDoesNotMatch"), StoreCode::kDenied},
      {FakeError(403, "QuotaExceeded"), StoreCode::kNoSpace},
      {FakeError(507, ""), StoreCode::kNoSpace},
      {FakeError(501, "NotImplemented"), StoreCode::kUnsupported},
      {FakeError(404, "NoSuchBucket"), StoreCode::kUnsupported},
      {FakeError(301, "PermanentRedirect"), StoreCode::kUnsupported},
      {FakeError(412, "PreconditionFailed"), StoreCode::kExists},
      {FakeError(400, "BadDigest"), StoreCode::kDamaged},
      {FakeError(200, "AccessDenied"), StoreCode::kDenied},
      {FakeError(400, "Unheard"), StoreCode::kInternal},
  };
  for (const auto& [answer, code] : lasting) {
    INFO(answer.status << answer.body);
    failure = answer;
    // The server may have refused the checksum's header: one more try is made
    // without it.
    const int tries =
        code == StoreCode::kInternal || answer.status == 501 ? 2 : 1;
    left = tries;
    const uint64_t before = server.requests();
    CHECK(CodeOf(PutBytes(store.get(), "z", "x", true)) == code);
    left = 0;
    CHECK(server.requests() == before + static_cast<uint64_t>(tries));
    CHECK(server.Objects().count("/b/p/z") == 0);
  }
}

TEST_CASE("An object is missing only if the store's list does not have it, "
          "either",
          "[archive]") {
  std::atomic<int> left{0};
  FakeAnswer lie;
  bool lies_in_lists = false;
  FakeS3 server([&](const FakeRequest& request) -> std::optional<FakeAnswer> {
    return (request.query.empty() || lies_in_lists) && left-- > 0
               ? std::optional<FakeAnswer>(lie)
               : std::nullopt;
  });
  server.Set("/b/p/a", "bytes");
  server.Set("/b/p/a-b", "other bytes");
  const auto store = Open(TriedOnceOptions(server));
  std::string got;
  ObjectInfo info;
  for (const FakeAnswer& answer :
       {PageNotFound(), FakeError(404, "NoSuchKey"), FakeError(404, "Gone")}) {
    INFO(answer.body);
    lie = answer;
    lies_in_lists = false;
    left = kTriesOfBytes - 1;
    CHECK(CodeOf(GetPart(store.get(), "a", 0, 5, &got)) == StoreCode::kOk);
    CHECK(got == "bytes");
    left = kTriesOfBytes - 1;
    CHECK(CodeOf(store->Head("a", &info)) == StoreCode::kOk);
    left = 1'000;
    CHECK(CodeOf(GetPart(store.get(), "a", 0, 5, &got)) ==
          StoreCode::kDamaged);
    CHECK(CodeOf(store->Head("a", &info)) == StoreCode::kDamaged);
    CHECK(CodeOf(store->Delete({"a"})) == StoreCode::kDamaged);
    const uint64_t before = server.requests();
    CHECK(CodeOf(GetPart(store.get(), "b", 0, 5, &got)) == StoreCode::kAbsent);
    CHECK(server.requests() == before + 2);  // the object and the list
    CHECK(CodeOf(store->Head("b", &info)) == StoreCode::kAbsent);
    CHECK(CodeOf(store->Delete({"b"})) == StoreCode::kOk);
  }
  // Nothing reaches the store.
  lie = PageNotFound();
  lies_in_lists = true;
  CHECK(CodeOf(GetPart(store.get(), "a", 0, 5, &got)) ==
        StoreCode::kUnreachable);
  CHECK(CodeOf(store->Head("a", &info)) == StoreCode::kUnreachable);
  CHECK(CodeOf(store->Delete({"a"})) == StoreCode::kUnreachable);
  // With time, a page is not even taken for the store's answer.
  left = kTriesOfBytes - 1;
  const uint64_t before = server.requests();
  CHECK(CodeOf(GetPart(Open(OptionsOf(server)).get(), "a", 0, 5, &got)) ==
        StoreCode::kOk);
  CHECK(server.requests() == before + 3);
}

TEST_CASE("A missing object is looked for on one page of the list",
          "[archive]") {
  // 2,500 keys that begin with the key of the missing object.
  FakeS3 server([](const FakeRequest& request) -> std::optional<FakeAnswer> {
    if (request.query.count("list-type") == 0) {
      return std::nullopt;
    }
    const auto after = request.query.find("start-after");
    int listed = 0;
    std::string objects;
    bool is_truncated = false;
    for (int i = 0; i < 2500; ++i) {
      const std::string key = "p/ARCHIVE/" + std::to_string(10'000 + i);
      if (after != request.query.end() && key <= after->second) {
        continue;
      }
      if (listed++ == 1000) {
        is_truncated = true;
        break;
      }
      objects += "<Contents><Key>" + key + "</Key><Size>1</Size></Contents>";
    }
    FakeAnswer answer;
    answer.body = std::string("<ListBucketResult><IsTruncated>") +
                  (is_truncated ? "true" : "false") + "</IsTruncated>" +
                  objects + "</ListBucketResult>";
    return answer;
  });
  const auto store = Open(TriedOnceOptions(server));
  ObjectInfo info;
  CHECK(CodeOf(store->Head("ARCHIVE", &info)) == StoreCode::kAbsent);
  CHECK(server.requests() == 2);  // the object and a page
  std::vector<ObjectInfo> objects;
  CHECK(CodeOf(ListAll(store.get(), "ARCHIVE", 10'000, &objects)) ==
        StoreCode::kOk);
  CHECK(objects.size() == 2500);
}

TEST_CASE("A put is complete only if the answer has an ETag", "[archive]") {
  std::atomic<int> left{1'000};
  FakeS3 server([&](const FakeRequest& request) -> std::optional<FakeAnswer> {
    return request.method == "PUT" && left-- > 0
               ? std::optional<FakeAnswer>(WelcomePage())
               : std::nullopt;
  });
  CHECK(CodeOf(PutBytes(Open(TriedOnceOptions(server)).get(), "a", "x",
                        false)) == StoreCode::kUnreachable);
  CHECK(server.Objects().empty());
}

TEST_CASE("A proxy may show pages with status 200 for a while", "[archive]") {
  std::atomic<int> left{0};
  FakeS3 server([&](const FakeRequest&) -> std::optional<FakeAnswer> {
    return left-- > 0 ? std::optional<FakeAnswer>(WelcomePage())
                      : std::nullopt;
  });
  const auto store = Open(OptionsOf(server));
  constexpr int kPages = 3;
  left = kPages;
  CHECK(CodeOf(PutBytes(store.get(), "a", "x", false)) == StoreCode::kOk);
  CHECK(server.Objects().at("/b/p/a") == "x");
  left = kPages;
  ListPage page;
  CHECK(CodeOf(store->List("", "", &page)) == StoreCode::kOk);
  CHECK(page.objects.size() == 1);
  left = kPages;
  CHECK(CodeOf(PutBytes(store.get(), "b", "bytes", false, {}, 3)) ==
        StoreCode::kOk);
  CHECK(server.Objects().at("/b/p/b") == "bytes");
  left = kPages;
  CHECK(CodeOf(store->Delete({"a", "b"})) == StoreCode::kOk);
  CHECK(server.Objects().empty());
}

TEST_CASE("A list from a cache is not the store's list", "[archive]") {
  std::string age;
  FakeS3 server(nullptr, [&](const FakeRequest&, FakeAnswer* answer) {
    answer->headers["Age"] = age;
  });
  const auto store = Open(TriedOnceOptions(server));
  ListPage page;
  age = "0";
  CHECK(CodeOf(store->List("", "", &page)) == StoreCode::kOk);
  age = "30";
  CHECK(CodeOf(store->List("", "", &page)) == StoreCode::kUnreachable);
}

TEST_CASE("A list shows which objects are in a class where nothing can be read",
          "[archive]") {
  std::string storage_class;
  FakeS3 server(nullptr, [&](const FakeRequest&, FakeAnswer* answer) {
    const size_t end = answer->body.find("</Contents>");
    if (end != std::string::npos) {
      answer->body.insert(
          end, "<StorageClass>" + storage_class + "</StorageClass>");
    }
  });
  server.Set("/b/p/a", "bytes");
  const auto store = Open(OptionsOf(server));
  for (const char* name :
       {"GLACIER", "DEEP_ARCHIVE", "GLACIER_IR", "STANDARD", ""}) {
    INFO(name);
    storage_class = name;
    ListPage page;
    REQUIRE(CodeOf(store->List("", "", &page)) == StoreCode::kOk);
    REQUIRE(page.objects.size() == 1);
    CHECK(page.objects[0].is_cold ==
          (storage_class == "GLACIER" || storage_class == "DEEP_ARCHIVE"));
  }
}

TEST_CASE("A list shows which cold objects were restored, if the store tells",
          "[archive]") {
  constexpr char kHeader[] = "x-amz-optional-object-attributes";
  enum class Answer { kTells, kIgnores, kRefuses };
  const Answer kind =
      GENERATE(Answer::kTells, Answer::kIgnores, Answer::kRefuses);
  std::string storage_class = "STANDARD";
  std::string is_in_progress = "false";
  std::atomic<int> asked{0};
  FakeS3 server(
      [&](const FakeRequest& request) -> std::optional<FakeAnswer> {
        const bool asks = request.headers.count(kHeader) != 0;
        asked += asks ? 1 : 0;
        return asks && kind == Answer::kRefuses
                   ? std::optional<FakeAnswer>(
                         FakeError(501, "NotImplemented"))
                   : std::nullopt;
      },
      [&](const FakeRequest& request, FakeAnswer* answer) {
        const bool tells = kind == Answer::kTells &&
                           request.headers.count(kHeader) != 0;
        size_t at = 0;
        for (int i = 0; (at = answer->body.find("</Contents>", at)) !=
                        std::string::npos; ++i) {
          std::string more =
              "<StorageClass>" + storage_class + "</StorageClass>";
          if (tells && i == 0) {
            more += "<RestoreStatus><IsRestoreInProgress>" + is_in_progress +
                    "</IsRestoreInProgress><RestoreExpiryDate>"
                    "2026-12-21T00:00:00.000Z</RestoreExpiryDate>"
                    "</RestoreStatus>";
          }
          answer->body.insert(at, more);
          at += more.size() + 1;
        }
      });
  server.Set("/b/p/a", "bytes");
  server.Set("/b/p/b", "bytes");
  const auto store = Open(OptionsOf(server));
  ListPage page;
  REQUIRE(CodeOf(store->List("", "", &page)) == StoreCode::kOk);
  CHECK(server.requests() == 1);
  storage_class = "GLACIER";
  for (const char* const in_progress : {"false", "true"}) {
    is_in_progress = in_progress;
    REQUIRE(CodeOf(store->List("", "", &page)) == StoreCode::kOk);
    REQUIRE(page.objects.size() == 2);
    CHECK(page.objects[0].is_cold);
    CHECK(page.objects[0].is_restored ==
          (kind == Answer::kTells && is_in_progress == "false"));
    CHECK(page.objects[1].is_cold);
    CHECK_FALSE(page.objects[1].is_restored);
  }
  CHECK(asked == (kind == Answer::kRefuses ? 1 : 2));
}

TEST_CASE("Only files and segments are put into the storage class",
          "[archive]") {
  std::mutex mu;
  std::map<std::string, bool> has_class;  // by path
  FakeS3 server([&](const FakeRequest& request) -> std::optional<FakeAnswer> {
    const std::lock_guard<std::mutex> lock(mu);
    if (request.query.count("uploadId") == 0) {
      has_class[request.path] =
          request.headers.count("x-amz-storage-class") != 0;
    }
    return std::nullopt;
  });
  StoreOptions options = OptionsOf(server);
  options.storage_class = "STANDARD_IA";
  const auto store = Open(options);
  for (const char* key : {"ARCHIVE", "CHECKED", "sets/a", "done/a", "marks/a",
                          "intents/a", "files/aa/a", "parts/a", "wal/a/a"}) {
    INFO(key);
    for (const uint64_t piece_bytes : {0u, 3u}) {
      REQUIRE(CodeOf(PutBytes(store.get(), key, "bytes", false, {},
                              piece_bytes)) == StoreCode::kOk);
      const std::string prefix = std::string(key).substr(0, 4);
      CHECK(has_class.at("/b/p/" + std::string(key)) ==
            (prefix == "file" || prefix == "part" || prefix == "wal/"));
    }
  }
}

TEST_CASE("The first retry is reported at once, and later ones once a minute",
          "[archive]") {
  std::atomic<int> left{3};
  FakeS3 server([&](const FakeRequest&) -> std::optional<FakeAnswer> {
    return left-- > 0 ? std::optional<FakeAnswer>(FakeError(503, "SlowDown"))
                      : std::nullopt;
  });
  std::vector<std::string> reported;
  StoreOptions options = OptionsOf(server);
  options.on_retry = [&](const std::string& error) {
    reported.push_back(error);
  };
  REQUIRE(CodeOf(PutBytes(Open(options).get(), "a", "x", true)) ==
          StoreCode::kOk);
  REQUIRE(reported.size() == 1);
  REQUIRE(reported[0].find("SlowDown") != std::string::npos);
}

TEST_CASE("Many answers 503 halve the number of connections, and calls succeed",
          "[archive]") {
  std::atomic<int> storms{60};
  FakeS3 server([&](const FakeRequest&) -> std::optional<FakeAnswer> {
    if (storms-- > 0) {
      FakeAnswer answer = FakeError(503, "SlowDown");
      answer.headers["Retry-After"] = "0";
      return answer;
    }
    return std::nullopt;
  });
  const auto store = Open(OptionsOf(server));
  CHECK(CountFailures(64, [&](int i) {
          return PutBytes(store.get(), "k" + std::to_string(i), "x", true).ok();
        }) == 0);
  CHECK(server.Objects().size() == 64);

  ConnectionGate gate(16);
  Clock::time_point now = Clock::now();
  for (const uint32_t allowed : {8u, 4u, 2u, 1u, 1u}) {
    REQUIRE(gate.Enter(Clock::time_point::max()));
    gate.Leave(true, now);
    CHECK(gate.allowed() == allowed);
    // Another 503 within a second is a result of the same overload, so the
    // limit is not halved again.
    REQUIRE(gate.Enter(Clock::time_point::max()));
    gate.Leave(true, now + milliseconds(900));
    CHECK(gate.allowed() == allowed);
    now += milliseconds(1000);
  }
  REQUIRE(gate.Enter(Clock::time_point::max()));
  CHECK_FALSE(gate.Enter(Clock::now()));
  gate.Leave(false, now);
  for (int i = 0; i < 32 * 20; ++i) {
    REQUIRE(gate.Enter(Clock::time_point::max()));
    gate.Leave(false, now);
  }
  CHECK(gate.allowed() == 16);
  gate.Close();
  CHECK_FALSE(gate.Enter(Clock::time_point::max()));
}

TEST_CASE("A redirect is not followed, and its address is shown", "[archive]") {
  FakeS3 server(nullptr, [&](const FakeRequest&, FakeAnswer* answer) {
    answer->status = 308;
    answer->headers["Location"] = "https://store.example/b/p/a";
    answer->body = "<html>Moved</html>";
  });
  std::string got;
  const StoreResult result =
      GetPart(Open(OptionsOf(server)).get(), "a", 0, 1, &got);
  INFO(result.status.ToString());
  CHECK(CodeOf(result) == StoreCode::kUnsupported);
  CHECK(result.status.ToString().find("https://store.example/b/p/a") !=
        std::string::npos);
  CHECK(result.status.ToString().find("--endpoint") != std::string::npos);
}

TEST_CASE("A proxy that cannot be reached is named, and a given one beats no_proxy",
          "[archive]") {
  FakeS3 server;
  server.Set("/b/p/a", Digits(10));
  StoreOptions options = TriedOnceOptions(server);
  std::string got;
  setenv("http_proxy", "http://127.0.0.1:9", 1);
  const StoreResult found = GetPart(Open(options).get(), "a", 0, 1, &got);
  setenv("no_proxy", "127.0.0.1", 1);
  CHECK(GetPart(Open(options).get(), "a", 0, 1, &got).ok());
  options.proxy = "http://127.0.0.1:9";
  const StoreResult asked = GetPart(Open(options).get(), "a", 0, 1, &got);
  unsetenv("http_proxy");
  unsetenv("no_proxy");
  INFO(found.status.ToString() << asked.status.ToString());
  CHECK(CodeOf(found) == StoreCode::kUnreachable);
  CHECK(found.status.ToString().find("http_proxy") != std::string::npos);
  CHECK(CodeOf(asked) == StoreCode::kUnreachable);
  CHECK(asked.status.ToString().find("the proxy of the options") !=
        std::string::npos);
}

TEST_CASE("Retry-After is obeyed up to five minutes", "[archive]") {
  HttpAnswer answer;
  CHECK(RetryAfter(answer, 0).count() == 0);
  answer.headers["retry-after"] = "7";
  CHECK(RetryAfter(answer, 0).count() == 7);
  answer.headers["retry-after"] = "100000";
  CHECK(RetryAfter(answer, 0).count() == 300);
  answer.headers["date"] = "Wed, 25 Nov 2026 16:34:29 GMT";
  answer.headers["retry-after"] = "Wed, 25 Nov 2026 16:35:29 GMT";
  CHECK(RetryAfter(answer, 0).count() == 60);
  answer.headers["retry-after"] = "Wed, 25 Nov 2026 16:30:29 GMT";
  CHECK(RetryAfter(answer, 0).count() == 0);
  answer.headers["retry-after"] = "soon";
  CHECK(RetryAfter(answer, 0).count() == 0);
}

TEST_CASE("A put whose answer is lost is repeated", "[archive]") {
  std::atomic<int> lost{1};
  FakeS3 server(nullptr, [&](const FakeRequest&, FakeAnswer* answer) {
    if (lost-- > 0) {
      answer->close_after = 0;
    }
  });
  const auto store = Open(OptionsOf(server));
  CHECK(CodeOf(PutBytes(store.get(), "a", "x", false)) == StoreCode::kOk);
  lost = 1;
  // The first try succeeded, so the second finds the object: the caller must
  // compare it.
  CHECK(CodeOf(PutBytes(store.get(), "b", "x", true)) == StoreCode::kExists);
  CHECK(server.Objects().at("/b/p/b") == "x");

}

TEST_CASE("An upload whose last answer is lost counts by the object's size",
          "[archive]") {
  // What has become of the object when the answer is lost.
  const std::string found = GENERATE("", "bytes", "more bytes");
  FakeS3* self = nullptr;
  bool is_lost = false;
  FakeS3 server(nullptr, [&](const FakeRequest& request, FakeAnswer* answer) {
    if (request.method == "POST" && request.query.count("uploadId") != 0 &&
        !is_lost) {
      is_lost = true;
      answer->close_after = 0;
      self->Set(request.path, found);
    }
  });
  self = &server;
  const auto store = Open(OptionsOf(server));
  CHECK(CodeOf(PutBytes(store.get(), "a", "bytes", false, {}, 3)) ==
        (found == "bytes" ? StoreCode::kOk : StoreCode::kAbsent));
  CHECK(is_lost);
}

TEST_CASE("An upload that fails is aborted, and what a crash left is removed",
          "[archive]") {
  bool may_abort = true;
  bool has_time = true;
  FakeS3 server(
      [&](const FakeRequest& request) -> std::optional<FakeAnswer> {
        if ((request.method == "DELETE" && !may_abort) ||
            (request.query.count("partNumber") != 0 &&
             request.query.at("partNumber") == "2")) {
          return FakeError(403, "AccessDenied");
        }
        return std::nullopt;
      },
      [&](const FakeRequest&, FakeAnswer* answer) {
        const size_t time = answer->body.find("2026-11-25T12:00:00Z");
        if (!has_time && time != std::string::npos) {
          answer->body.replace(time, 20, "yesterday");
        }
      });
  const auto store = Open(OptionsOf(server));
  const auto remove = [&](UnixSeconds before, const std::string& of) {
    uint64_t removed = 0;
    CHECK(CodeOf(store->RemoveUploads(
              before, [&](const std::string& key) { return key == of; },
              &removed)) == StoreCode::kOk);
    return removed;
  };
  constexpr UnixSeconds kBegun = 1'795'608'000;
  CHECK(CodeOf(PutBytes(store.get(), "a", "bytes", false, {}, 3)) ==
        StoreCode::kDenied);
  CHECK(remove(kBegun + 1, "a") == 0);
  may_abort = false;
  CHECK(CodeOf(PutBytes(store.get(), "a", "bytes", false, {}, 3)) ==
        StoreCode::kDenied);
  may_abort = true;
  CHECK(remove(0, "a") == 0);
  CHECK(remove(kBegun, "a") == 0);
  CHECK(remove(kBegun + 1, "b") == 0);
  has_time = false;
  CHECK(remove(kBegun + 1, "a") == 0);
  has_time = true;
  CHECK(remove(kBegun + 1, "a") == 1);
  CHECK(remove(kBegun + 1, "a") == 0);
  CHECK(server.Objects().empty());
}

TEST_CASE("A list with false entries is not the store's list", "[archive]") {
  std::string body;
  FakeS3 server([&](const FakeRequest&) -> std::optional<FakeAnswer> {
    FakeAnswer answer;
    answer.body = body;
    return answer;
  });
  const auto store = Open(TriedOnceOptions(server));
  const std::string last = "<IsTruncated>false</IsTruncated>";
  const auto page = [&last](const std::string& keys,
                            const std::string& more = "") {
    std::string xml = "<ListBucketResult>" + (more.empty() ? last : more);
    for (size_t at = 0; at < keys.size();) {
      const size_t comma = std::min(keys.find(',', at), keys.size());
      xml += "<Contents><Key>" + keys.substr(at, comma - at) +
             "</Key><Size>1</Size></Contents>";
      at = comma + 1;
    }
    return xml + "</ListBucketResult>";
  };
  std::string thousand_and_one;
  for (int i = 0; i < 1001; ++i) {
    thousand_and_one += (i == 0 ? "p/" : ",p/") + std::to_string(10'000 + i);
  }
  ListPage got;
  const std::string next =
      "<NextContinuationToken>next</NextContinuationToken>";
  const std::vector<std::string> lies = {
      page("q/b"), page("p"), page(thousand_and_one), "",
      "rubbish", "<Other/>", page("p/b") + "<",
      "<ListBucketResult>" + last + "<Contents/></ListBucketResult>",
      "<ListBucketResult>" + last + "<Contents><Key>p/b</Key><Size>-1</Size>"
      "</Contents></ListBucketResult>",
      "<ListBucketResult>" + last + "<Contents><Key>p/b</Key>"
      "<Size>99999999999999999999</Size></Contents></ListBucketResult>",
      std::string(5u << 20, ' ') + page("p/b"),
      // It is unknown whether these are the last page.
      page("p/b", next), page("p/b", "<Other/>"),
      page("p/b", "<IsTruncated>True</IsTruncated>" + next),
      page("p/b", "<IsTruncated>1</IsTruncated>" + next),
      page("p/b", "<IsTruncated> true</IsTruncated>" + next)};
  for (const std::string& lie : lies) {
    INFO(lie.substr(0, 200));
    body = lie;
    const StoreResult listed = store->List("", "a", &got);
    INFO(listed.status.ToString());
    CHECK(CodeOf(listed) == StoreCode::kUnreachable);
  }
  // These answers are lists of a store, but wrong: a token of the next page is
  // missing, or a key occurs twice.
  for (const std::string& lie :
       {page("", "<IsTruncated>true</IsTruncated>"), page("p/b,p/b")}) {
    INFO(lie);
    body = lie;
    CHECK(CodeOf(store->List("", "a", &got)) == StoreCode::kDamaged);
  }
  body = page("p/b,p/c d,p/e");
  REQUIRE(store->List("", "a", &got).ok());
  CHECK(got.objects.size() == 2);
  CHECK(got.foreign == 1);
}

TEST_CASE("A store that returns the same page again is reported as such",
          "[archive]") {
  const bool has_objects = GENERATE(true, false);
  FakeS3 server([&](const FakeRequest&) -> std::optional<FakeAnswer> {
    FakeAnswer answer;
    answer.body = "<ListBucketResult><IsTruncated>true</IsTruncated>"
                  "<NextContinuationToken>next</NextContinuationToken>";
    for (const char* key : {"p/files/1", "p/files/2"}) {
      answer.body += has_objects ? "<Contents><Key>" + std::string(key) +
                                       "</Key><Size>1</Size></Contents>"
                                 : "";
    }
    answer.body += "</ListBucketResult>";
    return answer;
  });
  const auto store = Open(OptionsOf(server));
  std::vector<ObjectInfo> objects;
  const StoreResult listed = ListAll(store.get(), "files/", 10'000, &objects);
  INFO(listed.status.ToString());
  CHECK(CodeOf(listed) == StoreCode::kUnsupported);
  CHECK(listed.status.ToString().find(
            "ignores both continuation-token and start-after") !=
        std::string::npos);
  CHECK(server.requests() < 10);
}

TEST_CASE("A list that is not ordered is collected and sorted", "[archive]") {
  // 2,500 keys, shuffled, in pages of 1,000 that a token continues.
  std::vector<std::string> keys;
  for (int i = 0; i < 2500; ++i) {
    keys.push_back("p/files/" + std::to_string(10'000 + i * 1237 % 2500));
  }
  FakeS3 server([&](const FakeRequest& request) -> std::optional<FakeAnswer> {
    if (request.query.count("list-type") == 0) {
      return std::nullopt;
    }
    const auto token = request.query.find("continuation-token");
    const size_t begin =
        token == request.query.end() ? 0 : std::stoull(token->second);
    const size_t end = std::min<size_t>(begin + 1000, keys.size());
    FakeAnswer answer;
    answer.body =
        end < keys.size()
            ? "<ListBucketResult><IsTruncated>true</IsTruncated>"
              "<NextContinuationToken>" + std::to_string(end) +
                  "</NextContinuationToken>"
            : "<ListBucketResult><IsTruncated>false</IsTruncated>";
    for (size_t i = begin; i < end; ++i) {
      answer.body += "<Contents><Key>" + keys[i] + "</Key><Size>" +
                     std::to_string(i) + "</Size></Contents>";
    }
    answer.body += "</ListBucketResult>";
    return answer;
  });
  const auto store = Open(OptionsOf(server));
  std::vector<ObjectInfo> objects;
  REQUIRE(ListAll(store.get(), "files/", 10'000, &objects).ok());
  REQUIRE(objects.size() == 2500);
  for (int i = 0; i < 2500; ++i) {
    REQUIRE(objects[static_cast<size_t>(i)].key ==
            "files/" + std::to_string(10'000 + i));
  }
  ListPage page;
  REQUIRE(store->List("files/", "files/12498", &page).ok());
  REQUIRE(page.objects.size() == 1);
}

TEST_CASE("A bucket with Object Lock gets the checksums that it requires",
          "[archive]") {
  std::atomic<int> refused{0};
  FakeS3 server([&](const FakeRequest& request) -> std::optional<FakeAnswer> {
    const bool is_begin =
        request.method == "POST" && request.query.count("uploads") != 0;
    if ((request.method == "PUT" &&
         request.headers.count("x-amz-checksum-sha256") == 0) ||
        (is_begin && request.headers.count("x-amz-checksum-algorithm") == 0)) {
      refused++;
      return FakeError(400, "InvalidRequest");
    }
    if (request.method == "POST" && request.query.count("uploadId") != 0 &&
        request.body.find("<ChecksumSHA256>") == std::string::npos) {
      return FakeError(400, "InvalidRequest");
    }
    return std::nullopt;
  });
  const auto store = Open(OptionsOf(server));
  ArchiveHead head;
  std::vector<std::string> notes;
  const rocksdb::Status made = InitArchive(store.get(), {}, &head, &notes);
  INFO(made.ToString());
  REQUIRE(made.ok());
  CHECK(refused == 0);
}

TEST_CASE("A server that does not support checksums gets only one",
          "[archive]") {
  std::atomic<int> refused{0};
  FakeS3 server([&](const FakeRequest& request) -> std::optional<FakeAnswer> {
    for (const auto& [name, value] : request.headers) {
      if (name.starts_with("x-amz-checksum")) {
        refused++;
        return FakeError(501, "NotImplemented");
      }
    }
    return std::nullopt;
  });
  const auto store = Open(OptionsOf(server));
  for (int i = 0; i < 3; ++i) {
    REQUIRE(
        PutBytes(store.get(), "key" + std::to_string(i), "bytes", true).ok());
  }
  REQUIRE(PutBytes(store.get(), "large", "bytes", true, {}, 5).ok());
  CHECK(refused == 1);
}

TEST_CASE("A small put is sent without 'Expect: 100-continue'", "[archive]") {
  std::atomic<int> asked{0};
  FakeS3 server([&](const FakeRequest& request) -> std::optional<FakeAnswer> {
    asked += static_cast<int>(request.headers.count("expect"));
    return std::nullopt;
  });
  const auto store = Open(OptionsOf(server));
  for (const size_t bytes : {0u, 1u, 100'000u, (1u << 20) - 1}) {
    REQUIRE(PutBytes(store.get(), "key-" + std::to_string(bytes),
                     std::string(bytes, 'x'), false)
                .ok());
  }
  CHECK(asked == 0);
}

TEST_CASE("Init names what a bucket cannot do, with the server's answer",
          "[archive]") {
  enum class Fault { kPut, kLength, kRange, kList, kParts, kAbsent, kAllAbsent };
  const Fault fault =
      GENERATE(Fault::kPut, Fault::kLength, Fault::kRange, Fault::kList,
               Fault::kParts, Fault::kAbsent, Fault::kAllAbsent);
  FakeS3 server(
      [&](const FakeRequest& request) -> std::optional<FakeAnswer> {
        const bool is_list = request.query.count("list-type") != 0;
        if ((fault == Fault::kPut && request.method == "PUT") ||
            (fault == Fault::kList && is_list) ||
            (fault == Fault::kParts && request.query.count("uploads") != 0 &&
             request.method == "POST")) {
          return FakeError(403, "AccessDenied");
        }
        return std::nullopt;
      },
      [&](const FakeRequest& request, FakeAnswer* answer) {
        if (fault == Fault::kLength && request.method == "HEAD" &&
            answer->status == 200) {
          answer->content_length = "unknown";
        }
        if (fault == Fault::kRange && answer->status == 206) {
          answer->status = 200;
          answer->headers.erase("Content-Range");
        }
        if (answer->status == 404 &&
            (fault == Fault::kAllAbsent ||
             (fault == Fault::kAbsent &&
              request.path.find("-absent") != std::string::npos))) {
          answer->status = 403;
          answer->body.clear();
        }
      });
  StoreOptions options = OptionsOf(server);
  options.timeouts.retry = milliseconds(0);
  const auto store = Open(options);
  ArchiveHead head;
  std::vector<std::string> notes;
  const rocksdb::Status status = InitArchive(store.get(), {}, &head, &notes);
  INFO(status.ToString());
  const std::map<Fault, std::pair<const char*, const char*>> expected = {
      {Fault::kPut, {"status 403 AccessDenied", "(s3:PutObject)"}},
      {Fault::kLength, {"Content-Length", "its length"}},
      {Fault::kRange, {"found status 200", "(Range)"}},
      {Fault::kList, {"status 403 AccessDenied", "(s3:ListBucket)"}},
      {Fault::kParts, {"status 403 AccessDenied", "uploads in parts"}},
      {Fault::kAbsent, {"status 403", "that an object is missing"}},
      {Fault::kAllAbsent, {"ARCHIVE: status 403", "the right s3:ListBucket"}}};
  REQUIRE_FALSE(status.ok());
  CHECK(EndStateOf(status) != EndState::kCorrupt);
  const auto& [answer, need] = expected.at(fault);
  const size_t at = status.ToString().find(answer);
  CHECK(at != std::string::npos);
  CHECK(status.ToString().find(need) > at);
  CHECK(status.ToString().find(need) != std::string::npos);
  CHECK(server.Objects().count("/b/p/ARCHIVE") == 0);
}

TEST_CASE("A clock that is wrong is named with both times", "[archive]") {
  FakeS3 server([&](const FakeRequest& request) -> std::optional<FakeAnswer> {
    FakeAnswer answer = FakeError(403, "RequestTimeTooSkewed");
    answer.headers["Date"] = "Wed, 25 Nov 2026 12:00:00 GMT";
    if (request.method == "HEAD") {
      answer.body.clear();
    }
    return answer;
  });
  CredentialWorld world = World();
  world.now = [] { return UnixSeconds{1'795'608'000 + 3600}; };  // 13:00
  const auto store = Open(OptionsOf(server), world);
  const StoreResult put = PutBytes(store.get(), "a", "x", false);
  CHECK(CodeOf(put) == StoreCode::kSignatureRefused);
  CHECK(put.status.ToString().find(
            "this machine's clock is 3600 s ahead of the store's: "
            "20261125T130000Z here, 20261125T120000Z there") !=
        std::string::npos);
  ObjectInfo info;
  CHECK(CodeOf(store->Head("a", &info)) == StoreCode::kSignatureRefused);
}

TEST_CASE("A put with a given signing time is never signed with another time",
          "[archive]") {
  std::mutex mu;
  std::vector<std::string> dates;
  FakeS3 server([&](const FakeRequest& request) -> std::optional<FakeAnswer> {
    std::lock_guard<std::mutex> lock(mu);
    dates.push_back(request.headers.at("x-amz-date"));
    return FakeError(dates.size() < 3 ? 500 : 403,
                     dates.size() < 3 ? "InternalError"
                                      : "RequestTimeTooSkewed");
  });
  std::atomic<UnixSeconds> now{1'795'608'000};
  CredentialWorld world = World();
  world.now = [&] { return now += 1; };
  const auto store = Open(OptionsOf(server), world);
  CHECK(CodeOf(PutBytes(store.get(), "a", "x", true, 1'795'600'000)) ==
        StoreCode::kSignatureRefused);
  REQUIRE(dates.size() == 3);
  CHECK(std::count(dates.begin(), dates.end(), SigningDate(1'795'600'000)) ==
        3);
}

TEST_CASE("Credentials that the store calls expired are requested again",
          "[archive]") {
  std::mutex mu;
  std::vector<std::string> tokens;
  FakeS3 server([&](const FakeRequest& request) -> std::optional<FakeAnswer> {
    std::lock_guard<std::mutex> lock(mu);
    tokens.push_back(request.headers.at("x-amz-security-token"));
    return tokens.size() == 1
               ? std::optional<FakeAnswer>(FakeError(400, "ExpiredToken"))
               : std::nullopt;
  });
  StoreOptions options = OptionsOf(server);
  options.credentials_command =
      "echo '{\"Version\":1,\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"S\","
      "\"SessionToken\":\"'$$'\"}'";
  const auto store = Open(options);
  CHECK(CodeOf(PutBytes(store.get(), "a", "x", true)) == StoreCode::kOk);
  REQUIRE(tokens.size() == 2);
  CHECK(tokens[0] != tokens[1]);
}

TEST_CASE("A denied call says where the credentials are from, a missing bucket "
          "what to do",
          "[archive]") {
  FakeAnswer answer = FakeError(400, "ExpiredToken");
  FakeS3 server([&](const FakeRequest& request) {
    return request.method == "PUT" ? std::optional<FakeAnswer>(answer)
                                   : std::nullopt;
  });
  const auto store = Open(TriedOnceOptions(server));
  CHECK(MessageOf(PutBytes(store.get(), "a", "x", true).status)
            .ends_with(" ExpiredToken: as told; the credentials are from "
                       "AWS_ACCESS_KEY_ID"));
  answer = FakeError(404, "NoSuchBucket");
  ArchiveHead head;
  std::vector<std::string> notes;
  const std::string message =
      MessageOf(InitArchive(store.get(), {}, &head, &notes));
  CHECK(message.find("NoSuchBucket: ") != std::string::npos);
  CHECK(message.ends_with("; make the bucket first, or correct its name"));
}

TEST_CASE("A silent store is abandoned, and Cancel() ends a wait",
          "[archive]") {
  std::mutex mu;
  std::condition_variable changed;
  bool may_answer = false;
  std::atomic<int> waiting{0};
  FakeS3 server([&](const FakeRequest&) -> std::optional<FakeAnswer> {
    std::unique_lock<std::mutex> lock(mu);
    waiting++;
    changed.notify_all();
    changed.wait(lock, [&] { return may_answer; });
    return std::nullopt;
  });
  StoreOptions options = TriedOnceOptions(server);
  options.timeouts.peer = milliseconds(200);
  const StoreResult silent =
      PutBytes(Open(options).get(), "a", "x", true);
  CHECK(CodeOf(silent) == StoreCode::kUnreachable);
  CHECK(silent.status.ToString().find("no byte for 200 ms") !=
        std::string::npos);

  options = OptionsOf(server);
  options.until = Clock::now() + milliseconds(200);
  const StoreResult late = PutBytes(Open(options).get(), "a", "x", true);
  CHECK(CodeOf(late) == StoreCode::kUnreachable);
  CHECK(EndStateOf(late.status) == EndState::kDeadline);

  const auto store = Open(OptionsOf(server));
  const int before = waiting;
  StoreResult cancelled;
  std::thread caller(
      [&] { cancelled = PutBytes(store.get(), "a", "x", true); });
  {
    std::unique_lock<std::mutex> lock(mu);
    changed.wait(lock, [&] { return waiting > before; });
  }
  store->Cancel();
  caller.join();
  CHECK(CodeOf(cancelled) == StoreCode::kCancelled);
  CHECK(CodeOf(PutBytes(store.get(), "a", "x", true)) ==
        StoreCode::kCancelled);
  std::lock_guard<std::mutex> lock(mu);
  may_answer = true;
  changed.notify_all();
}

TEST_CASE("Deletes that a server refuses are tried one by one", "[archive]") {
  FakeAnswer batch;
  std::atomic<int> batches{0};
  FakeS3 server([&](const FakeRequest& request) -> std::optional<FakeAnswer> {
    if (request.query.count("delete") != 0) {
      batches++;
      return batch;
    }
    return std::nullopt;
  });
  for (const char* key : {"a", "b", "c"}) {
    server.Set(std::string("/b/p/") + key, "x");
  }
  batch.body =
      "<DeleteResult><Error><Key>p/b</Key><Code>InternalError</Code></Error>"
      "</DeleteResult>";
  const auto store = Open(OptionsOf(server));
  CHECK(CodeOf(store->Delete({"a", "b"})) == StoreCode::kOk);
  CHECK(server.Objects().size() == 1);
  // A store that says that an object is missing may be wrong.
  server.Set("/b/p/a", "x");
  batch.body =
      "<DeleteResult><Error><Key>p/a</Key><Code>NoSuchKey</Code></Error>"
      "</DeleteResult>";
  CHECK(CodeOf(store->Delete({"a", "b"})) == StoreCode::kOk);
  CHECK(server.Objects().size() == 1);
  batch = FakeError(501, "NotImplemented");
  CHECK(CodeOf(store->Delete({"c", "d"})) == StoreCode::kOk);
  CHECK(CodeOf(store->Delete({"c", "d"})) == StoreCode::kOk);
  CHECK(batches == 3);
  CHECK(server.Objects().empty());
}

TEST_CASE("The store's time is never taken from a cached answer", "[archive]") {
  std::map<std::string, std::string> headers;
  FakeS3 server(nullptr, [&](const FakeRequest&, FakeAnswer* answer) {
    answer->headers = headers;
  });
  const auto store = Open(OptionsOf(server));
  headers = {{"Date", "Wed, 25 Nov 2026 12:00:00 GMT"}};
  UnixSeconds now = 0;
  CHECK(CodeOf(store->Now(&now)) == StoreCode::kOk);
  CHECK(now == 1'795'608'000);
  headers["Age"] = "3600";
  CHECK(CodeOf(store->Now(&now)) == StoreCode::kDamaged);
  headers = {{"Date", "25 Nov 2026"}};
  CHECK(CodeOf(store->Now(&now)) == StoreCode::kDamaged);
}

TEST_CASE("Options that no request can have are refused", "[archive]") {
  std::unique_ptr<ObjectStore> store;
  const auto state = [&](const std::function<void(StoreOptions*)>& change) {
    StoreOptions options;
    options.where.bucket = "bucket";
    change(&options);
    return EndStateOf(MakeS3Store(options, World(), &store));
  };
  CHECK(state([](StoreOptions*) {}) == EndState::kOk);
  CHECK(state([](StoreOptions* o) { o->endpoint = "ftp://a"; }) ==
        EndState::kRefused);
  CHECK(state([](StoreOptions* o) { o->endpoint = "http://a/b"; }) ==
        EndState::kRefused);
  CHECK(state([](StoreOptions* o) { o->endpoint = "http://u:p@a"; }) ==
        EndState::kRefused);
  CHECK(state([](StoreOptions* o) { o->region = "a b"; }) ==
        EndState::kRefused);
  CHECK(state([](StoreOptions* o) { o->storage_class = "A\nb"; }) ==
        EndState::kRefused);
  CHECK(state([](StoreOptions* o) { o->where.bucket = "a/b"; }) ==
        EndState::kRefused);
  CHECK(state([](StoreOptions* o) { o->where.prefix = "a b"; }) ==
        EndState::kRefused);
}

}  // namespace sstferry::s3_store_test
