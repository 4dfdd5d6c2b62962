// Lets OpenSSL read and write a ConnectedSocket. Only tls_*.cc include this
// header.
#pragma once

#include <openssl/bio.h>

#include "pipeline/wire/connected_socket.h"

namespace sstferry {

// The socket that OpenSSL uses, and the result of the last call on it.
// OpenSSL's own errors for such a call are not used, because they differ
// between versions.
struct SocketIo {
  ConnectedSocket* socket = nullptr;
  bool more_follows = false;  // more bytes will be written immediately
  bool ended = false;         // the peer has closed the connection
  int error = 0;  // errno of the last call; 0: no error
};

// Makes a BIO (OpenSSL's byte stream) that reads and writes through `io`, which
// must outlive the BIO. Returns null if there is no memory.
BIO* NewSocketBio(SocketIo* io);

}  // namespace sstferry
