// Makes TLS connections. Only tls_*.cc and tests include this header.
#pragma once

#include <memory>
#include <string>

#include "pipeline/wire/tcp_socket.h"
#include "pipeline/wire/tls_context.h"

namespace sstferry {

// Number of bytes after which a direction changes its key: AES-GCM must not
// encrypt more than 2^24.5 records (388 GB) with one key.
inline constexpr uint64_t kRekeyAfterBytes = 64ull << 30;

// Makes a TLS connection that owns a connected socket. `expected_name` is the
// dialed host; a server ignores it.
std::unique_ptr<Connection> MakeTlsConnection(
    Descriptor socket, const TcpAddress& peer,
    std::shared_ptr<const TlsContext> context,
    const std::string& expected_name,
    uint64_t rekey_after_bytes = kRekeyAfterBytes);

}  // namespace sstferry
