// Makes TLS connections. Only tls_*.cc and tests include this header.
#pragma once

#include <memory>
#include <string>

#include "pipeline/wire/tcp_socket.h"
#include "pipeline/wire/tls_context.h"

namespace sstferry {

// After this number of bytes, the sender changes its key. With one AES-GCM key,
// at most 2^24.5 records (388 GB) may be encrypted.
inline constexpr uint64_t kRekeyAfterBytes = 64ull << 30;

// Makes a TLS connection that owns a connected socket. A client checks that the
// server's certificate is for `expected_name`, the dialed host. A server
// ignores `expected_name`.
std::unique_ptr<Connection> MakeTlsConnection(
    Descriptor socket, const TcpAddress& peer,
    std::shared_ptr<const TlsContext> context,
    const std::string& expected_name,
    uint64_t rekey_after_bytes = kRekeyAfterBytes);

}  // namespace sstferry
