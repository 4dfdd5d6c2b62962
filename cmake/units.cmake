# Makes the systemd units of the packages in BUILD_DIR/, with the installed path
# of the binary. Also makes a source file with their text, from which "sstferry
# units" makes the units of a host, so that each job's sandbox is defined only
# once.
set(SSTFERRY_UNITS
  sstferry-serve.service sstferry-serve@.service
  sstferry-follow@.service
  sstferry-archive-push@.service sstferry-archive-push@.timer
  sstferry-archive-check@.service sstferry-archive-check@.timer
  sstferry-archive-drill@.service sstferry-archive-drill@.timer
  sstferry-archive-prune@.service sstferry-archive-prune@.timer
  sstferry-refresh@.service sstferry-refresh@.timer
  sstferry-swap@.service sstferry-swap@.timer)
set(templates "#include \"tools/sstferry/unit_templates.h\"

namespace sstferry {

const std::map<std::string, std::string>& UnitTemplates() {
  static const std::map<std::string, std::string> templates = {
")
foreach(unit ${SSTFERRY_UNITS})
  # refresh and swap share one text: tools/sstferry-JOB@.*
  string(REGEX MATCH "refresh|swap" job "${unit}")
  string(REGEX REPLACE "refresh|swap" "JOB" source "${unit}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    tools/${source})
  file(READ tools/${source} text)
  string(REPLACE "JOB" "${job}" text "${text}")
  # The program contains the text with /usr/local/bin, and puts its own path
  # into the units that it writes, because one binary of a release serves /usr
  # and /usr/local.
  string(APPEND templates "      {\"${unit}\", R\"unit(${text})unit\"},\n")
  string(REPLACE "/usr/local/bin" "${CMAKE_INSTALL_FULL_BINDIR}" text
    "${text}")
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/${unit} CONTENT "${text}")
endforeach()
string(APPEND templates "  };
  return templates;
}

}  // namespace sstferry
")
set(SSTFERRY_UNIT_TEMPLATES ${PROJECT_BINARY_DIR}/unit_templates.cc)
file(GENERATE OUTPUT ${SSTFERRY_UNIT_TEMPLATES} CONTENT "${templates}")
