// A way to a source, whatever the operator named: a server over TCP, or a
// directory, which gets a server of its own inside this process and an
// in-memory transport, so that both take the same path.
#pragma once

#include <memory>
#include <thread>

#include "sstferry/options.h"
#include "sstferry/source.h"
#include "sstferry/transport.h"

namespace sstferry {

struct EndpointOptions {
  SourceAddress address;
  uint32_t lanes = 4;
  std::string snapshot_dir;
  std::string wal_dir;  // of a directory
  TlsFiles tls;  // empty: plain TCP
  std::chrono::milliseconds peer_timeout{10'000};
  std::chrono::milliseconds stall_timeout{120'000};
  OperatorRegistry registry;
  // How long a directory's snapshot is kept for a pull that was cut.
  std::chrono::seconds snapshot_ttl{3600};
  LogFunction log;
};

// Ownership: owns the dialer and, for a directory, the server, whose snapshot
//   is gone when the endpoint is, unless a pull that was cut may go on with it.
// Threads:   made and destroyed by one; dialer() is as thread-safe as Dialer.
class Endpoint {
 public:
  [[nodiscard]] static rocksdb::Status Open(const EndpointOptions& options,
                                            std::unique_ptr<Endpoint>* out);
  ~Endpoint();
  Dialer* dialer() const { return dialer_.get(); }
  // The database's name at that source.
  const std::string& name() const { return name_; }

 private:
  Endpoint() = default;
  std::string name_;
  std::unique_ptr<Dialer> dialer_;
  std::unique_ptr<SourceServer> server_;  // null for TCP
  std::thread server_thread_;
};

}  // namespace sstferry
