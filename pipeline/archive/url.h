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

// Parses "http[s]://HOST[:PORT][/PATH]" of printable ASCII; returns kRefused
// for other texts. The scheme's default port is dropped, because Host headers
// omit it.
[[nodiscard]] rocksdb::Status ParseUrl(const std::string& text, Url* url);

}  // namespace sstferry
