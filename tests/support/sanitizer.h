// Whether this test program is built with a sanitizer. Its shadow memory and
// quarantine of freed blocks make bounds on memory meaningless.
#pragma once

namespace sstferry::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// UBSan, which goes with ASan here, asks pipe() whether an object can be read
// and takes a process without descriptors for one with a wrong vptr.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kChecksVptr = true;
#else
inline constexpr bool kChecksVptr = false;
#endif

}  // namespace sstferry::test
