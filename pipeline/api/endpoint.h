// Connects to a source by any kind of address: a server, a directory reached
// through ssh, a local directory, or an archive. For the last two it starts a
// server in this process with an in-memory transport, so that all sources are
// handled alike.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "sstferry/options.h"
#include "sstferry/source.h"
#include "sstferry/transport.h"

namespace sstferry {

struct EndpointOptions : SourceAccess {
  SourceAddress address;
  // The address is a local directory that contains databases. (Over ssh the
  // other side detects this.)
  bool is_tree = false;
  uint32_t lanes = 4;
  std::string command;  // command line, for messages; may be empty
  uint64_t max_held_bytes = 1'000'000'000;  // for a followed directory
};

inline EndpointOptions EndpointFor(const SourceAddress& address,
                                   uint32_t lanes,
                                   const SourceAccess& access) {
  EndpointOptions endpoint;
  static_cast<SourceAccess&>(endpoint) = access;
  endpoint.address = address;
  endpoint.lanes = lanes;
  return endpoint;
}

// Makes a StoreOptions::on_retry that logs a warning; null if `log` is null.
inline std::function<void(const std::string&)> RetryLog(
    const LogFunction& log) {
  if (!log) {
    return nullptr;
  }
  return [log](const std::string& error) {
    log(LogLevel::kWarning, error + "; trying again");
  };
}

// Lets several operations share one dialer. Each operation has its own object
// of this class; Close() of one object does not stop the others.
class BorrowedDialer : public Dialer {
 public:
  explicit BorrowedDialer(Dialer* dialer) : dialer_(dialer) {}
  [[nodiscard]] rocksdb::Status Dial(
      const WaitLimit& limit,
      std::unique_ptr<Connection>* connection) override {
    return closed_ ? rocksdb::Status::Aborted("closed")
                   : dialer_->Dial(limit, connection);
  }
  void Close() override { closed_ = true; }
  const std::string& address() const override { return dialer_->address(); }

 private:
  Dialer* const dialer_;
  std::atomic<bool> closed_{false};
};

// A source that can be dialed.
//
// Ownership: owns the dialer and the server in this process. The destructor
//            removes its snapshot unless it is retained for an interrupted
//            pull.
// Threads:   made and destroyed by one thread; dialer() is as thread-safe as
//            Dialer.
class Endpoint {
 public:
  [[nodiscard]] static rocksdb::Status Open(const EndpointOptions& options,
                                            std::unique_ptr<Endpoint>* out);
  ~Endpoint();
  Dialer* dialer() const { return dialer_.get(); }
  // Returns the name of the database at this source.
  const std::string& name() const { return name_; }

 private:
  Endpoint() = default;
  std::string name_;
  std::unique_ptr<Dialer> dialer_;
  std::shared_ptr<SnapshotOrigin> origin_;  // for an archive
  std::unique_ptr<SourceServer> server_;  // null for a remote server
  std::thread server_thread_;
};

}  // namespace sstferry
