// Tests the process that a connection through ssh starts.
#include "pipeline/wire/ssh_process.h"

#include <csignal>

#include "sstferry/spawn.h"
#include "tests/support/catch.h"

namespace sstferry::ssh_process_test {
namespace {

TEST_CASE("The end of ssh is noticed even if the kernel reaps children",
          "[wire][ssh]") {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  Descriptor socket;
  std::unique_ptr<SshProcess> process;
  const rocksdb::Status started =
      SshProcess::Start({"/bin/sh", "-c", "exit 3"}, &socket, &process);
  std::optional<int> ended;
  if (started.ok()) {
    ended = process->Wait(std::chrono::seconds(10));
    // If the end was not noticed, the destructor would wait forever.
    if (!ended.has_value()) (void)process.release();
  }
  process.reset();
  std::signal(SIGCHLD, before);
  REQUIRE_OK(started);
  REQUIRE(ended.has_value());
  REQUIRE(*ended == kUnknownEnd);
  REQUIRE(DescribeExit(*ended).find("unknown exit code") != std::string::npos);
}

}  // namespace
}  // namespace sstferry::ssh_process_test
