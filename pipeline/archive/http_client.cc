#include "pipeline/archive/http_client.h"

#include <curl/curl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>

#include "format/end_state.h"
#include "format/printable.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;
using std::chrono::milliseconds;

constexpr size_t kMaxHeaderValueBytes = 1024;
constexpr size_t kBodyPieceBytes = 1u << 20;
// Minimum size of a body that is sent with "Expect: 100-continue". If a server
// ignores this header, curl waits for a second, which is too long for a small
// body.
constexpr uint64_t kAskFirstBytes = 1u << 20;
// Sizes of curl's buffers.
constexpr long kReceiveBytes = 256L << 10;
constexpr long kSendBytes = 256L << 10;

void StartCurl() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  static_cast<void>(started);
}

// Returns the path of the file with trusted certificates; default: the system's
// file. libcurl in the portable binary knows only the path on Debian.
std::string CaFile(const HttpOptions& options) {
  if (!options.ca_file.empty()) {
    return options.ca_file;
  }
  for (const char* path :
       {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}) {
    if (access(path, R_OK) == 0) {
      return path;
    }
  }
  return "";
}

bool IsOfUse(const std::string& name) {
  static const std::set<std::string> names = {
      "age",           "content-encoding", "content-length", "content-range",
      "date",          "etag",           "retry-after",
      "last-modified", "location",       "x-amz-request-id",
      "x-amz-bucket-region"};
  return names.count(name) != 0;
}

// Returns a note that says where the proxy was configured; empty: no proxy. The
// error messages of libcurl show only the address of the proxy.
std::string ProxyNote(const HttpOptions& options, const std::string& scheme) {
  if (options.no_proxy) return "";
  if (!options.proxy.empty()) return " (through the proxy of the options)";
  const std::vector<const char*> names =
      scheme == "http"
          ? std::vector<const char*>{"http_proxy", "all_proxy", "ALL_PROXY"}
          : std::vector<const char*>{"https_proxy", "HTTPS_PROXY", "all_proxy",
                                     "ALL_PROXY"};
  for (const char* name : names) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') {
      return std::string(" (through the proxy in $") + name +
             "; no_proxy does not list this host)";
    }
  }
  return "";
}

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

// State of a running exchange, which the callbacks of curl use.
struct Running {
  const HttpExchange* exchange = nullptr;
  HttpAnswer* answer = nullptr;
  uint64_t sent = 0;
  std::string scratch;
  Slice piece;  // bytes of the body that were read, but not yet sent
  bool head_ended = false;
  bool body_began = false;
  bool streams = false;
  Status caller;
  bool too_large = false;
  Clock::time_point progress = Clock::now();

  void BeginBody() {
    if (!body_began) {
      body_began = true;
      streams = exchange->streams && exchange->streams(*answer);
    }
  }
};

size_t OnHeader(char* data, size_t size, size_t count, void* user) {
  auto* running = static_cast<Running*>(user);
  const size_t n = size * count;
  running->progress = Clock::now();
  const std::string line(data, n);
  if (line.rfind("HTTP/", 0) == 0) {
    // A second status line begins the final answer after an informational
    // answer, for example status 100. Discards the headers of the informational
    // answer.
    const size_t space = line.find(' ');
    running->answer->status =
        space == std::string::npos ? 0 : std::atoi(line.c_str() + space);
    running->answer->headers.clear();
    running->head_ended = false;
    return n;
  }
  if (line == "\r\n" || line == "\n") {
    running->head_ended = true;
    return n;
  }
  const size_t colon = line.find(':');
  if (running->body_began || colon == std::string::npos) {
    return n;
  }
  const std::string name = Lower(line.substr(0, colon));
  const size_t first = line.find_first_not_of(" \t", colon + 1);
  const size_t last = line.find_last_not_of(" \t\r\n");
  if (IsOfUse(name) && first != std::string::npos && last >= first &&
      last + 1 - first <= kMaxHeaderValueBytes) {
    running->answer->headers[name] = line.substr(first, last + 1 - first);
  }
  return n;
}

size_t OnBody(char* data, size_t size, size_t count, void* user) {
  auto* running = static_cast<Running*>(user);
  const size_t n = size * count;
  running->BeginBody();
  if (running->streams) {
    running->caller = running->exchange->sink(Slice(data, n));
    running->progress = Clock::now();
    return running->caller.ok() ? n : n + 1;
  }
  if (n > running->exchange->max_body_bytes - running->answer->body.size()) {
    running->too_large = true;
    return n + 1;
  }
  running->answer->body.append(data, n);
  running->progress = Clock::now();
  return n;
}

size_t OnSend(char* data, size_t size, size_t count, void* user) {
  auto* running = static_cast<Running*>(user);
  const ByteSource& body = *running->exchange->body;
  const uint64_t left = body.size() - running->sent;
  if (left == 0) {
    return 0;
  }
  if (running->piece.empty()) {
    running->caller =
        body.Read(running->sent, std::min<uint64_t>(left, kBodyPieceBytes),
                  &running->scratch, &running->piece);
    if (running->caller.ok() && running->piece.empty()) {
      running->caller = MakeStatus(
          EndState::kInternal, "request body: expected " +
                                   std::to_string(left) +
                                   " more bytes, but its source returned none");
    }
    if (!running->caller.ok()) {
      return CURL_READFUNC_ABORT;
    }
  }
  const size_t n = std::min(size * count, running->piece.size());
  memcpy(data, running->piece.data(), n);
  running->piece.remove_prefix(n);
  running->sent += n;
  running->progress = Clock::now();
  return n;
}

// Goes back to the beginning of the body. curl calls this function to repeat a
// request if a kept connection turns out to be closed.
int OnRewind(void* user, curl_off_t offset, int origin) {
  auto* running = static_cast<Running*>(user);
  if (origin != SEEK_SET || offset != 0) {
    return CURL_SEEKFUNC_CANTSEEK;
  }
  running->sent = 0;
  running->piece.clear();
  return CURL_SEEKFUNC_OK;
}

HttpEnd EndOf(CURLcode code) {
  switch (code) {
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PROXY:
      return HttpEnd::kNoConnection;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
      return HttpEnd::kNotTrusted;
    default:
      return HttpEnd::kBroken;
  }
}

}  // namespace

std::string HttpAnswer::Header(const char* name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

std::optional<uint64_t> HttpAnswer::content_length() const {
  const std::string text = Header("content-length");
  if (text.empty() || text.size() > 18 ||
      text.find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  return std::stoull(text);
}

// A curl handle and its connections. Only one thread uses it at a time, but any
// thread may call Wake().
class HttpClient::Handle {
 public:
  Handle() : multi_(curl_multi_init()), easy_(curl_easy_init()) {}
  ~Handle() {
    curl_easy_cleanup(easy_);
    curl_multi_cleanup(multi_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  void Wake() { curl_multi_wakeup(multi_); }

  HttpResult Perform(const HttpOptions& options, const HttpExchange& exchange,
                     const std::atomic<bool>& cancelled, HttpAnswer* answer);

 private:
  void Prepare(const HttpOptions& options, Running* running,
               curl_slist** headers);
  HttpResult Wait(const HttpOptions& options, const HttpExchange& exchange,
                  const std::atomic<bool>& cancelled, Running* running);

  CURLM* const multi_;
  CURL* const easy_;
  char error_[CURL_ERROR_SIZE] = {};
};

void HttpClient::Handle::Prepare(const HttpOptions& options, Running* running,
                                 curl_slist** headers) {
  const HttpExchange& exchange = *running->exchange;
  const HttpRequest& request = *exchange.request;
  curl_easy_reset(easy_);
  error_[0] = '\0';
  std::string url =
      exchange.scheme + "://" + request.host + request.path;
  if (!request.query.empty()) {
    url += "?" + EncodeQuery(request.query);
  }
  const auto set = [&](CURLoption option, auto value) {
    curl_easy_setopt(easy_, option, value);
  };
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_ERRORBUFFER, error_);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_NETRC, long{CURL_NETRC_IGNORED});
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_SSLVERSION, long{CURL_SSLVERSION_TLSv1_2});
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect.count()));
  set(CURLOPT_BUFFERSIZE, kReceiveBytes);
  set(CURLOPT_UPLOAD_BUFFERSIZE, kSendBytes);
  set(CURLOPT_USERAGENT, "sstferry");
  if (const std::string ca_file = CaFile(options); !ca_file.empty()) {
    set(CURLOPT_CAINFO, ca_file.c_str());
  }
  if (options.no_proxy) {
    set(CURLOPT_PROXY, "");
  } else if (!options.proxy.empty()) {
    set(CURLOPT_PROXY, options.proxy.c_str());
    set(CURLOPT_NOPROXY, "");  // overrides no_proxy in the environment
  }
  for (const auto& [name, value] : request.headers) {
    // curl expects a semicolon after the name of a header without a value.
    const std::string line =
        value.empty() ? name + ";" : name + ": " + value;
    *headers = curl_slist_append(*headers, line.c_str());
  }
  if (exchange.body != nullptr && exchange.body->size() < kAskFirstBytes) {
    *headers = curl_slist_append(*headers, "Expect:");
  }
  set(CURLOPT_HTTPHEADER, *headers);
  if (exchange.body != nullptr) {
    set(CURLOPT_UPLOAD, 1L);
    set(CURLOPT_INFILESIZE_LARGE,
        static_cast<curl_off_t>(exchange.body->size()));
    set(CURLOPT_READFUNCTION, OnSend);
    set(CURLOPT_READDATA, running);
    set(CURLOPT_SEEKFUNCTION, OnRewind);
    set(CURLOPT_SEEKDATA, running);
  } else if (request.method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  }
  if (request.method != "HEAD") {
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
  set(CURLOPT_HEADERFUNCTION, OnHeader);
  set(CURLOPT_HEADERDATA, running);
  set(CURLOPT_WRITEFUNCTION, OnBody);
  set(CURLOPT_WRITEDATA, running);
}

HttpResult HttpClient::Handle::Perform(const HttpOptions& options,
                                       const HttpExchange& exchange,
                                       const std::atomic<bool>& cancelled,
                                       HttpAnswer* answer) {
  *answer = {};
  if (multi_ == nullptr || easy_ == nullptr) {
    return {HttpEnd::kNoConnection, "no memory for a connection", {}};
  }
  Running running;
  running.exchange = &exchange;
  running.answer = answer;
  curl_slist* headers = nullptr;
  Prepare(options, &running, &headers);
  curl_multi_add_handle(multi_, easy_);
  HttpResult result = Wait(options, exchange, cancelled, &running);
  curl_multi_remove_handle(multi_, easy_);
  curl_slist_free_all(headers);
  if (result.end == HttpEnd::kAnswered) {
    running.BeginBody();
  }
  return result;
}

HttpResult HttpClient::Handle::Wait(const HttpOptions& options,
                                    const HttpExchange& exchange,
                                    const std::atomic<bool>& cancelled,
                                    Running* running) {
  while (true) {
    int running_count = 0;
    curl_multi_perform(multi_, &running_count);
    if (running_count == 0) {
      break;
    }
    if (cancelled) {
      return {HttpEnd::kCancelled, "cancelled", {}};
    }
    const Clock::time_point now = Clock::now();
    if (now >= exchange.until) {
      return {HttpEnd::kDeadline, "not done in the time allowed", {}};
    }
    const Clock::time_point idle_until = running->progress + options.idle;
    if (now >= idle_until) {
      return {HttpEnd::kBroken,
              "received no byte "
              "for " + std::to_string(options.idle.count()) + " ms",
              {}};
    }
    const auto wait = std::chrono::ceil<milliseconds>(
        std::min(exchange.until, idle_until) - now);
    curl_multi_poll(multi_, nullptr, 0,
                    static_cast<int>(std::clamp<int64_t>(wait.count(), 1,
                                                         60'000)),
                    nullptr);
  }
  CURLcode code = CURLE_OK;
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg == CURLMSG_DONE) {
      code = message->data.result;
    }
  }
  if (!running->caller.ok()) {
    return {HttpEnd::kCaller, "", running->caller};
  }
  if (running->too_large) {
    return {HttpEnd::kTooLarge,
            "expected at most " + std::to_string(exchange.max_body_bytes) +
                " bytes, found more",
            {}};
  }
  if (code == CURLE_OK && running->head_ended) {
    return {};
  }
  if (code == CURLE_OK) {
    // libcurl reports no error if the answer ends in the middle of its headers.
    return {HttpEnd::kBroken, "the headers of the answer are truncated", {}};
  }
  const std::string what = Printable(
      error_[0] != '\0' ? std::string(error_) : curl_easy_strerror(code));
  const HttpEnd end = EndOf(code);
  return {end,
          end == HttpEnd::kNoConnection
              ? what + ProxyNote(options, exchange.scheme)
              : what,
          {}};
}

HttpClient::HttpClient(HttpOptions options) : options_(std::move(options)) {
  StartCurl();
}

HttpClient::~HttpClient() = default;

std::unique_ptr<HttpClient::Handle> HttpClient::Take() {
  std::lock_guard<std::mutex> lock(mu_);
  std::unique_ptr<Handle> handle;
  if (idle_.empty()) {
    handle = std::make_unique<Handle>();
  } else {
    handle = std::move(idle_.back());
    idle_.pop_back();
  }
  busy_.insert(handle.get());
  return handle;
}

void HttpClient::Return(std::unique_ptr<Handle> handle) {
  std::lock_guard<std::mutex> lock(mu_);
  busy_.erase(handle.get());
  idle_.push_back(std::move(handle));
}

HttpResult HttpClient::Perform(const HttpExchange& exchange,
                               HttpAnswer* answer) {
  if (cancelled_) {
    return {HttpEnd::kCancelled, "cancelled", {}};
  }
  std::unique_ptr<Handle> handle = Take();
  HttpResult result = handle->Perform(options_, exchange, cancelled_, answer);
  Return(std::move(handle));
  return result;
}

void HttpClient::Cancel() {
  cancelled_ = true;
  std::lock_guard<std::mutex> lock(mu_);
  for (Handle* handle : busy_) {
    handle->Wake();
  }
}

}  // namespace sstferry
