// Performs HTTP(S) requests with libcurl, several at once. All parts of an
// answer are bounded, and redirects are not followed.
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
  std::string proxy;    // empty: from the environment
  bool no_proxy = false;
  std::string ca_file;  // empty: the system's
  std::chrono::milliseconds connect{10'000};
  // Limit for the time without a byte in either direction, not counting the
  // time that the caller's byte source and sink take.
  std::chrono::milliseconds idle{60'000};
};

struct HttpAnswer {
  int status = 0;
  // Only headers that sstferry uses: names in lower case, values of at most 1
  // KiB.
  std::map<std::string, std::string> headers;
  std::string body;  // unless passed to the sink
  std::string Header(const char* name) const;
  std::optional<uint64_t> content_length() const;
};

// How an exchange ended. kAnswered: an answer arrived, with any status.
enum class HttpEnd : uint8_t {
  kAnswered,
  kNoConnection,  // name not resolved, not connected, or TLS failed
  kNotTrusted,    // the certificate is not trusted
  kBroken,        // the connection ended, or was idle for too long
  kTooLarge,      // the body exceeds max_body_bytes
  kCaller,        // the caller's byte source or sink failed
  kDeadline,
  kCancelled,
};

struct HttpExchange {
  std::string scheme;  // "https"
  const HttpRequest* request = nullptr;
  const ByteSource* body = nullptr;  // for a PUT or POST
  // Called once with an answer's status and headers. Returns true if its body
  // should be passed to `sink`. Null: never.
  std::function<bool(const HttpAnswer& answer)> streams;
  ObjectSink sink;
  size_t max_body_bytes = 4u << 20;
  Clock::time_point until = Clock::time_point::max();
};

struct [[nodiscard]] HttpResult {
  HttpEnd end = HttpEnd::kAnswered;
  std::string what;         // message, without secrets
  rocksdb::Status caller;   // set if kCaller
};

// Performs exchanges; keeps connections for later ones.
//
// Threads: any.
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
  std::vector<std::unique_ptr<Handle>> idle_;  // guarded by mu_
  std::set<Handle*> busy_;                     // guarded by mu_
};

}  // namespace sstferry
