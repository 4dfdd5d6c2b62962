// Includes xxHash. Uses the library's dispatching header if it exists, because
// it selects the CPU's widest vector unit at run time. The plain XXH3 functions
// run on every x86-64 CPU, but are several times slower. Both give the same
// values.
#pragma once

// Makes xxHash define its streaming states. Then classes can have them as
// members, without a separate allocation that could fail.
#define XXH_STATIC_LINKING_ONLY
#ifdef SSTFERRY_XXH_DISPATCH
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif
