# Installs the library for find_package(sstferry), as sstferry::sstferry.
include(CMakePackageConfigHelpers)

# The public headers, and the few headers of format/ that they include.
# tests/install compares this list with the headers that a compiler reads.
file(GLOB SSTFERRY_PUBLIC_HEADERS CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/pipeline/include/sstferry/*.h)
# Only tools/ uses these: they start child processes and read the operator's
# files.
list(FILTER SSTFERRY_PUBLIC_HEADERS
  EXCLUDE REGEX "/(descriptor|spawn|own_file)\\.h$")
install(FILES ${SSTFERRY_PUBLIC_HEADERS}
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sstferry COMPONENT dev)
install(FILES format/end_state.h format/types.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sstferry/format COMPONENT dev)

set_target_properties(sstferry_pipeline PROPERTIES EXPORT_NAME sstferry)
set_target_properties(sstferry_format PROPERTIES EXPORT_NAME format)
install(TARGETS sstferry_pipeline sstferry_format EXPORT sstferryTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)

# Installs a bundled RocksDB too, separate from the system's.
set(SSTFERRY_INSTALLED_ROCKSDB "")
if(SSTFERRY_ROCKSDB STREQUAL "bundled")
  set(SSTFERRY_INSTALLED_ROCKSDB ${CMAKE_INSTALL_LIBDIR}/sstferry/rocksdb)
  install(DIRECTORY ${SSTFERRY_BUNDLED_ROCKSDB}/include
                    ${SSTFERRY_BUNDLED_ROCKSDB}/lib
    DESTINATION ${SSTFERRY_INSTALLED_ROCKSDB} COMPONENT dev)
  install(FILES ${SSTFERRY_BUNDLED_ROCKSDB}/LICENSE.Apache
                ${SSTFERRY_BUNDLED_ROCKSDB}/LICENSE.leveldb
                ${SSTFERRY_BUNDLED_ROCKSDB}/COPYING
                ${SSTFERRY_BUNDLED_ROCKSDB}/AUTHORS
    DESTINATION ${SSTFERRY_INSTALLED_ROCKSDB} COMPONENT dev)
endif()

set(SSTFERRY_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/sstferry)
install(EXPORT sstferryTargets NAMESPACE sstferry::
  DESTINATION ${SSTFERRY_PACKAGE_DIR} COMPONENT dev)
configure_package_config_file(cmake/sstferryConfig.cmake.in
  ${PROJECT_BINARY_DIR}/sstferryConfig.cmake
  INSTALL_DESTINATION ${SSTFERRY_PACKAGE_DIR}
  PATH_VARS SSTFERRY_INSTALLED_ROCKSDB
  NO_SET_AND_CHECK_MACRO)
# Before 1.0, a minor version may be incompatible with another.
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/sstferryConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/sstferryConfig.cmake
              ${PROJECT_BINARY_DIR}/sstferryConfigVersion.cmake
              cmake/sstferryRocksDB.cmake
  DESTINATION ${SSTFERRY_PACKAGE_DIR} COMPONENT dev)
