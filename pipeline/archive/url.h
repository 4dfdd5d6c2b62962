// Parses addresses of HTTP servers, from options and from the environment.
#pragma once

#include <string>

#include "rocksdb/status.h"

namespace sstferry {

struct Url {
  std::string scheme;  // "http" or "https"
  std::string host;    // IPv6 in brackets
  std::string port;    // empty: the default of the scheme
  // Empty, or '/' and more, optionally with a query.
  std::string path;
  std::string host_port() const {
    return port.empty() ? host : host + ":" + port;
  }
};

// Parses "http[s]://HOST[:PORT][/PATH]" of printable ASCII characters. Leaves
// url->port empty for the default port of the scheme, because Host headers omit
// it. Returns kRefused for other texts.
[[nodiscard]] rocksdb::Status ParseUrl(const std::string& text, Url* url);

}  // namespace sstferry
