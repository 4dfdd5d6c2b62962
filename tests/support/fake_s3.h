// A small S3 server for tests, which gives wrong answers on request.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace sstferry {

struct FakeRequest {
  std::string method;
  std::string path;                          // without the query
  std::map<std::string, std::string> query;  // decoded
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

struct FakeAnswer {
  int status = 200;
  std::map<std::string, std::string> headers;
  std::string body;
  // The connection is closed after this many bytes of the answer.
  std::optional<size_t> close_after;
  // The announced length of the body; not set: the true length.
  std::optional<std::string> content_length;
};
FakeAnswer FakeError(int status, const std::string& code);

// The server. Threads: one for each connection.
class FakeS3 {
 public:
  // Called before a request takes effect. May return an answer to send instead.
  using Before =
      std::function<std::optional<FakeAnswer>(const FakeRequest& request)>;
  // Called after a request took effect, with the answer that will be sent.
  using After = std::function<void(const FakeRequest& request, FakeAnswer*)>;

  explicit FakeS3(Before before = nullptr, After after = nullptr);
  ~FakeS3();

  std::string url() const;  // "http://127.0.0.1:PORT"
  // Returns the objects by path: "/bucket/key".
  std::map<std::string, std::string> Objects() const;
  void Set(const std::string& path, const std::string& bytes);
  uint64_t requests() const { return requests_; }
  // Moves the server's clock ahead by `seconds`.
  void Advance(int64_t seconds) { ahead_seconds_ += seconds; }

 private:
  void Accept();
  void Serve(int fd);
  FakeAnswer Answer(const FakeRequest& request);
  FakeAnswer OfObject(const FakeRequest& request);
  FakeAnswer List(const FakeRequest& request);

  const Before before_;
  const After after_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> ending_{false};
  std::atomic<uint64_t> requests_{0};
  std::atomic<int64_t> ahead_seconds_{0};
  mutable std::mutex mu_;
  std::map<std::string, std::string> objects_;      // under mu_
  // Under mu_: the parts of the upload, by "U/NUMBER", and its key as "U/open".
  std::map<std::string, std::string> parts_;
  std::set<int> open_;                              // under mu_
  std::vector<std::thread> threads_;                // under mu_
  std::thread acceptor_;
};

}  // namespace sstferry
