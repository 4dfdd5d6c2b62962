// The main function of every test program.
#include <fcntl.h>

#include <cerrno>
#include <cstdlib>

// Refuses to reserve space, in RocksDB's place of libc's function. RocksDB
// reserves 70 MB for a WAL that gets a few puts, which a file system in memory
// fills with zeros: half of the CPU time of all tests. RocksDB writes on
// without; no reader sees the difference, since the size of a file stays.
extern "C" int fallocate(int, int, off_t, off_t) {
  errno = EOPNOTSUPP;
  return -1;
}

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

int main(int argc, char** argv) {
  // Every run makes the same random inputs, so that a test that fails does not
  // fail by luck. tools/check --long sets another seed, and prints it.
  setenv("RC_PARAMS", "seed=20261127", /*overwrite=*/0);
  return Catch::Session().run(argc, argv);
}
