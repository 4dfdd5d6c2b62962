// The main function of every test program.
#include <fcntl.h>

#include <cerrno>
#include <cstdlib>

// Replaces libc's fallocate() for RocksDB, and always fails. RocksDB reserves
// 70 MB for a WAL that gets a few puts. A file system in memory fills them with
// zeros, which took half of the CPU time of all tests. RocksDB continues
// without the reservation, which changes no file's size.
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
  // Every run makes the same random inputs, so that a failure can be repeated.
  // tools/check --long sets another seed, and prints it.
  setenv("RC_PARAMS", "seed=20261127", /*overwrite=*/0);
  return Catch::Session().run(argc, argv);
}
