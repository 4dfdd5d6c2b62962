# Generates manual pages, completions and docs/commands.md from the program's
# tables of options: in BUILD_DIR/man/ and BUILD_DIR/completions/, and, for the
# target commands_md, in docs/.
add_executable(sstferry_manuals tools/sstferry/manual_main.cc)
target_link_libraries(sstferry_manuals PRIVATE sstferry_policy
  sstferry_console)
set(manuals_stamp ${PROJECT_BINARY_DIR}/manuals.stamp)
add_custom_command(OUTPUT ${manuals_stamp}
  COMMAND sstferry_manuals ${PROJECT_BINARY_DIR}
  COMMAND ${CMAKE_COMMAND} -E touch ${manuals_stamp}
  DEPENDS sstferry_manuals
  COMMENT "Making manual pages, completions and commands.md" VERBATIM)
add_custom_target(manuals ALL DEPENDS ${manuals_stamp})
add_custom_target(commands_md
  COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_SOURCE_DIR}/docs
  COMMAND ${CMAKE_COMMAND} -E copy ${PROJECT_BINARY_DIR}/commands.md
          ${PROJECT_SOURCE_DIR}/docs/commands.md
  DEPENDS ${manuals_stamp} VERBATIM)

install(DIRECTORY ${PROJECT_BINARY_DIR}/man/
  DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tool
  FILES_MATCHING PATTERN "*.1")
install(DIRECTORY ${PROJECT_BINARY_DIR}/man/
  DESTINATION ${CMAKE_INSTALL_MANDIR}/man5 COMPONENT tool
  FILES_MATCHING PATTERN "*.5")
install(DIRECTORY ${PROJECT_BINARY_DIR}/man/
  DESTINATION ${CMAKE_INSTALL_MANDIR}/man8 COMPONENT tool
  FILES_MATCHING PATTERN "*.8")
install(FILES ${PROJECT_BINARY_DIR}/completions/sstferry.bash
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
  RENAME sstferry COMPONENT tool)
# Directory in which zsh searches by default: Debian has its own for packages in
# /usr.
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(zsh_completions zsh/vendor-completions)
else()
  set(zsh_completions zsh/site-functions)
endif()
install(FILES ${PROJECT_BINARY_DIR}/completions/_sstferry
  DESTINATION ${CMAKE_INSTALL_DATADIR}/${zsh_completions} COMPONENT tool)
