// Shows metrics to Prometheus over HTTP, and over HTTPS beyond this machine.
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

namespace sstferry {

// Answers GET /metrics until it is destroyed: at most eight connections at
// once, each for five seconds at most.
//
// Threads: a thread of its own accepts, and each connection has one.
class MetricsEndpoint {
 public:
  // Calls `text` for each answer, from threads of this object, several at once.
  //
  // Beyond this machine it speaks TLS with the files `tls`, and the other side
  // needs a certificate, too; with where.insecure it is plain HTTP, as it is
  // for an address of this machine. REQUIRES: where.listen.
  //   kRefused  it cannot listen there, or the TLS files cannot be used
  [[nodiscard]] static rocksdb::Status Start(
      const MetricsArguments& where, const TlsFiles& tls,
      std::function<std::string()> text,
      std::unique_ptr<MetricsEndpoint>* endpoint);
  ~MetricsEndpoint();

  // "http://127.0.0.1:9420/metrics", with the port that it has.
  const std::string& url() const { return url_; }
  // Takes other certificates for connections from now on; without TLS nothing
  // happens. kRefused: nothing has changed.
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
  // Names by which this machine is asked; empty: any will do.
  std::set<std::string> hosts_;
  std::unique_ptr<Listener> listener_;
  ReloadTls reload_;
  std::list<Session> sessions_;  // accepting_'s, until it has ended
  std::thread accepting_;
};

}  // namespace sstferry
