// Shows metrics over HTTP.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "rocksdb/status.h"
#include "sstferry/transport.h"

namespace sstferry {

// Answers GET /metrics on an address of this machine until it is destroyed.
// Bounded: eight connections at once, requests of 8 KiB, five seconds each.
//
// Threads: one of its own, which calls `text`.
class MetricsEndpoint {
 public:
  // kRefused: the address cannot be used.
  [[nodiscard]] static rocksdb::Status Start(
      const HostPort& listen, std::function<std::string()> text,
      std::unique_ptr<MetricsEndpoint>* endpoint);
  ~MetricsEndpoint();

  // "http://127.0.0.1:9420/metrics", with the bound port.
  const std::string& url() const;

 private:
  struct Server;
  explicit MetricsEndpoint(std::unique_ptr<Server> server);

  const std::unique_ptr<Server> server_;
};

}  // namespace sstferry
