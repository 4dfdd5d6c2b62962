// Whether this test program is built with a sanitizer. Its shadow memory and
// quarantine of freed blocks make bounds on memory meaningless.
#pragma once

namespace sstferry::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace sstferry::test
