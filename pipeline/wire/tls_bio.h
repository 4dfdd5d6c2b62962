// Connects OpenSSL to a ConnectedSocket. Only tls_*.cc include this.
#pragma once

#include <openssl/bio.h>

#include "pipeline/wire/connected_socket.h"

namespace sstferry {

// Result of the last socket call. The errors that OpenSSL reports for such
// calls differ between its versions.
struct SocketIo {
  ConnectedSocket* socket = nullptr;
  bool more_follows = false;  // more bytes are written immediately
  bool ended = false;         // the peer closed
  int error = 0;  // errno of the call; 0: none
};

// Makes a BIO that uses `io`, which must outlive it; null if memory is short.
BIO* NewSocketBio(SocketIo* io);

}  // namespace sstferry
