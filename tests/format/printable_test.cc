#include "format/printable.h"

#include "tests/support/catch.h"

namespace sstferry::printable_test {
namespace {

// U+202E reverses the direction of the text after it. U+009B begins a terminal
// command.
constexpr char kTurned[] = "\xe2\x80\xae";
constexpr char kCommand[] = "\xc2\x9b";

TEST_CASE("Foreign text keeps readable characters, but no terminal commands",
          "[format]") {
  const std::string readable =
      "plain \xc3\xa9\xe2\x82\xac\xf0\x9f\x9a\xa2 ~";  // e acute, euro, ship
  REQUIRE(Printable(readable) == readable);
  REQUIRE(Printable(std::string("a\0b\x1b[2J\r\n\t\x7f", 11)) ==
          "a?b?[2J????");
  REQUIRE(Printable(kCommand) == "??");
  REQUIRE(Printable(kTurned) == "???");
  for (const char* marks :
       {"\xd8\x9c", "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xa8",
        "\xe2\x80\xa9", "\xe2\x80\xaa", "\xe2\x81\xa6", "\xe2\x81\xa9"}) {
    REQUIRE(PrintableLength(marks) == 0);
  }
  REQUIRE(PrintableLength("\xe2\x80\xa7") == 3);  // next to a mark
  REQUIRE(PrintableLength("\xe2\x81\xa5") == 3);
}

TEST_CASE("Bytes that are not UTF-8 are not printable", "[format]") {
  for (const char* bytes :
       {"\x80", "\xbf", "\xc0\xaf", "\xc1\x81", "\xc3", "\xc3(",
        "\xe0\x80\xaf", "\xe2\x82", "\xed\xa0\x80", "\xf0\x80\x80\xaf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"}) {
    CAPTURE(bytes);
    REQUIRE(PrintableLength(bytes) == 0);
    REQUIRE(Printable(bytes).front() == '?');
  }
  REQUIRE(PrintableLength("\xf4\x8f\xbf\xbf") == 4);
  REQUIRE(Printable("a\xff" "b") == "a?b");
}

TEST_CASE("Lines stay lines, and JSON keeps its meaning", "[format]") {
  REQUIRE(PrintableLines("one\ntwo\r\x1b\n") == "one\ntwo??\n");
  const std::string json = std::string("{\n  \"a\": \"\xc3\xa9") + kTurned +
                           kCommand + "\x7f\"\n}\n";
  REQUIRE(PrintableJson(json) ==
          "{\n  \"a\": \"\xc3\xa9\\u202e\\u009b\\u007f\"\n}\n");
}

}  // namespace
}  // namespace sstferry::printable_test
