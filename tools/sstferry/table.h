// Formats text as a table for a terminal.
#pragma once

#include <string>
#include <vector>

namespace sstferry {

// Returns the rows as lines. Each column is as wide as its widest cell; the
// last column is not padded.
// REQUIRES: there is a row, and all rows have the same number of cells.
std::string Table(const std::vector<std::vector<std::string>>& rows);

}  // namespace sstferry
