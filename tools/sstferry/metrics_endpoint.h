// Serves metrics to Prometheus: over HTTP on this machine, and over HTTPS to
// other machines.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "sstferry/transport.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/console.h"
#include "tools/sstferry/metrics_file.h"

namespace sstferry {

// An HTTP server that answers GET /metrics until it is destroyed. Serves at
// most eight connections at once, and each connection for at most five seconds.
//
// Threads: one thread accepts connections; each connection has a thread.
class MetricsEndpoint {
 public:
  // Starts a server at the address where.listen. The server calls `text` for
  // each request to get the metrics. Several threads may call it at once.
  //
  // At a loopback address, or if where.insecure is set, the server uses plain
  // HTTP. Otherwise it uses HTTPS with the files `tls`, and requires a
  // certificate of the client.
  // REQUIRES: where.listen has a value.
  //   kRefused  cannot listen at the address, or cannot use the TLS files
  [[nodiscard]] static rocksdb::Status Start(
      const MetricsArguments& where, const TlsFiles& tls,
      std::function<std::string()> text,
      std::unique_ptr<MetricsEndpoint>* endpoint);
  ~MetricsEndpoint();

  // Returns the URL of the metrics, such as "http://127.0.0.1:9420/metrics".
  const std::string& url() const { return url_; }
  // Reads the TLS files again and uses them for new connections. Does nothing
  // if the server uses plain HTTP. On failure returns kRefused, and the old
  // certificates stay in use.
  [[nodiscard]] rocksdb::Status Reload(const TlsFiles& tls);

 private:
  struct Session {
    std::unique_ptr<Connection> connection;
    std::thread thread;
    std::atomic<bool> ended{false};
  };

  explicit MetricsEndpoint(std::function<std::string()> text)
      : text_(std::move(text)) {}
  [[nodiscard]] rocksdb::Status Listen(const MetricsArguments& where,
                                       const TlsFiles& tls);
  void Accept();
  void JoinEnded();
  void Serve(Connection* connection) const;
  std::string AnswerTo(const std::string& method, const std::string& target,
                       const std::string* host, unsigned version) const;
  bool IsForUs(const std::string* host) const;

  const std::function<std::string()> text_;
  std::string url_;
  // The names that the Host header of a request may have. Any name if empty.
  std::set<std::string> hosts_;
  std::unique_ptr<Listener> listener_;
  ReloadTls reload_;
  std::list<Session> sessions_;  // used by accepting_ until it has ended
  std::thread accepting_;
};

// The objects that publish the metrics of a running command.
struct ShownMetrics {
  std::unique_ptr<MetricsEndpoint> endpoint;
  std::unique_ptr<MetricsFileWriter> file;
};

// Starts to publish metrics as `where` requests: over HTTP, in a file, or both.
// `text` returns the metrics for HTTP, and `file_text` returns the content of
// the file. Threads of *shown call both functions.
[[nodiscard]] rocksdb::Status ShowMetrics(
    const MetricsArguments& where, const TlsFiles& tls,
    std::function<std::string()> text, std::function<std::string()> file_text,
    Console* console, ShownMetrics* shown);

}  // namespace sstferry
