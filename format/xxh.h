// xxHash. XXH3 comes with what picks the widest vector unit of the machine
// that it runs on, where the library has that: the plain functions are built
// for every x86-64 and take several times as long. Both give the same values.
#pragma once

// Gives the definition of the streaming states, which are then members: no
// separate allocation that could fail.
#define XXH_STATIC_LINKING_ONLY
#ifdef SSTFERRY_XXH_DISPATCH
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif
