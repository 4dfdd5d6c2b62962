# The library as others use it: find_package(sstferry), sstferry::sstferry.
include(CMakePackageConfigHelpers)

# The public headers and what they include. They keep their places under
# include/sstferry, so that #include "pipeline/target.h" means the same here
# and there; tests/install compares this list with what a compiler reads.
set(SSTFERRY_PUBLIC_HEADERS
  format/digest.h
  format/end_state.h
  format/messages.h
  format/messages_any.h
  format/messages_control.h
  format/messages_lane.h
  format/messages_refresh.h
  format/messages_status.h
  pipeline/options.h
  pipeline/refresh_options.h
  pipeline/source.h
  pipeline/status.h
  pipeline/target.h
  pipeline/wire/transport.h)
foreach(header ${SSTFERRY_PUBLIC_HEADERS})
  get_filename_component(room ${header} DIRECTORY)
  install(FILES ${header}
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sstferry/${room})
endforeach()

set_target_properties(sstferry_pipeline PROPERTIES EXPORT_NAME sstferry)
set_target_properties(sstferry_format PROPERTIES EXPORT_NAME format)
install(TARGETS sstferry_pipeline sstferry_format EXPORT sstferryTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

set(SSTFERRY_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/sstferry)
install(EXPORT sstferryTargets NAMESPACE sstferry::
  DESTINATION ${SSTFERRY_PACKAGE_DIR})
configure_package_config_file(cmake/sstferryConfig.cmake.in
  ${PROJECT_BINARY_DIR}/sstferryConfig.cmake
  INSTALL_DESTINATION ${SSTFERRY_PACKAGE_DIR}
  NO_SET_AND_CHECK_MACRO)
# Nothing is promised across minor versions before 1.0.
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/sstferryConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/sstferryConfig.cmake
              ${PROJECT_BINARY_DIR}/sstferryConfigVersion.cmake
              cmake/sstferryRocksDB.cmake
  DESTINATION ${SSTFERRY_PACKAGE_DIR})
