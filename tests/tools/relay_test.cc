// The bytes that a process of another account may write to root's terminal.
#include "tools/sstferry/relay.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include <rapidcheck.h>

#include "sstferry/descriptor.h"
#include "tests/support/catch.h"

namespace sstferry::relay_test {
namespace {

std::string Passed(const std::string& bytes) {
  TerminalText text;
  const std::string passed = text.Pass(bytes);
  return passed + text.End();
}

TEST_CASE(
    "A terminal gets text and known sequences, but no other control codes",
    "[tools]") {
  REQUIRE(Passed("a\r\nb\tc\n") == "a\r\nb\tc\n");
  REQUIRE(Passed("\r5 %\033[K\033[31mbad\033[0m\n") ==
          "\r5 %\033[K\033[31mbad\033[0m\n");
  REQUIRE(Passed("na\303\257ve") == "na\303\257ve");
  REQUIRE(Passed("\033[6n\033]0;x\007\033c") == "?[6n?]0;x??c");
  REQUIRE(Passed("\033[2K\033[32m") == "?[2K?[32m");
  REQUIRE(Passed("\302\233c") == "??c");  // CSI of C1
  REQUIRE(Passed("\233c") == "?c");
  REQUIRE(Passed(std::string("\0\b\x7f", 3)) == "???");
  REQUIRE(Passed("\342\200\256x") == "???x");  // right-to-left override
  REQUIRE(Passed("end\303") == "end?");
  REQUIRE(Passed("end\033[") == "end??");
}

TEST_CASE("Splitting the bytes does not change the text for a terminal",
          "[tools]") {
  REQUIRE(rc::check([] {
    const auto parts = *rc::gen::container<std::vector<std::string>>(
        rc::gen::oneOf(
            rc::gen::elementOf(std::vector<std::string>{
                "\033", "[K", "\033[3", "1m", "\303", "\266", "\r\n", "text",
                "\342\200", "\256", "\302", "\233"}),
            rc::gen::arbitrary<std::string>()));
    TerminalText text;
    std::string all;
    std::string passed;
    for (const std::string& part : parts) {
      all += part;
      passed += text.Pass(part);
    }
    passed += text.End();
    RC_ASSERT(passed == Passed(all));
    for (size_t at = passed.find('\033'); at != std::string::npos;
         at = passed.find('\033', at + 1)) {
      const std::string next = passed.substr(at, 5);
      RC_ASSERT(next.rfind("\033[K", 0) == 0 || next == "\033[31m" ||
                next == "\033[33m" || next.rfind("\033[0m", 0) == 0);
    }
  }));
}

TEST_CASE("A relay copies all bytes written before Finish", "[tools]") {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  const Descriptor read_end(ends[0]);
  const Descriptor write_end(ends[1]);
  std::unique_ptr<OutputRelay> relay;
  REQUIRE_OK(OutputRelay::Open(write_end.get(), &relay));
  // A write end that stays open, as with a background process.
  const Descriptor writer(fcntl(relay->pipe(), F_DUPFD_CLOEXEC, 3));
  relay->Begin();
  const std::string bytes = "any \033[6n bytes";
  REQUIRE(write(writer.get(), bytes.data(), bytes.size()) ==
          static_cast<ssize_t>(bytes.size()));
  REQUIRE(relay->Finish());
  std::string got(100, '\0');
  const ssize_t size = read(read_end.get(), got.data(), got.size());
  REQUIRE(size > 0);
  got.resize(static_cast<size_t>(size));
  REQUIRE(got == bytes);  // a pipe gets all bytes unchanged
}

TEST_CASE("A relay reports that its file is full", "[tools]") {
  const Descriptor full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  REQUIRE(full.is_open());
  std::unique_ptr<OutputRelay> relay;
  REQUIRE_OK(OutputRelay::Open(full.get(), &relay));
  const Descriptor writer(fcntl(relay->pipe(), F_DUPFD_CLOEXEC, 3));
  relay->Begin();
  REQUIRE(write(writer.get(), "x", 1) == 1);
  REQUIRE_FALSE(relay->Finish());
}

}  // namespace
}  // namespace sstferry::relay_test
