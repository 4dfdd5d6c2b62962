#include <algorithm>

#include "format/end_state.h"
#include "sstferry/transport.h"
#include "tests/support/catch.h"

namespace sstferry::host_port_test {
namespace {

TEST_CASE("HostPort parses addresses as operators write them", "[wire]") {
  struct Row {
    const char* text;
    const char* host;
    uint16_t port;
    const char* printed;
  };
  const Row rows[] = {
      {"localhost", "localhost", 7420, "localhost:7420"},
      {"db-1.example_x:1", "db-1.example_x", 1, "db-1.example_x:1"},
      {"127.0.0.1:0", "127.0.0.1", 0, "127.0.0.1:0"},
      {"10.0.0.1:65535", "10.0.0.1", 65535, "10.0.0.1:65535"},
      {"[::1]", "::1", 7420, "[::1]:7420"},
      {"[fe80::1]:99", "fe80::1", 99, "[fe80::1]:99"},
      {"unix:/run/s", "/run/s", 0, "unix:/run/s"},
      {"unix:7420", "unix", 7420, "unix:7420"},
  };
  for (const Row& row : rows) {
    HostPort parsed;
    REQUIRE_OK(ParseHostPort(row.text, &parsed));
    REQUIRE(parsed.host == row.host);
    REQUIRE(parsed.port == row.port);
    REQUIRE(ToString(parsed) == row.printed);
  }
}

TEST_CASE("HostPort refuses text that is not an address", "[wire]") {
  for (const std::string text :
       {"", ":7420", "host:", "host:x", "host:-1", "host:65536", "host:1x",
        "host: 1", "::1", "fe80::1:99", "[::1", "[]", "[::1]7420", "[host]:1",
        "[::1]:", "a b", "a/b", "user@host", "h\x01", "host:+1",
        "unix:", "unix:run/s", "unix:/", "unix:/run/", "unix:/a:b",
        "unix:/a\nb", "unix://a/"}) {
    HostPort parsed{"untouched", 5};
    const rocksdb::Status status = ParseHostPort(text, &parsed);
    INFO(text << " -> " << status.ToString());
    REQUIRE(status.IsInvalidArgument());
    std::string shown = text;
    std::replace(shown.begin(), shown.end(), '\n', '?');
    REQUIRE(status.ToString().find("\"" + shown + "\"") != std::string::npos);
    REQUIRE(parsed.host == "untouched");
  }
  HostPort parsed;
  REQUIRE_OK(ParseHostPort("unix:/" + std::string(106, 'p'), &parsed));
  REQUIRE_FALSE(ParseHostPort("unix:/" + std::string(107, 'p'), &parsed).ok());
  REQUIRE_FALSE(ParseHostPort(std::string(256, 'h'), &parsed).ok());
  REQUIRE_FALSE(ParseHostPort(std::string("h\0x", 3), &parsed).ok());
}

TEST_CASE("IsLoopback recognizes this machine's loopback addresses", "[wire]") {
  for (const char* host : {"127.0.0.1", "127.9.9.9", "::1",
                           "::ffff:127.0.0.1", "localhost", "/run/s"}) {
    INFO(host);
    REQUIRE(IsLoopback(host));
  }
  for (const char* host : {"0.0.0.0", "::", "10.0.0.1", "8.8.8.8",
                           "::ffff:10.0.0.1", "", "no-such-host.invalid"}) {
    INFO(host);
    REQUIRE_FALSE(IsLoopback(host));
  }
}

}  // namespace
}  // namespace sstferry::host_port_test
