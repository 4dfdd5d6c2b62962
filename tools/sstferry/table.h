// Rows of text for a terminal.
#pragma once

#include <string>
#include <vector>

namespace sstferry {

// Columns as wide as their widest cell; the last one is not padded.
// REQUIRES: at least one row, all of the same number of cells.
std::string Table(const std::vector<std::vector<std::string>>& rows);

}  // namespace sstferry
