// Command lines of the benchmark programs: `program [role] --name value ...`.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace sstferry::bench {

// Every getter records its name, so that Done() can reject options that no
// getter read. Wrong usage prints one line on standard error and exits with 2.
class Flags {
 public:
  Flags(int argc, char** argv);

  // The first argument that is not an option, else "".
  const std::string& role() const { return role_; }

  std::string Text(const std::string& name, const std::string& fallback = "");
  // Text() that must not be empty.
  std::string Required(const std::string& name);
  // A whole number; K M G are powers of 1000, Ki Mi Gi of 1024.
  uint64_t Number(const std::string& name, uint64_t fallback);
  // --name or --no-name.
  bool Switch(const std::string& name, bool fallback);

  // Call after the last getter: exits with 2 if an option is unknown.
  void Done() const;

 private:
  std::string role_;
  std::map<std::string, std::string> values_;
  std::set<std::string> asked_;
};

// Prints the message and exits with 2.
[[noreturn]] void WrongUsage(const std::string& message);

}  // namespace sstferry::bench
