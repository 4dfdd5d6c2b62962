#include "tests/format/allocations.h"

#include <cstdlib>
#include <new>

namespace sstferry {
namespace {
thread_local size_t allocated_bytes = 0;
}  // namespace

size_t AllocatedBytes() { return allocated_bytes; }

}  // namespace sstferry

// A sanitizer replaces these itself and counts nothing for us: the bounds on
// allocations are then met by zero, and checked by every other build.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// The array and nothrow forms call these two.
void* operator new(size_t bytes) {
  sstferry::allocated_bytes += bytes;
  void* memory = malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}
void operator delete(void* memory) noexcept { free(memory); }
void operator delete(void* memory, size_t) noexcept { free(memory); }
#endif
