// Rows of text for a terminal.
#pragma once

#include <string>
#include <vector>

namespace sstferry {

// Returns the rows with columns as wide as their widest cell; the last column
// is not padded. REQUIRES: at least one row, all with the same number of cells.
std::string Table(const std::vector<std::vector<std::string>>& rows);

}  // namespace sstferry
