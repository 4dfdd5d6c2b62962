// The main function of every test program.
#include <fcntl.h>

#include <cerrno>

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
int main(int argc, char** argv) { return Catch::Session().run(argc, argv); }
#else
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
