#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <vector>

#include "format/end_state.h"
#include "pipeline/wire/tcp_socket.h"
#include "sstferry/transport.h"

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr size_t kMaxHostBytes = 255;

Status Wrong(const std::string& text, const std::string& why) {
  return MakeStatus(EndState::kIncompatible,
                    "address \"" + text + "\": expected HOST[:PORT], "
                    "[IPV6][:PORT] or unix:/PATH, " + why);
}

bool IsHostCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}

Status ParsePort(const std::string& text, std::string_view digits,
                 uint16_t* port) {
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, *port);
  if (digits.empty() || error != std::errc() || stop != end) {
    return Wrong(text, "found port \"" + std::string(digits) +
                           "\" instead of a number up to 65535");
  }
  return Status::OK();
}

// Parses "unix:/PATH" into *out.
Status ParseSocketPath(const std::string& text, HostPort* out) {
  const std::string path = text.substr(std::strlen(kUnixScheme));
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return Wrong(text, "found a path of " + std::to_string(path.size()) +
                           " bytes; the system allows " +
                           std::to_string(sizeof(sockaddr_un::sun_path) - 1));
  }
  if (path.ends_with('/')) {
    return Wrong(text, "found a path that ends in /");
  }
  const auto is_wrong = [](unsigned char c) { return c < ' ' || c == ':'; };
  if (std::any_of(path.begin(), path.end(), is_wrong)) {
    return Wrong(text, "found a colon or a control character in the path");
  }
  *out = {path, 0};
  return Status::OK();
}

bool IsLoopbackAddress(const TcpAddress& address) {
  if (address.family() == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address.bytes);
    return ntohl(v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  if (address.family() != AF_INET6) {
    return false;
  }
  const in6_addr& v6 =
      reinterpret_cast<const sockaddr_in6&>(address.bytes).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&v6) ||
         (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == IN_LOOPBACKNET);
}

}  // namespace

Status ParseHostPort(const std::string& text, HostPort* out) {
  if (text.starts_with(std::string(kUnixScheme) + "/")) {
    return ParseSocketPath(text, out);
  }
  const std::string_view view(text);
  HostPort parsed{"", kDefaultPort};
  std::string_view rest;
  if (!view.empty() && view.front() == '[') {
    const size_t close = view.find(']');
    if (close == std::string_view::npos) {
      return Wrong(text, "found [ without ]");
    }
    parsed.host = std::string(view.substr(1, close - 1));
    std::vector<TcpAddress> addresses;
    if (FindAddresses(parsed.host, 0, AI_NUMERICHOST, &addresses) != 0 ||
        addresses.front().family() != AF_INET6) {
      return Wrong(text, "found no IPv6 address between the brackets");
    }
    rest = view.substr(close + 1);
  } else {
    const size_t colon = std::min(view.find(':'), view.size());
    parsed.host = std::string(view.substr(0, colon));
    rest = view.substr(colon);
    if (std::count(rest.begin(), rest.end(), ':') > 1) {
      return Wrong(text, "found several colons (IPv6 needs brackets)");
    }
    if (parsed.host.empty() || parsed.host.size() > kMaxHostBytes) {
      return Wrong(text, "found a host of " +
                             std::to_string(parsed.host.size()) + " bytes");
    }
    if (!std::all_of(parsed.host.begin(), parsed.host.end(),
                     IsHostCharacter)) {
      return Wrong(text, "found a character that no host name may have");
    }
  }
  if (!rest.empty()) {
    if (rest.front() != ':') {
      return Wrong(text, "found \"" + std::string(rest) + "\" after ]");
    }
    RETURN_IF_ERROR(ParsePort(text, rest.substr(1), &parsed.port));
  }
  *out = parsed;
  return Status::OK();
}

std::string ToString(const HostPort& host_port) {
  if (host_port.is_unix()) {
    return kUnixScheme + host_port.host;
  }
  const bool brackets = host_port.host.find(':') != std::string::npos;
  return (brackets ? "[" + host_port.host + "]" : host_port.host) + ":" +
         std::to_string(host_port.port);
}

std::string PeerAddress(const std::string& peer) {
  HostPort where;
  if (!ParseHostPort(peer, &where).ok()) {
    return peer;
  }
  std::vector<TcpAddress> addresses;
  if (FindAddresses(where.host, 0, AI_NUMERICHOST, &addresses) != 0 ||
      addresses.front().family() != AF_INET6) {
    return where.host;
  }
  in6_addr v6 = reinterpret_cast<const sockaddr_in6&>(addresses.front().bytes)
                    .sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) {
    return where.host;
  }
  std::fill(v6.s6_addr + 8, v6.s6_addr + 16, 0);
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, &v6, text, sizeof(text));
  return std::string(text) + "/64";
}

bool IsLoopback(const std::string& host) {
  if (HostPort{host}.is_unix()) {
    return true;
  }
  std::vector<TcpAddress> addresses;
  const bool found =
      !host.empty() &&
      (FindAddresses(host, 0, AI_NUMERICHOST, &addresses) == 0 ||
       FindAddresses(host, 0, /*flags=*/0, &addresses) == 0);
  return found &&
         std::all_of(addresses.begin(), addresses.end(), IsLoopbackAddress);
}

}  // namespace sstferry
