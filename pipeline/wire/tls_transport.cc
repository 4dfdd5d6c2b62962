// Listens for TLS connections and dials them. Works like TCP, except that it
// makes TLS connections.
#include <mutex>

#include "format/end_state.h"
#include "pipeline/wire/tcp_socket.h"
#include "pipeline/wire/tls_connection.h"

namespace sstferry {

using rocksdb::Status;

namespace {

// Contains the TlsContext that a listener uses for new connections.
//
// Threads: any.
class ContextSlot {
 public:
  Status Load(const TlsFiles& files) {
    std::shared_ptr<const TlsContext> context;
    const Status status = TlsContext::Load(files, TlsRole::kServer, &context);
    if (status.ok()) {
      const std::lock_guard<std::mutex> lock(mu_);
      context_ = std::move(context);
    }
    return status;
  }
  std::shared_ptr<const TlsContext> context() const {
    const std::lock_guard<std::mutex> lock(mu_);
    return context_;
  }

 private:
  mutable std::mutex mu_;
  std::shared_ptr<const TlsContext> context_;  // under mu_
};

}  // namespace

Status ListenTls(const HostPort& where, const TlsFiles& files,
                 std::unique_ptr<Listener>* listener) {
  ReloadTls unused;
  return ListenTls(where, files, listener, &unused);
}

Status ListenTls(const HostPort& where, const TlsFiles& files,
                 std::unique_ptr<Listener>* listener, ReloadTls* reload) {
  const auto slot = std::make_shared<ContextSlot>();
  RETURN_IF_ERROR(slot->Load(files));
  *reload = [slot](const TlsFiles& again) { return slot->Load(again); };
  return ListenWith(
      where,
      [slot](Descriptor socket, const TcpAddress& peer) {
        return MakeTlsConnection(std::move(socket), peer, slot->context(), "");
      },
      listener);
}

Status MakeTlsDialer(const HostPort& where, const TlsFiles& files,
                     std::unique_ptr<Dialer>* dialer) {
  std::shared_ptr<const TlsContext> context;
  RETURN_IF_ERROR(TlsContext::Load(files, TlsRole::kClient, &context));
  *dialer = MakeDialerWith(
      where, [context, name = where.host](Descriptor socket,
                                          const TcpAddress& peer) {
        return MakeTlsConnection(std::move(socket), peer, context, name);
      });
  return Status::OK();
}

}  // namespace sstferry
