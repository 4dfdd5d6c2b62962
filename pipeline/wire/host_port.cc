#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "format/end_state.h"
#include "sstferry/transport.h"

namespace sstferry {
namespace {

namespace ip = boost::asio::ip;
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

// Sets *out to the socket that "unix:/PATH" names.
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

bool IsLoopbackAddress(const ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return ip::make_address_v4(ip::v4_mapped, address.to_v6()).is_loopback();
  }
  return address.is_loopback();
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
    boost::system::error_code error;
    ip::make_address_v6(parsed.host, error);
    if (error) {
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
      return Wrong(text, "found a character no host name has");
    }
  }
  if (!rest.empty()) {
    if (rest.front() != ':') {
      return Wrong(text, "found \"" + std::string(rest) + "\" after ]");
    }
    const Status status = ParsePort(text, rest.substr(1), &parsed.port);
    if (!status.ok()) {
      return status;
    }
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
  boost::system::error_code error;
  if (!ParseHostPort(peer, &where).ok()) {
    return peer;
  }
  const ip::address address = ip::make_address(where.host, error);
  if (error || !address.is_v6() || address.to_v6().is_v4_mapped()) {
    return where.host;
  }
  ip::address_v6::bytes_type bytes = address.to_v6().to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), 0);
  return ip::address_v6(bytes).to_string() + "/64";
}

bool IsLoopback(const std::string& host) {
  if (HostPort{host}.is_unix()) {
    return true;
  }
  boost::system::error_code error;
  const ip::address address = ip::make_address(host, error);
  if (!error) {
    return IsLoopbackAddress(address);
  }
  if (host.empty()) {
    return false;
  }
  boost::asio::io_context context;
  ip::tcp::resolver resolver(context);
  const auto results = resolver.resolve(host, "", error);
  return !error && !results.empty() &&
         std::all_of(results.begin(), results.end(), [](const auto& entry) {
           return IsLoopbackAddress(entry.endpoint().address());
         });
}

}  // namespace sstferry
