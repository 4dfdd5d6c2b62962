// Only tls_*.cc and tests include this.
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include <memory>
#include <string>

#include "pipeline/wire/tls/tls_context.h"

namespace sstferry {

// New keys for what is written after so many bytes: AES-GCM must not encrypt
// more than 2^24.5 records (388 GB) with one.
inline constexpr uint64_t kRekeyAfterBytes = 64ull << 30;

// Takes over a connected socket. `expected_name` is the host that was dialed;
// unused by a server.
std::unique_ptr<Connection> MakeTlsConnection(
    boost::asio::ip::tcp::socket socket,
    const boost::asio::ip::tcp::endpoint& peer,
    std::shared_ptr<const TlsContext> context,
    const std::string& expected_name,
    uint64_t rekey_after_bytes = kRekeyAfterBytes);

}  // namespace sstferry
