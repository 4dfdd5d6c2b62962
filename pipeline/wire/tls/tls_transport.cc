// Listening and dialing with TLS: TCP's own, with another kind of connection.
#include "pipeline/wire/tcp_socket.h"
#include "pipeline/wire/tls/tls_connection.h"

namespace sstferry {

using boost::asio::ip::tcp;
using rocksdb::Status;

Status ListenTls(const HostPort& where, const TlsFiles& files,
                 std::unique_ptr<Listener>* listener) {
  std::shared_ptr<const TlsContext> context;
  const Status status = TlsContext::Load(files, TlsRole::kServer, &context);
  if (!status.ok()) {
    return status;
  }
  return ListenWith(
      where,
      [context](tcp::socket socket, const tcp::endpoint& peer) {
        return MakeTlsConnection(std::move(socket), peer, context, "");
      },
      listener);
}

Status MakeTlsDialer(const HostPort& where, const TlsFiles& files,
                     std::unique_ptr<Dialer>* dialer) {
  std::shared_ptr<const TlsContext> context;
  const Status status = TlsContext::Load(files, TlsRole::kClient, &context);
  if (!status.ok()) {
    return status;
  }
  *dialer = MakeDialerWith(
      where, [context, name = where.host](tcp::socket socket,
                                          const tcp::endpoint& peer) {
        return MakeTlsConnection(std::move(socket), peer, context, name);
      });
  return Status::OK();
}

}  // namespace sstferry
