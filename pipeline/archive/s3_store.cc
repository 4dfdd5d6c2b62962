#include "pipeline/archive/s3_store.h"

#include <openssl/evp.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <map>
#include <mutex>
#include <optional>

#include "format/end_state.h"
#include "format/printable.h"
#include "pipeline/archive/connection_gate.h"
#include "pipeline/archive/http_client.h"
#include "pipeline/archive/s3_answer.h"
#include "pipeline/archive/s3_xml.h"
#include "pipeline/archive/url.h"
#include "pipeline/base/stop_signal.h"
#include "pipeline/pull/backoff.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;
using std::chrono::milliseconds;

constexpr milliseconds kFirstWait{100};
constexpr milliseconds kLongestWait{20'000};
constexpr std::chrono::minutes kBetweenReports{1};
// Maximum number of wrong answers to one call that reads an object. An answer
// is wrong if it does not fit the request: for example, a cache sends an
// outdated object. An answer that an object is missing also counts, because a
// proxy may have sent it.
constexpr int kMaxDamagedAnswers = 3;
constexpr int kMaxRenewals = 3;
// Maximum number of pages without a key in succession.
constexpr int kMaxEmptyPages = 1000;
constexpr size_t kMaxETagBytes = 256;

// One call of the store. It may take several requests.
struct Ask {
  std::string method;
  std::string path;
  std::map<std::string, std::string> query;
  std::map<std::string, std::string> headers;
  const ByteSource* body = nullptr;
  Sha256Digest sha256 = Sha256Of("");
  bool if_absent = false;
  std::optional<UnixSeconds> signed_at;
  // Changes the request before each attempt, so that it continues where the
  // previous attempt ended.
  std::function<void(Ask* ask)> prepare;
  // Like HttpExchange::streams and HttpExchange::sink.
  std::function<bool(const HttpAnswer& answer)> streams;
  ObjectSink sink;
  // Checks that a successful answer fits the request. If null, accepts every
  // answer.
  std::function<Status(const HttpAnswer& answer)> accept;
  // Increases when the call makes progress. Then the time for retries starts
  // again.
  const std::atomic<uint64_t>* progress = nullptr;
};

std::string Base64(const unsigned char* digest, size_t n) {
  unsigned char text[64];
  const int length = EVP_EncodeBlock(text, digest, static_cast<int>(n));
  return {reinterpret_cast<const char*>(text), static_cast<size_t>(length)};
}

std::string ContentMd5(const std::string& bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int n = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest, &n, EVP_md5(), nullptr);
  return Base64(digest, n);
}

// Header with the SHA-256 of an object. Buckets with Object Lock require it.
constexpr char kChecksumHeader[] = "x-amz-checksum-sha256";
std::string ChecksumOf(const Sha256Digest& sha256) {
  return Base64(sha256.data(), sha256.size());
}

// A header like "bytes 0-9/100".
struct ContentRange {
  uint64_t first = 0;
  uint64_t last = 0;
  uint64_t size = 0;
};
bool ParseContentRange(const std::string& text, ContentRange* range) {
  unsigned long long first = 0;
  unsigned long long last = 0;
  unsigned long long size = 0;
  int end = 0;
  if (text.size() > 100 ||
      std::sscanf(text.c_str(), "bytes %20llu-%20llu/%20llu%n", &first, &last,
                  &size, &end) != 3 ||
      static_cast<size_t>(end) != text.size() || first > last || last >= size) {
    return false;
  }
  *range = {first, last, size};
  return true;
}

// Returns the ETag of an answer. Returns an empty text if it is missing, weak
// or malformed. The ETag is needed to continue an interrupted answer, and to
// complete an upload.
std::string ETagOf(const HttpAnswer& answer) {
  std::string etag = answer.Header("etag");
  const bool is_good = etag.size() <= kMaxETagBytes &&
                       std::all_of(etag.begin(), etag.end(), [](char c) {
                         return c > 0x20 && c < 0x7f;
                       });
  return is_good && !etag.starts_with("W/") ? etag : "";
}

Status NotAnAnswer(const std::string& what) {
  return MakeStatus(EndState::kCorrupt, what);
}

bool IsBucketName(const std::string& bucket) {
  return bucket.size() >= 1 && bucket.size() <= 255 &&
         IsStoreKey(bucket) && bucket.find('/') == std::string::npos;
}

class S3Store : public ObjectStore {
 public:
  S3Store(const StoreOptions& options, CredentialWorld world, const Url& url,
          const std::string& bucket_path, const std::string& region);

  void Cancel() override {
    stop_.Stop();
    gate_.Close();
    http_.Cancel();
    credentials_.Cancel();
  }
  const std::string& place() const override { return place_; }

  StoreResult Now(UnixSeconds* now) override;
  UnixSeconds SigningTime() const override { return now_(); }
  StoreResult Put(const PutRequest& request) override;
  StoreResult GetUnproven(const GetRequest& request,
                          const ObjectSink& sink) override;
  StoreResult HeadUnproven(const std::string& key, ObjectInfo* info) override;
  StoreResult List(const std::string& prefix, const std::string& after,
                   ListPage* page) override;
  StoreResult Delete(const std::vector<std::string>& keys) override;
  StoreResult RemoveUploads(
      UnixSeconds before,
      const std::function<bool(const std::string& key)>& may_remove,
      uint64_t* removed) override;

 private:
  // The meaning of an answer to one request.
  struct Tried {
    S3Verdict verdict;
    std::chrono::seconds retry_after{0};
    Status caller;
  };

  // Returns the key in the bucket: the prefix of the archive, and `key`.
  std::string Whole(const std::string& key) const { return prefix_ + key; }
  std::string PathOf(const std::string& key) const {
    return bucket_path_ + "/" + Whole(key);
  }
  StoreResult BadKey(const std::string& key) const {
    return StoreError(StoreCode::kInternal,
                      "not a valid key of a store: " + Printable(key));
  }
  void ReportRetry(const std::string& error);
  StoreResult Run(const std::string& what, Ask ask, HttpAnswer* answer);
  // Calls Run() with a checksum header. If the store does not support the
  // header, calls Run() without it. Sets *sent to true if the store accepted
  // the header.
  StoreResult RunChecked(const std::string& what, const Ask& ask,
                         const std::string& header, const std::string& value,
                         HttpAnswer* answer, bool* sent);
  Tried Try(const Ask& ask, HttpAnswer* answer);
  // Puts a large object in parts.
  StoreResult Upload(const PutRequest& request);
  StoreResult BeginUpload(const std::string& key, std::string* upload_id);
  // Puts the next part of an upload, and adds it to *parts.
  StoreResult PutPart(const std::string& key, const std::string& upload_id,
                      const ByteSource& bytes, const Sha256Digest& sha256,
                      std::vector<S3Part>* parts);
  // Completes an upload, so that its parts become the object. kAbsent: the
  // upload does not exist. No earlier attempt has completed it, because there
  // is no object with this key and size.
  StoreResult CompleteUpload(const PutRequest& request,
                             const std::string& upload_id,
                             const std::vector<S3Part>& parts);
  // Removes an upload and its parts. Also returns kOk if the upload does not
  // exist.
  StoreResult AbortUpload(const std::string& key,
                          const std::string& upload_id);
  // Sets the storage class for a file or a segment. Other objects get the
  // default class of the bucket, because every command must be able to read
  // them.
  void AddStorageClass(const std::string& key, Ask* ask) const;
  StoreResult DeleteEach(const std::vector<std::string>& keys);
  // Lists one page. Sets *in_order to true if the keys ascend and are after
  // `after`.
  StoreResult ListRaw(const std::string& prefix, const std::string& after,
                      const std::string& token, S3Listing* listing,
                      bool* in_order);
  // Runs the request for a page of a list. If the page has cold objects, asks
  // for it again with the header that makes stores list which objects were
  // restored, unless this store refuses the header.
  StoreResult RunList(const std::string& what, const Ask& ask,
                      S3Listing* listing, bool* in_order);
  StoreResult NoToken(const std::string& prefix) const;
  StoreResult DoesNotContinue(const std::string& prefix) const;
  StoreResult ListUnordered(const std::string& prefix,
                            const std::string& after, ListPage* page);
  void AddToPage(std::vector<ObjectInfo>* objects, ListPage* page) const;

  const StoreOptions options_;
  const std::function<UnixSeconds()> now_;
  const Url url_;
  const std::string bucket_path_;  // "" or "/BUCKET"
  const std::string prefix_;       // "" or "fleet/orders/"
  const std::string region_;
  const std::string place_;
  HttpClient http_;
  CredentialChain credentials_;
  ConnectionGate gate_;
  StopSignal stop_;
  std::mutex reported_mu_;
  // Time of the last call of on_retry().
  std::optional<Clock::time_point> reported_;
  std::atomic<bool> has_batch_delete_{true};
  std::atomic<bool> has_checksums_{true};
  std::atomic<bool> has_restore_status_{true};
  std::atomic<bool> lists_in_order_{true};
};

std::function<UnixSeconds()> ClockOf(const CredentialWorld& world) {
  return world.now ? world.now
                   : [] { return static_cast<UnixSeconds>(std::time(nullptr)); };
}

S3Store::S3Store(const StoreOptions& options, CredentialWorld world,
                 const Url& url, const std::string& bucket_path,
                 const std::string& region)
    : options_(options),
      now_(ClockOf(world)),
      url_(url),
      bucket_path_(bucket_path),
      prefix_(options.where.prefix.empty() ? ""
                                           : options.where.prefix + "/"),
      region_(region),
      place_(options.where.ToString()),
      http_({.proxy = options.proxy,
             .ca_file = options.ca_file,
             .connect = options.timeouts.connect,
             .idle = options.timeouts.peer}),
      credentials_(options, std::move(world)),
      gate_(std::clamp(options.connections, 1u, kMaxStoreConnections)) {}

S3Store::Tried S3Store::Try(const Ask& ask, HttpAnswer* answer) {
  Tried tried;
  Credentials credentials;
  if (const Status got = credentials_.Get(&credentials); !got.ok()) {
    const EndState state = EndStateOf(got);
    tried.verdict.code = state == EndState::kCancelled ? StoreCode::kCancelled
                         : state == EndState::kDeadPeer
                             ? StoreCode::kUnreachable
                             : StoreCode::kDenied;
    tried.verdict.again = state == EndState::kDeadPeer;
    tried.verdict.what = MessageOf(got);
    return tried;
  }
  HttpRequest request;
  request.method = ask.method;
  request.host = url_.host_port();
  request.path = ask.path;
  request.query = ask.query;
  request.headers = ask.headers;
  const bool reads_object =
      ask.method == "HEAD" || (ask.method == "GET" && ask.query.empty());
  // If a read of an object returns wrong bytes, the object may be damaged. If
  // any other answer does not fit its request, it does not come from the store:
  // while a proxy has no route to the store, it shows a page, perhaps with
  // status 200. The list of uploads is an exception, because some stores do not
  // know this request.
  const bool lists_uploads =
      ask.method == "GET" && ask.query.count("uploads") != 0;
  const StoreCode wrong_answer = reads_object || lists_uploads
                                     ? StoreCode::kDamaged
                                     : StoreCode::kUnreachable;
  SignRequest(credentials, region_, ask.sha256,
              ask.signed_at.value_or(now_()), &request);
  const HttpResult result = http_.Perform({.scheme = url_.scheme,
                                           .request = &request,
                                           .body = ask.body,
                                           .streams = ask.streams,
                                           .sink = ask.sink,
                                           .max_body_bytes = kMaxXmlBytes,
                                           .until = options_.until},
                                          answer);
  tried.verdict.what = result.what;
  switch (result.end) {
    case HttpEnd::kAnswered:
      tried.verdict = JudgeAnswer(
          {.if_absent = ask.if_absent,
           .reads_object = reads_object,
           .is_head = ask.method == "HEAD",
           .proves_absence =
               ask.query.empty() &&
               (ask.method == "HEAD" || ask.method == "GET" ||
                ask.method == "DELETE")},
          *answer, now_());
      if (tried.verdict.code == StoreCode::kDenied) {
        tried.verdict.what += "; the credentials are from " +
                              credentials.source;
      }
      tried.retry_after = RetryAfter(*answer, now_());
      if (tried.verdict.renew) {
        credentials_.Renew(credentials);
      }
      if (tried.verdict.code == StoreCode::kOk && ask.accept) {
        if (const Status accepted = ask.accept(*answer); !accepted.ok()) {
          tried.verdict.code = wrong_answer;
          tried.verdict.again = true;
          tried.verdict.what = MessageOf(accepted);
        }
      }
      if (ask.signed_at.has_value() &&
          tried.verdict.code == StoreCode::kSignatureRefused) {
        tried.verdict.again = false;
      }
      break;
    case HttpEnd::kNoConnection:
    case HttpEnd::kBroken:
      tried.verdict.code = StoreCode::kUnreachable;
      tried.verdict.again = true;
      break;
    case HttpEnd::kNotTrusted:
      tried.verdict.code = StoreCode::kDenied;
      tried.verdict.what += "; give --ca-file with the CA that signed its "
                            "certificate";
      break;
    case HttpEnd::kTooLarge:
      tried.verdict.code = wrong_answer;
      tried.verdict.again = true;
      break;
    case HttpEnd::kDeadline:
      tried.verdict.code = StoreCode::kUnreachable;
      break;
    case HttpEnd::kCancelled:
      tried.verdict.code = StoreCode::kCancelled;
      break;
    case HttpEnd::kCaller:
      tried.verdict.code = StoreCode::kCaller;
      tried.caller = result.caller;
      break;
  }
  return tried;
}

void S3Store::ReportRetry(const std::string& error) {
  if (!options_.on_retry) {
    return;
  }
  {
    const std::lock_guard<std::mutex> lock(reported_mu_);
    const Clock::time_point now = Clock::now();
    if (reported_.has_value() && now - *reported_ < kBetweenReports) {
      return;
    }
    reported_ = now;
  }
  options_.on_retry(error);
}

StoreResult S3Store::Run(const std::string& what, Ask ask,
                         HttpAnswer* answer) {
  BackoffOptions waits;
  waits.first = kFirstWait;
  waits.longest = kLongestWait;
  waits.give_up_after = options_.timeouts.retry;
  if (ask.progress != nullptr) {
    waits.progress = [&ask] { return ask.progress->load(); };
  }
  Backoff backoff(waits);
  const Clock::time_point begun = Clock::now();
  int damaged = 0;
  int renewals = 0;
  while (true) {
    if (ask.prepare) {
      ask.prepare(&ask);
    }
    if (!gate_.Enter(options_.until)) {
      return stop_.stopped()
                 ? StoreError(StoreCode::kCancelled, what + ": cancelled")
                 : StoreResult{StoreCode::kUnreachable,
                               MakeStatus(EndState::kDeadline,
                                          what + ": not done in the time "
                                                 "allowed")};
    }
    const Tried tried = Try(ask, answer);
    gate_.Leave(tried.verdict.throttled, Clock::now());
    const S3Verdict& verdict = tried.verdict;
    if (verdict.code == StoreCode::kOk) {
      return {};
    }
    if (verdict.code == StoreCode::kCaller) {
      return {StoreCode::kCaller, tried.caller};
    }
    const std::string message = what + ": " + verdict.what;
    damaged += verdict.code == StoreCode::kDamaged ||
                       verdict.code == StoreCode::kAbsent
                   ? 1
                   : 0;
    renewals += verdict.renew ? 1 : 0;
    milliseconds wait{0};
    const bool may_try = verdict.again && damaged < kMaxDamagedAnswers &&
                         renewals <= kMaxRenewals && backoff.Next(&wait);
    const bool is_late = Clock::now() >= options_.until;
    if (is_late && (verdict.again || verdict.code == StoreCode::kUnreachable)) {
      return {verdict.code, MakeStatus(EndState::kDeadline, message)};
    }
    if (!may_try) {
      const auto tried_seconds =
          std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begun)
              .count();
      return StoreError(verdict.code,
                        verdict.again && tried_seconds > 0
                            ? message + "; tried for " +
                                  std::to_string(tried_seconds) + " s"
                            : message);
    }
    ReportRetry(message);
    wait = std::max(wait, milliseconds(tried.retry_after));
    if (options_.until != Clock::time_point::max()) {
      wait = std::clamp(
          std::chrono::ceil<milliseconds>(options_.until - Clock::now()),
          milliseconds(0), wait);
    }
    if (stop_.WaitFor(wait)) {
      return StoreError(StoreCode::kCancelled, what + ": cancelled");
    }
  }
}

StoreResult S3Store::RunChecked(const std::string& what, const Ask& ask,
                                const std::string& header,
                                const std::string& value, HttpAnswer* answer,
                                bool* sent) {
  const auto may_be_the_header = [answer](const StoreResult& result) {
    return (result.code == StoreCode::kInternal ||
            result.code == StoreCode::kUnsupported) &&
           (answer->status == 400 || answer->status == 501);
  };
  *sent = false;
  if (!has_checksums_) {
    return Run(what, ask, answer);
  }
  Ask checked = ask;
  checked.headers[header] = value;
  StoreResult result = Run(what, checked, answer);
  if (!may_be_the_header(result)) {
    *sent = true;
    return result;
  }
  StoreResult plain = Run(what, ask, answer);
  if (may_be_the_header(plain)) {
    return result;
  }
  has_checksums_ = false;
  return plain;
}

StoreResult S3Store::Now(UnixSeconds* now) {
  // Every answer contains the time, even an answer that an object is missing.
  // Ignores the answer of a cache, which contains an old time.
  Ask ask;
  ask.method = "HEAD";
  ask.path = PathOf("ARCHIVE");
  HttpAnswer answer;
  StoreResult result = Run("the time of " + place_, std::move(ask), &answer);
  const auto date = answer.Header("age").empty()
                        ? ParseHttpDate(answer.Header("date"))
                        : std::nullopt;
  if (date.has_value() &&
      (result.ok() || result.code == StoreCode::kAbsent)) {
    *now = *date;
    return {};
  }
  return result.ok() || result.code == StoreCode::kAbsent
             ? StoreError(StoreCode::kDamaged,
                          place_ + ": expected the time in a Date header, found "
                                   "none, or that of a cache")
             : result;
}

void S3Store::AddStorageClass(const std::string& key, Ask* ask) const {
  if (!options_.storage_class.empty() &&
      (key.starts_with(kArchiveFilesPrefix) ||
       key.starts_with(kArchivePartsPrefix) ||
       key.starts_with(kArchiveLogPrefix))) {
    ask->headers["x-amz-storage-class"] = options_.storage_class;
  }
}

StoreResult S3Store::Put(const PutRequest& request) {
  if (!IsStoreKey(request.key)) {
    return BadKey(request.key);
  }
  if (request.piece_bytes != 0) {
    return Upload(request);
  }
  return PutPieces(request, [&](uint64_t, const ByteSource& bytes,
                                const Sha256Digest& sha256) {
    Ask ask;
    ask.method = "PUT";
    ask.path = PathOf(request.key);
    ask.body = &bytes;
    ask.sha256 = sha256;
    ask.if_absent = request.if_absent;
    ask.signed_at = request.signed_at;
    if (request.if_absent) {
      ask.headers["if-none-match"] = "*";
    }
    AddStorageClass(request.key, &ask);
    // The answer of a store has the object's ETag. A page of a proxy may also
    // have status 200, but it has no ETag.
    ask.accept = [](const HttpAnswer& answer) {
      return answer.Header("etag").empty()
                 ? NotAnAnswer("expected the object's ETag, found none")
                 : Status::OK();
    };
    HttpAnswer answer;
    bool sent = false;
    return RunChecked("put " + Describe(request.key), ask, kChecksumHeader,
                      ChecksumOf(sha256), &answer, &sent);
  });
}

StoreResult S3Store::GetUnproven(const GetRequest& request,
                                 const ObjectSink& sink) {
  if (!IsStoreKey(request.key)) {
    return BadKey(request.key);
  }
  if (request.bytes == 0u) {
    // HTTP has no range of zero bytes.
    ObjectInfo found;
    return HeadUnproven(request.key, &found);
  }
  const std::string what = "get " + Describe(request.key);
  std::atomic<uint64_t> taken{0};
  // Size and ETag of the object. Set when the first answer arrives.
  uint64_t object_bytes = 0;
  std::string etag;
  // Total number of bytes to receive. If the caller did not give it, the first
  // answer sets it.
  std::optional<uint64_t> wanted = request.bytes;
  bool has_answer = false;
  bool is_ranged = false;
  std::string problem;
  // Reason why this store is not suitable for archives.
  std::string unfit;

  Ask ask;
  ask.method = "GET";
  ask.path = PathOf(request.key);
  ask.progress = &taken;
  ask.prepare = [&](Ask* next) {
    const uint64_t first = request.offset + taken;
    problem.clear();
    is_ranged = first > 0 || request.bytes.has_value();
    if (is_ranged) {
      next->headers["range"] =
          "bytes=" + std::to_string(first) + "-" +
          (wanted.has_value() ? std::to_string(request.offset + *wanted - 1)
                              : "");
    }
    if (!etag.empty()) {
      next->headers["if-match"] = etag;
    }
  };
  ask.streams = [&](const HttpAnswer& answer) {
    const uint64_t first = request.offset + taken;
    if (answer.status < 200 || answer.status >= 300) {
      return false;  // the body is an error document
    }
    unfit = ForeignEncoding(answer);
    if (is_ranged && answer.status == 200 && unfit.empty()) {
      unfit = "expected bytes from " + std::to_string(first) +
              " on with status 206, found status 200: the store, or a proxy in "
              "front of it, ignores Range, which an archive needs";
    }
    if (!unfit.empty()) {
      return false;
    }
    ContentRange range;
    if (is_ranged) {
      if (answer.status != 206 ||
          !ParseContentRange(answer.Header("content-range"), &range)) {
        problem = "expected bytes from " + std::to_string(first) +
                  " on, found an answer of status " +
                  std::to_string(answer.status) + " with the range '" +
                  Printable(answer.Header("content-range").substr(0, 100)) +
                  "'";
        return false;
      }
    } else {
      const auto length = answer.content_length();
      if (answer.status != 200 || !length.has_value()) {
        problem = "expected status 200 and a Content-Length, found another "
                  "answer";
        return false;
      }
      range = {0, *length == 0 ? 0 : *length - 1, *length};
    }
    const uint64_t end = range.size == 0 ? 0 : range.last + 1;
    if (!wanted.has_value() && range.size - std::min(range.size, first) >
                                   request.max_bytes) {
      problem = "expected at most " + std::to_string(request.max_bytes) +
                " bytes, found " + std::to_string(range.size);
      return false;
    }
    const uint64_t expected_end = wanted.has_value()
                                      ? request.offset + *wanted
                                      : range.size;
    if (range.first != first || end != expected_end) {
      problem = "expected bytes " + std::to_string(first) + " to " +
                std::to_string(expected_end) + ", found " +
                std::to_string(range.first) + " to " + std::to_string(end) +
                " of " + std::to_string(range.size);
      return false;
    }
    if (has_answer &&
        (range.size != object_bytes || ETagOf(answer) != etag)) {
      problem = "the object was replaced while it was read";
      return false;
    }
    has_answer = true;
    wanted = expected_end - request.offset;
    object_bytes = range.size;
    etag = ETagOf(answer);
    return true;
  };
  ask.sink = [&](const Slice& bytes) {
    if (bytes.size() > *wanted - taken) {
      problem = "expected " + std::to_string(*wanted) + " bytes, found more";
      return NotAnAnswer(problem);
    }
    RETURN_IF_ERROR(sink(bytes));
    taken += bytes.size();
    return Status::OK();
  };
  ask.accept = [&](const HttpAnswer&) {
    if (const std::string& wrong = unfit.empty() ? problem : unfit;
        !wrong.empty()) {
      return NotAnAnswer(wrong);
    }
    return taken == wanted ? Status::OK()
                           : NotAnAnswer("expected " +
                                         std::to_string(*wanted) +
                                         " bytes, found " +
                                         std::to_string(taken.load()));
  };
  HttpAnswer answer;
  StoreResult result = Run(what, std::move(ask), &answer);
  if (!unfit.empty() && result.code == StoreCode::kDamaged) {
    // The store or a proxy causes this fault, so the object is not damaged.
    return StoreError(StoreCode::kUnsupported, what + ": " + unfit);
  }
  if (!problem.empty() && (result.code == StoreCode::kCaller ||
                           result.code == StoreCode::kDamaged)) {
    // The answer has more bytes than requested, or the object is larger than
    // allowed.
    return StoreError(StoreCode::kDamaged, what + ": " + problem);
  }
  return result;
}

StoreResult S3Store::HeadUnproven(const std::string& key, ObjectInfo* info) {
  if (!IsStoreKey(key)) {
    return BadKey(key);
  }
  Ask ask;
  ask.method = "HEAD";
  ask.path = PathOf(key);
  ask.accept = [](const HttpAnswer& answer) {
    return answer.content_length().has_value()
               ? Status::OK()
               : NotAnAnswer("expected a Content-Length, found none");
  };
  HttpAnswer answer;
  StoreResult result = Run("look up " + Describe(key), std::move(ask), &answer);
  if (result.ok()) {
    *info = {key, *answer.content_length(),
             ParseHttpDate(answer.Header("last-modified")).value_or(0)};
  }
  return result;
}

StoreResult S3Store::ListRaw(const std::string& prefix,
                             const std::string& after,
                             const std::string& token, S3Listing* listing,
                             bool* in_order) {
  Ask ask;
  ask.method = "GET";
  ask.path = bucket_path_ + "/";
  ask.query = {{"encoding-type", "url"},
               {"list-type", "2"},
               {"max-keys", std::to_string(kMaxStorePage)},
               {"prefix", Whole(prefix)}};
  if (!after.empty()) {
    ask.query["start-after"] = Whole(after);
  }
  if (!token.empty()) {
    ask.query["continuation-token"] = token;
  }
  int empty_pages = 0;
  ask.accept = [&](const HttpAnswer& answer) {
    // Refuses a list from a cache, because pushes and prunes must know which
    // objects exist now.
    if (const std::string age = answer.Header("age");
        !age.empty() && age != "0") {
      return NotAnAnswer("expected the store's list, found that of a cache "
                         "with an Age of " + Printable(age) + " s");
    }
    RETURN_IF_ERROR(ParseS3Listing(answer.body, listing));
    std::string before = after.empty() ? "" : Whole(after);
    *in_order = true;
    for (const ObjectInfo& object : listing->objects) {
      if (!object.key.starts_with(Whole(prefix))) {
        return NotAnAnswer("expected keys that begin with '" + Whole(prefix) +
                           "', found '" + Printable(object.key) + "'");
      }
      *in_order &= object.key > before;
      before = object.key;
    }
    return Status::OK();
  };
  while (true) {
    StoreResult result =
        RunList("list " + Describe(prefix), ask, listing, in_order);
    if (!result.ok() || !listing->truncated || !listing->objects.empty()) {
      return result;
    }
    if (listing->next_token.empty()) {
      return NoToken(prefix);
    }
    if (listing->next_token == ask.query["continuation-token"]) {
      return DoesNotContinue(prefix);
    }
    // Some stores return empty pages for deleted objects.
    if (++empty_pages == kMaxEmptyPages) {
      return StoreError(StoreCode::kDamaged,
                        "list " + Describe(prefix) +
                            ": expected objects, found " +
                            std::to_string(kMaxEmptyPages) + " empty pages");
    }
    ask.query["continuation-token"] = listing->next_token;
  }
}

StoreResult S3Store::RunList(const std::string& what, const Ask& ask,
                             S3Listing* listing, bool* in_order) {
  HttpAnswer answer;
  StoreResult result = Run(what, ask, &answer);
  const bool has_cold = std::any_of(
      listing->objects.begin(), listing->objects.end(),
      [](const ObjectInfo& object) { return object.is_cold; });
  if (!result.ok() || !has_cold || !has_restore_status_) {
    return result;
  }
  const S3Listing plain = *listing;
  const bool plain_in_order = *in_order;
  Ask again = ask;
  again.headers["x-amz-optional-object-attributes"] = "RestoreStatus";
  result = Run(what, std::move(again), &answer);
  // The store has answered the same request without the header. So this error
  // means that it refuses the header.
  if (result.code == StoreCode::kInternal ||
      result.code == StoreCode::kUnsupported ||
      result.code == StoreCode::kDenied) {
    has_restore_status_ = false;
    *listing = plain;
    *in_order = plain_in_order;
    return {};
  }
  return result;
}

StoreResult S3Store::NoToken(const std::string& prefix) const {
  return StoreError(StoreCode::kDamaged,
                    "list " + Describe(prefix) +
                        ": expected the token of the next page, found none");
}

// Returns the error for a store that ignores the token of the next page.
// Without this error, sstferry would list the same page a thousand times, or
// take the repeated keys for damage.
StoreResult S3Store::DoesNotContinue(const std::string& prefix) const {
  return StoreError(
      StoreCode::kUnsupported,
      "list " + Describe(prefix) +
          ": expected the next page, found an earlier one again: the store, or "
          "a proxy in front of it, ignores both continuation-token and "
          "start-after; an archive needs at least one of them");
}

// Lists all objects, and sorts them by key. A store that lists in no order
// cannot continue a list after a key.
StoreResult S3Store::ListUnordered(const std::string& prefix,
                                   const std::string& after, ListPage* page) {
  std::map<std::string, ObjectInfo> found;
  std::string token;
  while (true) {
    S3Listing listing;
    bool in_order = false;
    if (StoreResult result = ListRaw(prefix, "", token, &listing, &in_order);
        !result.ok()) {
      return result;
    }
    for (ObjectInfo& object : listing.objects) {
      std::string key = object.key;
      const bool is_new =
          found.emplace(std::move(key), std::move(object)).second;
      if (!is_new && !token.empty()) {
        return DoesNotContinue(prefix);
      }
      if (!is_new || found.size() > kMaxStoreObjects) {
        return StoreError(StoreCode::kDamaged,
                          "list " + Describe(prefix) +
                              ": expected each object once, and at most " +
                              std::to_string(kMaxStoreObjects) +
                              ", found others");
      }
    }
    if (!listing.truncated) {
      break;
    }
    token = listing.next_token;
    if (token.empty()) {
      return NoToken(prefix);
    }
  }
  std::vector<ObjectInfo> objects;
  for (auto& [key, object] : found) {
    if (after.empty() || key > Whole(after)) {
      objects.push_back(std::move(object));
    }
  }
  AddToPage(&objects, page);
  return {};
}

void S3Store::AddToPage(std::vector<ObjectInfo>* objects,
                        ListPage* page) const {
  for (ObjectInfo& object : *objects) {
    object.key.erase(0, prefix_.size());
    if (IsStoreKey(object.key)) {
      page->objects.push_back(std::move(object));
    } else {
      page->foreign++;
    }
  }
}

StoreResult S3Store::List(const std::string& prefix, const std::string& after,
                          ListPage* page) {
  *page = {};
  if (lists_in_order_) {
    S3Listing listing;
    bool in_order = false;
    StoreResult result = ListRaw(prefix, after, "", &listing, &in_order);
    if (!result.ok()) {
      return result;
    }
    if (in_order) {
      page->more = listing.truncated;
      if (page->more) {
        page->next = listing.objects.back().key.substr(prefix_.size());
      }
      AddToPage(&listing.objects, page);
      return {};
    }
    lists_in_order_ = false;
  }
  return ListUnordered(prefix, after, page);
}

StoreResult S3Store::DeleteEach(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    StoreResult result = CallProven(key, [&] {
      Ask ask;
      ask.method = "DELETE";
      ask.path = PathOf(key);
      HttpAnswer answer;
      return Run("delete " + Describe(key), std::move(ask), &answer);
    });
    if (!result.ok() && result.code != StoreCode::kAbsent) {
      return result;
    }
  }
  return {};
}

StoreResult S3Store::Delete(const std::vector<std::string>& keys) {
  if (keys.size() > kMaxStorePage) {
    return StoreError(StoreCode::kInternal,
                      "delete: more keys than fit on one page");
  }
  std::vector<std::string> whole;
  for (const std::string& key : keys) {
    if (!IsStoreKey(key)) {
      return BadKey(key);
    }
    whole.push_back(Whole(key));
  }
  if (keys.size() <= 1 || !has_batch_delete_) {
    return DeleteEach(keys);
  }
  const std::string document = DeleteDocument(whole);
  const SliceSource body(document);
  S3Error refused;
  Ask ask;
  ask.method = "POST";
  ask.path = bucket_path_ + "/";
  ask.query = {{"delete", ""}};
  ask.headers["content-md5"] = ContentMd5(document);
  ask.headers["content-type"] = "application/xml";
  ask.body = &body;
  ask.sha256 = Sha256Of(document);
  ask.accept = [&](const HttpAnswer& answer) {
    return ParseDeleted(answer.body, &refused);
  };
  HttpAnswer answer;
  StoreResult result = Run("delete " + std::to_string(keys.size()) +
                               " objects of " + place_,
                           std::move(ask), &answer);
  if (result.code == StoreCode::kUnsupported) {
    has_batch_delete_ = false;
    return DeleteEach(keys);
  }
  if (!result.ok() || refused.code.empty()) {
    return result;
  }
  // Deletes the keys one by one, so that each key has its own answer and
  // retries, and a missing object is proved to be missing.
  return DeleteEach(keys);
}

StoreResult S3Store::Upload(const PutRequest& request) {
  std::string upload_id;
  StoreResult result = BeginUpload(request.key, &upload_id);
  if (!result.ok()) {
    return result;
  }
  std::vector<S3Part> parts;
  result = PutPieces(request, [&](uint64_t, const ByteSource& bytes,
                                  const Sha256Digest& sha256) {
    return PutPart(request.key, upload_id, bytes, sha256, &parts);
  });
  if (result.ok()) {
    result = CompleteUpload(request, upload_id, parts);
  }
  if (!result.ok()) {
    // If AbortUpload() fails, a prune removes the upload later.
    AbortUpload(request.key, upload_id).status.PermitUncheckedError();
  }
  return result;
}

StoreResult S3Store::BeginUpload(const std::string& key,
                                 std::string* upload_id) {
  const SliceSource nothing("");
  Ask ask;
  ask.method = "POST";
  ask.path = PathOf(key);
  ask.query = {{"uploads", ""}};
  ask.body = &nothing;
  AddStorageClass(key, &ask);
  ask.accept = [&](const HttpAnswer& answer) {
    return ParseBegunUpload(answer.body, upload_id);
  };
  HttpAnswer answer;
  bool sent = false;
  return RunChecked("begin to upload " + Describe(key), ask,
                    "x-amz-checksum-algorithm", "SHA256", &answer, &sent);
}

StoreResult S3Store::PutPart(const std::string& key,
                             const std::string& upload_id,
                             const ByteSource& bytes,
                             const Sha256Digest& sha256,
                             std::vector<S3Part>* parts) {
  const std::string number = std::to_string(parts->size() + 1);
  Ask ask;
  ask.method = "PUT";
  ask.path = PathOf(key);
  ask.query = {{"partNumber", number}, {"uploadId", upload_id}};
  ask.body = &bytes;
  ask.sha256 = sha256;
  ask.accept = [](const HttpAnswer& answer) {
    return ETagOf(answer).empty()
               ? NotAnAnswer("expected the part's ETag, found none")
               : Status::OK();
  };
  HttpAnswer answer;
  bool sent = false;
  const std::string checksum = ChecksumOf(sha256);
  StoreResult result =
      RunChecked("put part " + number + " of " + Describe(key), ask,
                 kChecksumHeader, checksum, &answer, &sent);
  if (result.ok()) {
    parts->push_back({ETagOf(answer), sent ? checksum : ""});
  }
  return result;
}

StoreResult S3Store::CompleteUpload(const PutRequest& request,
                                    const std::string& upload_id,
                                    const std::vector<S3Part>& parts) {
  const std::string document = CompleteDocument(parts);
  const SliceSource body(document);
  Ask ask;
  ask.method = "POST";
  ask.path = PathOf(request.key);
  ask.query = {{"uploadId", upload_id}};
  ask.headers["content-type"] = "application/xml";
  if (request.if_absent) {
    ask.headers["if-none-match"] = "*";
  }
  ask.body = &body;
  ask.sha256 = Sha256Of(document);
  ask.if_absent = request.if_absent;
  ask.accept = [](const HttpAnswer& answer) {
    return ParseCompletedUpload(answer.body);
  };
  HttpAnswer answer;
  StoreResult result =
      Run("complete " + Describe(request.key), std::move(ask), &answer);
  if (result.code == StoreCode::kAbsent) {
    // An earlier attempt may have completed the upload. (libcurl also repeats a
    // request if a kept connection has ended.) No key is used twice, so an
    // existing object with this key is from this upload.
    ObjectInfo info;
    if (Head(request.key, &info).ok() &&
        info.bytes == request.bytes->size()) {
      return {};
    }
  }
  return result;
}

StoreResult S3Store::AbortUpload(const std::string& key,
                                 const std::string& upload_id) {
  Ask ask;
  ask.method = "DELETE";
  ask.path = PathOf(key);
  ask.query = {{"uploadId", upload_id}};
  HttpAnswer answer;
  StoreResult result =
      Run("abort the upload of " + Describe(key), std::move(ask), &answer);
  return result.code == StoreCode::kAbsent ? StoreResult{} : result;
}

StoreResult S3Store::RemoveUploads(
    UnixSeconds before,
    const std::function<bool(const std::string& key)>& may_remove,
    uint64_t* removed) {
  std::vector<S3Upload> found;
  Ask ask;
  ask.method = "GET";
  ask.path = bucket_path_ + "/";
  ask.query = {{"encoding-type", "url"},
               {"max-uploads", std::to_string(kMaxStorePage)},
               {"prefix", prefix_},
               {"uploads", ""}};
  ask.accept = [&](const HttpAnswer& answer) {
    RETURN_IF_ERROR(ParseS3Uploads(answer.body, &found));
    for (const S3Upload& upload : found) {
      if (!upload.key.starts_with(prefix_)) {
        return NotAnAnswer("expected uploads of keys that begin with '" +
                           prefix_ + "', found '" + Printable(upload.key) +
                           "'");
      }
    }
    return Status::OK();
  };
  HttpAnswer answer;
  StoreResult result =
      Run("list the uploads of " + place_, std::move(ask), &answer);
  for (const S3Upload& upload : found) {
    const std::string key = upload.key.substr(
        std::min(upload.key.size(), prefix_.size()));
    const bool is_old = upload.begun != 0 && upload.begun < before;
    if (!result.ok() || !is_old || !IsStoreKey(key) || !may_remove(key)) {
      continue;
    }
    result = AbortUpload(key, upload.upload_id);
    *removed += result.ok() ? 1 : 0;
  }
  return result;
}

}  // namespace

Status MakeS3Store(const StoreOptions& options, CredentialWorld world,
                   std::unique_ptr<ObjectStore>* store) {
  const StoreAddress& where = options.where;
  if (!IsBucketName(where.bucket) ||
      (!where.prefix.empty() && !IsStoreKey(where.prefix))) {
    return MakeStatus(EndState::kRefused,
                      where.ToString() +
                          ": expected names of A-Z a-z 0-9 _ . - between "
                          "slashes, found something else");
  }
  std::string region = options.region;
  if (region.empty()) {
    RETURN_IF_ERROR(CredentialChain(options, world).Region(&region));
  }
  if (region.empty()) {
    region = "us-east-1";
  }
  if (region.find_first_not_of("abcdefghijklmnopqrstuvwxyz"
                               "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") !=
      std::string::npos) {
    return MakeStatus(EndState::kRefused,
                      "region: expected A-Z a-z 0-9 - _, found '" +
                          Printable(region) + "'");
  }
  if (options.storage_class.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_") !=
      std::string::npos) {
    return MakeStatus(EndState::kRefused,
                      "storage class: expected A-Z _, found '" +
                          Printable(options.storage_class) + "'");
  }
  Url url;
  RETURN_IF_ERROR(WithContext(
      ParseUrl(options.endpoint.empty()
                   ? "https://s3." + region + ".amazonaws.com"
                   : options.endpoint,
               &url),
      EndState::kRefused, "endpoint"));
  if (!url.path.empty() && url.path != "/") {
    return MakeStatus(EndState::kRefused,
                      "endpoint: expected no path, found '" +
                          Printable(url.path) + "'");
  }
  const bool is_path_style = options.path_style.value_or(
      !options.endpoint.empty() ||
      where.bucket.find('.') != std::string::npos);
  if (!is_path_style) {
    url.host = where.bucket + "." + url.host;
  }
  *store = std::make_unique<S3Store>(
      options, std::move(world), url,
      is_path_style ? "/" + where.bucket : "", region);
  return Status::OK();
}

}  // namespace sstferry
