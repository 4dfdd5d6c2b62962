// Connects to a source by any kind of address: a server, a directory reached
// through ssh, a local directory, or an archive. For a local directory or an
// archive, this process runs its own server, and connects to that server in
// memory. So the callers handle all kinds of sources alike.
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
  // True: the address is a local directory that contains databases. Not used
  // for a directory reached through ssh, because the remote sstferry finds this
  // out.
  bool is_tree = false;
  uint32_t lanes = 4;
  std::string command;  // command line for messages; may be empty
  // Maximum bytes of deleted WALs that a followed source keeps readable.
  uint64_t max_held_bytes = 1'000'000'000;
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

// Returns a function for StoreOptions::on_retry that logs a warning. Returns
// null if `log` is null.
inline std::function<void(const std::string&)> RetryLog(
    const LogFunction& log) {
  if (!log) {
    return nullptr;
  }
  return [log](const std::string& error) {
    log(LogLevel::kWarning, error + "; trying again");
  };
}

// Lets several operations share one dialer. Each operation has its own
// BorrowedDialer. If one operation closes its BorrowedDialer, the other
// operations can still dial.
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
// Ownership: owns the dialer and, for a local source, the server. The
// destructor removes the server's snapshot, unless the server retains the
// snapshot for an interrupted pull.
// Threads: one thread creates and destroys the object; dialer() is as
//          thread-safe as Dialer.
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
  // Null unless the source is an archive.
  std::shared_ptr<SnapshotOrigin> origin_;
  std::unique_ptr<SourceServer> server_;  // null if the source is remote
  std::thread server_thread_;
};

}  // namespace sstferry
