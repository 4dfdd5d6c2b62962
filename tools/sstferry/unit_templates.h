// The text of the packaged systemd units (tools/sstferry-*.service and .timer),
// which the build puts into the program (cmake/units.cmake).
#pragma once

#include <map>
#include <string>

namespace sstferry {

// Returns the units by their file names, such as "sstferry-follow@.service".
const std::map<std::string, std::string>& UnitTemplates();

}  // namespace sstferry
