#include "tests/format/allocations.h"

#include <cstdlib>
#include <new>

namespace sstferry {
namespace {
thread_local size_t allocated_bytes = 0;
}  // namespace

size_t AllocatedBytes() { return allocated_bytes; }

}  // namespace sstferry

// A sanitizer replaces these operators itself, so nothing is counted in its
// builds and tests see 0 allocated bytes. Other builds check the bounds.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// The array and nothrow forms of new and delete call these two.
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
