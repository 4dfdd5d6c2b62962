// Connects OpenSSL to a ConnectedSocket. Only tls_*.cc include this.
#pragma once

#include <openssl/bio.h>

#include "pipeline/wire/connected_socket.h"

namespace sstferry {

// Result of the last socket call. Needed because OpenSSL versions differ in the
// errors that they report for such calls.
struct SocketIo {
  ConnectedSocket* socket = nullptr;
  bool more_follows = false;  // the caller writes more bytes immediately
  bool ended = false;         // the peer closed
  int error = 0;  // errno of the call; 0: no error
};

// Makes a BIO that uses `io`, which must outlive it; null if memory is short.
BIO* NewSocketBio(SocketIo* io);

}  // namespace sstferry
