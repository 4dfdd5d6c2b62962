// A library that a test preloads (LD_PRELOAD) into a process. It shifts the
// process's wall clock by the seconds in the file that SSTFERRY_TEST_CLOCK
// names: eight bytes, which the test may change at any time. The steady clock
// is not changed.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace {

int64_t Offset() {
  static const volatile int64_t* const offset = [] {
    const char* const path = getenv("SSTFERRY_TEST_CLOCK");
    const int file = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
      return static_cast<const volatile int64_t*>(nullptr);
    }
    void* const mapped = mmap(nullptr, sizeof(int64_t), PROT_READ, MAP_SHARED,
                              file, 0);
    close(file);
    return mapped == MAP_FAILED
               ? static_cast<const volatile int64_t*>(nullptr)
               : static_cast<const volatile int64_t*>(mapped);
  }();
  return offset == nullptr ? 0 : *offset;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) {
  using Real = int (*)(clockid_t, timespec*);
  static const auto real =
      reinterpret_cast<Real>(dlsym(RTLD_NEXT, "clock_gettime"));
  const int result = real(clock, now);
  if (result == 0 &&
      (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    now->tv_sec += Offset();
  }
  return result;
}

time_t time(time_t* out) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) {
    *out = now.tv_sec;
  }
  return now.tv_sec;
}

int gettimeofday(timeval* __restrict now, void* __restrict) {
  timespec exact{};
  clock_gettime(CLOCK_REALTIME, &exact);
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}

}  // extern "C"
