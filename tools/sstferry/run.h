// The entry points of the sub-commands, one file each.
#pragma once

#include <string>
#include <vector>

namespace sstferry {

// Run one command to its end and return the exit code.
int RunServe(const std::vector<std::string>& arguments);
int RunPull(const std::vector<std::string>& arguments);
int RunRefresh(const std::vector<std::string>& arguments);
int RunSwap(const std::vector<std::string>& arguments);
int RunPlan(const std::vector<std::string>& arguments);
int RunVerify(const std::vector<std::string>& arguments);
int RunLs(const std::vector<std::string>& arguments);
int RunStatus(const std::vector<std::string>& arguments);
int RunRelease(const std::vector<std::string>& arguments);
int RunArchive(const std::vector<std::string>& arguments);
int RunFollow(const std::vector<std::string>& arguments);
int RunPromote(const std::vector<std::string>& arguments);
int RunView(const std::vector<std::string>& arguments);
int RunUnits(const std::vector<std::string>& arguments);
int RunCert(const std::vector<std::string>& arguments);

}  // namespace sstferry
