// Declares the functions that run the commands of sstferry.
#pragma once

#include <string>
#include <vector>

namespace sstferry {

// Run one command to its end and return the exit code. `arguments` are the
// words after the command's name.
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
