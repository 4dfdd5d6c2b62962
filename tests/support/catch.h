// Hides the difference between Catch2 v2 (Debian 12) and v3 (Debian 13), and
// teaches Catch2 to print a rocksdb::Status.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;  // global in v2
#else
#include <catch2/catch.hpp>
#endif

#include <string>

#include "rocksdb/status.h"

namespace Catch {
template <>
struct StringMaker<rocksdb::Status> {
  static std::string convert(const rocksdb::Status& status) {
    return status.ToString();
  }
};
}  // namespace Catch

// Requires an OK status and prints the status otherwise.
#define REQUIRE_OK(expression)                       \
  do {                                               \
    const rocksdb::Status required_ok = (expression); \
    INFO(#expression << " -> " << required_ok.ToString()); \
    REQUIRE(required_ok.ok());                       \
  } while (false)
