// Defines functions that the static parts of GCC 12 need and that glibc 2.34
// does not have, so that binaries of releases also run with 2.34 (RHEL 9,
// Ubuntu 22.04).
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

#define SSTFERRY_HIDDEN __attribute__((visibility("hidden")))

namespace {

struct Search {
  uintptr_t address;
  dl_find_object* result;
};

// Sets the search's result and returns 1 if the address is in this object.
int LookIn(dl_phdr_info* object, size_t, void* argument) {
  const Search& search = *static_cast<Search*>(argument);
  void* unwind_table = nullptr;
  bool found = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    const uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_GNU_EH_FRAME) {
      unwind_table = reinterpret_cast<void*>(begin);
    } else if (segment.p_type == PT_LOAD && search.address >= begin &&
               search.address - begin < segment.p_memsz) {
      found = true;
      search.result->dlfo_map_start = reinterpret_cast<void*>(begin);
      search.result->dlfo_map_end =
          reinterpret_cast<void*>(begin + segment.p_memsz);
    }
  }
  search.result->dlfo_eh_frame = unwind_table;
  return found && unwind_table != nullptr;
}

}  // namespace

extern "C" {

// Finds the unwind table for an address: the unwinder of exceptions calls it
// (glibc has it since 2.35), and reads dlfo_eh_frame only.
SSTFERRY_HIDDEN int _dl_find_object(void* address,
                                    dl_find_object* result) noexcept {
  *result = {};
  Search search{reinterpret_cast<uintptr_t>(address), result};
  return dl_iterate_phdr(LookIn, &search) == 1 ? 0 : -1;
}

// Returns 32 random bits: std::random_device calls it (glibc has it
// since 2.36).
SSTFERRY_HIDDEN uint32_t arc4random() noexcept {
  uint32_t bits = 0;
  // getrandom() returns so few bytes completely, or fails.
  while (getrandom(&bits, sizeof(bits), 0) != sizeof(bits)) {
  }
  return bits;
}

}  // extern "C"
