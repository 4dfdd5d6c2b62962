// Sends HTTP(S) requests with libcurl, several at once. Limits the size of each
// part of an answer, and follows no redirects.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "format/byte_source.h"
#include "pipeline/archive/sigv4.h"
#include "pipeline/archive/store.h"
#include "sstferry/transport.h"

namespace sstferry {

struct HttpOptions {
  std::string proxy;  // empty: the proxy in the environment
  bool no_proxy = false;
  std::string ca_file;  // empty: the CAs of the system
  std::chrono::milliseconds connect{10'000};
  // Maximum time without a byte in either direction. Time in which the caller's
  // byte source or sink runs does not count.
  std::chrono::milliseconds idle{60'000};
};

struct HttpAnswer {
  int status = 0;
  // Contains only headers that sstferry uses. Names are in lower case; values
  // have at most 1 KiB.
  std::map<std::string, std::string> headers;
  std::string body;  // empty if the sink received it
  std::string Header(const char* name) const;
  std::optional<uint64_t> content_length() const;
};

// Result of an exchange. kAnswered: an answer with any status arrived.
enum class HttpEnd : uint8_t {
  kAnswered,
  kNoConnection,  // DNS, the connection or TLS failed
  kNotTrusted,    // the certificate is not trusted
  kBroken,        // the connection was closed or idle for too long
  kTooLarge,      // the body exceeds max_body_bytes
  kCaller,        // the caller's byte source or sink failed
  kDeadline,
  kCancelled,
};

struct HttpExchange {
  std::string scheme;  // "https"
  const HttpRequest* request = nullptr;
  const ByteSource* body = nullptr;  // for a PUT or POST
  // Called once with the status and the headers of an answer. Returns true if
  // `sink` should receive the answer's body. If null, `sink` receives no body.
  std::function<bool(const HttpAnswer& answer)> streams;
  ObjectSink sink;
  size_t max_body_bytes = 4u << 20;
  Clock::time_point until = Clock::time_point::max();
};

struct [[nodiscard]] HttpResult {
  HttpEnd end = HttpEnd::kAnswered;
  std::string what;        // message, without secrets
  rocksdb::Status caller;  // error of the caller, for kCaller
};

// Sends requests, and keeps connections open for later requests.
//
// Threads: any.
class HttpClient {
 public:
  explicit HttpClient(HttpOptions options);
  ~HttpClient();

  HttpResult Perform(const HttpExchange& exchange, HttpAnswer* answer);

  // Ends all current and later exchanges with the result kCancelled.
  void Cancel();

 private:
  class Handle;

  std::unique_ptr<Handle> Take();
  void Return(std::unique_ptr<Handle> handle);

  const HttpOptions options_;
  std::atomic<bool> cancelled_{false};
  std::mutex mu_;
  std::vector<std::unique_ptr<Handle>> idle_;  // guarded by mu_
  std::set<Handle*> busy_;                     // guarded by mu_
};

}  // namespace sstferry
