# Makes the Debian packages: sstferry (the tool and its units), libsstferry-dev
# and sstferry-doc. tools/release makes them. To make them by hand, configure
# with -DCMAKE_INSTALL_PREFIX=/usr, build, and run cpack -G DEB in the build
# directory. Their version is that of project().
set(packages ${PROJECT_SOURCE_DIR}/tools/packages)
set(DOC_DIR ${CMAKE_INSTALL_DATADIR}/doc)

install(FILES ${packages}/sysusers.conf DESTINATION lib/sysusers.d
  RENAME sstferry.conf COMPONENT tool)
install(FILES ${packages}/tmpfiles.conf DESTINATION lib/tmpfiles.d
  RENAME sstferry.conf COMPONENT tool)
install(FILES tools/prometheus/sstferry.rules tools/grafana/sstferry.json
  DESTINATION ${CMAKE_INSTALL_DATADIR}/sstferry COMPONENT tool)
install(FILES README.md DESTINATION ${DOC_DIR}/sstferry-doc COMPONENT doc)
install(DIRECTORY docs DESTINATION ${DOC_DIR}/sstferry-doc COMPONENT doc)
# The other pages to which README.md and docs/ link.
foreach(page SECURITY.md benchmarks/README.md benchmarks/RESULTS.md
        format/FORMAT.md pipeline/README.md pipeline/ROOMS.md
        pipeline/wire/SECURITY.md tests/README.md)
  get_filename_component(directory ${page} DIRECTORY)
  install(FILES ${page} DESTINATION ${DOC_DIR}/sstferry-doc/${directory}
    COMPONENT doc)
endforeach()

if(SSTFERRY_STATIC)
  # Licences and a list of the software that the binary includes; tools/release
  # writes both after it has linked the binary.
  install(DIRECTORY ${PROJECT_BINARY_DIR}/third-party/
    DESTINATION ${DOC_DIR}/sstferry COMPONENT tool)
endif()

if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  if(SSTFERRY_STATIC)
    install(FILES ${packages}/lintian-overrides
      DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides
      RENAME sstferry COMPONENT tool)
  endif()
  install(FILES ${packages}/serve.toml DESTINATION /etc/sstferry
    COMPONENT tool)
  # Files that Debian requires in every package.
  string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
  set(maintainer "sstferry maintainers <maintainers@sstferry.example>")
  foreach(package sstferry:tool libsstferry-dev:dev sstferry-doc:doc)
    string(REGEX REPLACE ":.*" "" name ${package})
    string(REGEX REPLACE ".*:" "" component ${package})
    set(text ${PROJECT_BINARY_DIR}/packages/${name})
    file(WRITE ${text}/changelog
      "${name} (${PROJECT_VERSION}) unstable; urgency=medium\n\n"
      "  * Release ${PROJECT_VERSION}; CHANGELOG.md tells what is new.\n\n"
      " -- ${maintainer}  ${date}\n")
    file(COPY ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${text})
    execute_process(COMMAND gzip -9nf changelog CHANGELOG.md
      WORKING_DIRECTORY ${text} COMMAND_ERROR_IS_FATAL ANY)
    install(FILES ${packages}/copyright ${text}/changelog.gz
                  ${text}/CHANGELOG.md.gz
      DESTINATION ${DOC_DIR}/${name} COMPONENT ${component})
  endforeach()
  install(CODE [[
    file(GLOB pages "$ENV{DESTDIR}/usr/share/man/man*/*.[1-8]")
    execute_process(COMMAND gzip -9nf ${pages} COMMAND_ERROR_IS_FATAL ANY)]]
    COMPONENT tool)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME sstferry)
set(CPACK_PACKAGE_VENDOR sstferry)
set(CPACK_PACKAGE_CONTACT "${maintainer}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES TRUE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL tool dev doc)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE
  OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION TRUE)

set(CPACK_DEBIAN_TOOL_PACKAGE_NAME sstferry)
set(CPACK_DEBIAN_TOOL_PACKAGE_SECTION database)
set(CPACK_DEBIAN_TOOL_DESCRIPTION
"Move RocksDB databases between machines while they are in use
sstferry serves RocksDB databases to their replicas. A replica is seeded as
sorted chunks or as a clone of the files, refreshed by what changed, verified,
and exchanged as a whole. An interrupted pull resumes.")
set(CPACK_DEBIAN_TOOL_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOL_PACKAGE_DEPENDS
  "systemd | systemd-standalone-sysusers | systemd-sysusers")
set(CPACK_DEBIAN_TOOL_PACKAGE_SUGGESTS
  "sstferry-doc, prometheus, prometheus-node-exporter")
set(CPACK_DEBIAN_TOOL_PACKAGE_CONTROL_EXTRA ${packages}/conffiles
  ${packages}/postinst ${packages}/prerm ${packages}/postrm)

# sstferryConfig.cmake accepts only the RocksDB with which the library was
# built. If that is the bundled one, the package contains it.
set(rocksdb_package "")
if(NOT SSTFERRY_ROCKSDB STREQUAL "bundled")
  string(REGEX MATCH "^([0-9]+\\.[0-9]+)\\.([0-9]+)" ignored
    "${SSTFERRY_ROCKSDB_VERSION}")
  math(EXPR next_patch "${CMAKE_MATCH_2} + 1")
  set(rocksdb_package "librocksdb-dev (>= ${SSTFERRY_ROCKSDB_VERSION}), \
librocksdb-dev (<< ${CMAKE_MATCH_1}.${next_patch}~), ")
endif()
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libsstferry-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_DESCRIPTION
"Library of sstferry: serve, pull and refresh RocksDB databases
Headers, static libraries and a CMake package for C++ applications that serve
or refresh a RocksDB database which they have open.")
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
"${rocksdb_package}libssl-dev, libxxhash-dev, libzstd-dev, liblz4-dev, \
libsnappy-dev, zlib1g-dev, libbz2-dev, libcurl4-openssl-dev, libpugixml-dev")

set(CPACK_DEBIAN_DOC_PACKAGE_NAME sstferry-doc)
set(CPACK_DEBIAN_DOC_PACKAGE_SECTION doc)
set(CPACK_DEBIAN_DOC_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DOC_DESCRIPTION
"Documents of sstferry
How to seed and refresh replicas of RocksDB databases, what each command and
exit code means, and how the library is used.")

# Without this check, cpack would pack the paths and units of another prefix.
file(WRITE ${PROJECT_BINARY_DIR}/cpack_prefix.cmake
  "if(NOT \"${CMAKE_INSTALL_PREFIX}\" STREQUAL /usr)
  message(FATAL_ERROR \"packages are for the prefix /usr, found \"
    \"${CMAKE_INSTALL_PREFIX}: configure with -DCMAKE_INSTALL_PREFIX=/usr, \"
    \"or run tools/release\")
endif()\n")
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_BINARY_DIR}/cpack_prefix.cmake)
include(CPack)
