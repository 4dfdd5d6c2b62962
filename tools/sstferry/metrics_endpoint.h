// Serves metrics to Prometheus over HTTP, and over HTTPS to other machines.
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

// Answers GET /metrics until destroyed, on at most eight connections at once,
// each for at most five seconds.
//
// Threads: one that accepts, and one per connection.
class MetricsEndpoint {
 public:
  // Calls `text` for each answer, from threads of this object, also
  // concurrently.
  //
  // Uses TLS with the files `tls` and requires a client certificate. With
  // where.insecure, or at a loopback address, uses plain HTTP. REQUIRES:
  // where.listen.
  //   kRefused  it cannot listen there, or the TLS files cannot be used
  [[nodiscard]] static rocksdb::Status Start(
      const MetricsArguments& where, const TlsFiles& tls,
      std::function<std::string()> text,
      std::unique_ptr<MetricsEndpoint>* endpoint);
  ~MetricsEndpoint();

  // Returns "http://127.0.0.1:9420/metrics", with the bound port.
  const std::string& url() const { return url_; }
  // Uses other certificates for later connections; does nothing without TLS. On
  // failure (kRefused) nothing changes.
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
  // Accepted names in a Host header; empty: any name.
  std::set<std::string> hosts_;
  std::unique_ptr<Listener> listener_;
  ReloadTls reload_;
  std::list<Session> sessions_;  // used by accepting_ until it has ended
  std::thread accepting_;
};

// The outputs of metrics while a command runs.
struct ShownMetrics {
  std::unique_ptr<MetricsEndpoint> endpoint;
  std::unique_ptr<MetricsFileWriter> file;
};

// Starts the outputs that `where` names. `text` makes an answer to Prometheus,
// `file_text` the file; both are called from threads of *shown.
[[nodiscard]] rocksdb::Status ShowMetrics(
    const MetricsArguments& where, const TlsFiles& tls,
    std::function<std::string()> text, std::function<std::string()> file_text,
    Console* console, ShownMetrics* shown);

}  // namespace sstferry
