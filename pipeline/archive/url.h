// Parses addresses of HTTP servers, from options and from the environment.
#pragma once

#include <string>

#include "rocksdb/status.h"

namespace sstferry {

struct Url {
  std::string scheme;  // "http" or "https"
  std::string host;    // IPv6 in brackets
  std::string port;    // empty: the default of the scheme
  std::string path;    // empty, or begins with '/'; may have a query
  std::string host_port() const {
    return port.empty() ? host : host + ":" + port;
  }
};

// Parses "http[s]://HOST[:PORT][/PATH]" of printable ASCII; anything else is
// kRefused. The default port of the scheme is dropped, because it is in no Host
// header.
[[nodiscard]] rocksdb::Status ParseUrl(const std::string& text, Url* url);

}  // namespace sstferry
