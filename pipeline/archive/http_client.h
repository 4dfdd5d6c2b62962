// Requests over HTTP(S) by libcurl, several at once. An answer is bounded
// everywhere, and redirects are not followed.
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
  std::string proxy;    // empty: of the environment
  bool no_proxy = false;
  std::string ca_file;  // empty: the system's
  std::chrono::milliseconds connect{10'000};
  // Without a byte in either direction, apart from the time that the caller's
  // bytes and sink take.
  std::chrono::milliseconds idle{60'000};
};

struct HttpAnswer {
  int status = 0;
  // The headers that are of use: names in lower case, values of at most 1 KiB.
  std::map<std::string, std::string> headers;
  std::string body;  // unless it went to the sink
  std::string Header(const char* name) const;
  std::optional<uint64_t> content_length() const;
};

// How an exchange ended, if not with an answer of any status.
enum class HttpEnd : uint8_t {
  kAnswered,
  kNoConnection,  // no name, no connection, or no TLS
  kNotTrusted,    // no certificate that is trusted
  kBroken,        // the connection ended, or nothing came for too long
  kTooLarge,      // a body of more than max_body_bytes
  kCaller,        // the body's bytes or the sink failed
  kDeadline,
  kCancelled,
};

struct HttpExchange {
  std::string scheme;  // "https"
  const HttpRequest* request = nullptr;
  const ByteSource* body = nullptr;  // of a PUT or POST
  // Asked once for an answer's status and headers: whether its body goes to
  // `sink`. Null: never.
  std::function<bool(const HttpAnswer& answer)> streams;
  ObjectSink sink;
  size_t max_body_bytes = 4u << 20;
  Clock::time_point until = Clock::time_point::max();
};

struct [[nodiscard]] HttpResult {
  HttpEnd end = HttpEnd::kAnswered;
  std::string what;         // for people, without secrets
  rocksdb::Status caller;   // if kCaller
};

// Threads: any. Connections are kept for the next request.
class HttpClient {
 public:
  explicit HttpClient(HttpOptions options);
  ~HttpClient();

  HttpResult Perform(const HttpExchange& exchange, HttpAnswer* answer);

  // Ends all current and later exchanges with kCancelled.
  void Cancel();

 private:
  class Handle;

  std::unique_ptr<Handle> Take();
  void Return(std::unique_ptr<Handle> handle);

  const HttpOptions options_;
  std::atomic<bool> cancelled_{false};
  std::mutex mu_;
  std::vector<std::unique_ptr<Handle>> idle_;  // under mu_
  std::set<Handle*> busy_;                     // under mu_
};

}  // namespace sstferry
