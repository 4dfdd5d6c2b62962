// Returns the text of the packaged systemd units (tools/sstferry-*.service and
// .timer). The build puts the text into the program (cmake/units.cmake).
#pragma once

#include <map>
#include <string>

namespace sstferry {

// Returns the text of each unit by the unit's file name, such as
// "sstferry-follow@.service".
const std::map<std::string, std::string>& UnitTemplates();

}  // namespace sstferry
