// True if this test program is built with a sanitizer. A sanitizer's shadow
// memory and quarantine of freed blocks make limits of memory meaningless.
#pragma once

namespace sstferry::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// True with ASan, which here includes UBSan. UBSan uses pipe() to check that an
// object can be read; without free descriptors it reports a wrong vptr.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kChecksVptr = true;
#else
inline constexpr bool kChecksVptr = false;
#endif

}  // namespace sstferry::test
