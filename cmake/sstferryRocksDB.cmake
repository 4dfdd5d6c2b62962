# Finds RocksDB in the place that SSTFERRY_ROCKSDB specifies:
#   system   the system's directories for headers and libraries
#   bundled  SSTFERRY_BUNDLED_ROCKSDB, where CMakeLists.txt had it built
#   DIR      an install prefix, or a source tree that was built in DIR/build
# Sets ROCKSDB_INCLUDE_DIR and ROCKSDB_LIBRARY, unless they are set already, and
# SSTFERRY_ROCKSDB_VERSION to the version in the headers.
#
# Does not use RocksDB's own CMake package: Debian's requires packages that
# nothing here links, and a source tree has none.

set(rocksdb_dir "")
if(SSTFERRY_ROCKSDB STREQUAL "bundled")
  set(rocksdb_dir "${SSTFERRY_BUNDLED_ROCKSDB}")
elseif(NOT SSTFERRY_ROCKSDB STREQUAL "system")
  get_filename_component(rocksdb_dir "${SSTFERRY_ROCKSDB}" ABSOLUTE)
endif()

# Forgets the old RocksDB if a build directory changes to another one.
if(DEFINED SSTFERRY_ROCKSDB_LOOKED_IN AND
   NOT SSTFERRY_ROCKSDB_LOOKED_IN STREQUAL "${rocksdb_dir}")
  unset(ROCKSDB_INCLUDE_DIR CACHE)
  unset(ROCKSDB_LIBRARY CACHE)
endif()
set(SSTFERRY_ROCKSDB_LOOKED_IN "${rocksdb_dir}" CACHE INTERNAL "")

if(rocksdb_dir STREQUAL "")
  find_path(ROCKSDB_INCLUDE_DIR rocksdb/db.h)
  find_library(ROCKSDB_LIBRARY rocksdb)
else()
  find_path(ROCKSDB_INCLUDE_DIR rocksdb/db.h
    PATHS "${rocksdb_dir}/include" NO_DEFAULT_PATH)
  find_library(ROCKSDB_LIBRARY rocksdb
    PATHS "${rocksdb_dir}/build" "${rocksdb_dir}/lib" "${rocksdb_dir}/lib64"
          "${rocksdb_dir}/lib/${CMAKE_LIBRARY_ARCHITECTURE}" "${rocksdb_dir}"
    NO_DEFAULT_PATH)
endif()

set(SSTFERRY_ROCKSDB_VERSION "")
if(ROCKSDB_INCLUDE_DIR)
  file(STRINGS "${ROCKSDB_INCLUDE_DIR}/rocksdb/version.h" rocksdb_lines
    REGEX "^#define ROCKSDB_(MAJOR|MINOR|PATCH) [0-9]+")
  list(JOIN rocksdb_lines "." SSTFERRY_ROCKSDB_VERSION)
  string(REGEX REPLACE "#define ROCKSDB_[A-Z]+ " ""
    SSTFERRY_ROCKSDB_VERSION "${SSTFERRY_ROCKSDB_VERSION}")
endif()
