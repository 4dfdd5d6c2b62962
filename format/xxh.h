// Includes xxHash. Where the library has it, uses the dispatching header, which
// selects the widest vector unit of the CPU at run time: the plain XXH3
// functions are built for every x86-64 and take several times as long. Both
// give the same values.
#pragma once

// Defines the streaming states, so that they can be members without a separate
// allocation that could fail.
#define XXH_STATIC_LINKING_ONLY
#ifdef SSTFERRY_XXH_DISPATCH
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif
