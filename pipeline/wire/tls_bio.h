// Connects OpenSSL to a ConnectedSocket. Only tls_*.cc include this.
#pragma once

#include <openssl/bio.h>

#include "pipeline/wire/connected_socket.h"

namespace sstferry {

// Result of the last socket call. OpenSSL's own errors for these differ between
// its versions.
struct SocketIo {
  ConnectedSocket* socket = nullptr;
  bool more_follows = false;  // the next bytes are written at once
  bool ended = false;         // the peer closed
  int error = 0;  // an errno
};

// Makes a BIO over `io`, which must outlive it; null if memory is short.
BIO* NewSocketBio(SocketIo* io);

}  // namespace sstferry
