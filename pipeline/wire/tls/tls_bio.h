// How OpenSSL reaches a ConnectedSocket. Only tls_*.cc include this.
#pragma once

#include <openssl/bio.h>

#include "pipeline/wire/connected_socket.h"

namespace sstferry {

// What the last call into the socket found. OpenSSL's own words for these
// differ between its versions.
struct SocketIo {
  ConnectedSocket* socket = nullptr;
  bool more_follows = false;  // of what is written: the next bytes come at once
  bool ended = false;         // the peer closed
  boost::system::error_code error;
};

// A BIO over `io`, which must outlive it; null when memory is short.
BIO* NewSocketBio(SocketIo* io);

}  // namespace sstferry
