// Includes xxHash. If the library has a dispatching header, uses it: it selects
// the CPU's widest vector unit at run time, while the plain XXH3 functions run
// on every x86-64 CPU and take several times as long. Both give the same
// values.
#pragma once

// Defines the streaming states, so that they can be members without a separate
// allocation that could fail.
#define XXH_STATIC_LINKING_ONLY
#ifdef SSTFERRY_XXH_DISPATCH
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif
