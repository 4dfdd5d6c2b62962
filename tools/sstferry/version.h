// The versions that --version prints.
#pragma once

#include <string>

namespace sstferry {

std::string VersionText();
std::string RocksdbVersion();  // "7.8.3"

}  // namespace sstferry
