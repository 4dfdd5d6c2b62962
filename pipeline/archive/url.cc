#include "pipeline/archive/url.h"

#include <algorithm>

#include "format/end_state.h"

namespace sstferry {

rocksdb::Status ParseUrl(const std::string& text, Url* url) {
  *url = {};
  const auto wrong = [&] {
    // The message does not show the URL, because the URL may contain a
    // password.
    return MakeStatus(EndState::kRefused,
                      "expected http[s]://HOST[:PORT][/PATH], found something "
                      "else of " +
                          std::to_string(text.size()) + " bytes");
  };
  const size_t colon = text.find("://");
  if (colon == std::string::npos || text.size() > 4096 ||
      !std::all_of(text.begin(), text.end(),
                   [](char c) { return c > 0x20 && c < 0x7f; })) {
    return wrong();
  }
  url->scheme = text.substr(0, colon);
  const size_t slash = text.find('/', colon + 3);
  std::string place = text.substr(
      colon + 3, slash == std::string::npos ? slash : slash - colon - 3);
  url->path = slash == std::string::npos ? "" : text.substr(slash);
  const size_t bracket = place.rfind(']');
  const size_t port = place.rfind(':');
  if (port != std::string::npos &&
      (bracket == std::string::npos || port > bracket)) {
    url->port = place.substr(port + 1);
    place.resize(port);
    if (url->port.empty() || url->port.size() > 5 ||
        url->port.find_first_not_of("0123456789") != std::string::npos) {
      return wrong();
    }
  }
  url->host = place;
  constexpr char kHostBytes[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:[]";
  if ((url->scheme != "http" && url->scheme != "https") || place.empty() ||
      place.find_first_not_of(kHostBytes) != std::string::npos) {
    return wrong();
  }
  if (url->port == (url->scheme == "http" ? "80" : "443")) {
    url->port.clear();
  }
  return rocksdb::Status::OK();
}

}  // namespace sstferry
