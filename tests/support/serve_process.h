// `sstferry serve` as a process of its own, on a free port.
#pragma once

#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/process.h"

namespace sstferry {

class ServeProcess {
 public:
  explicit ServeProcess(std::vector<std::string> arguments,
                        const std::string& listen = "127.0.0.1:0")
      : process_(WithServe(std::move(arguments), listen)) {
    REQUIRE(process_.WaitForOut("\n"));
    const std::string line = process_.out();
    const std::string expected = "listening on ";
    REQUIRE(line.rfind(expected, 0) == 0);
    address_ = line.substr(expected.size(),
                           line.find('\n') - expected.size());
  }
  Process& process() { return process_; }
  std::string url() const { return "sst://" + address_ + "/db"; }
  std::string list_url() const { return "sst://" + address_; }
  const std::string& address() const { return address_; }

 private:
  static std::vector<std::string> WithServe(std::vector<std::string> more,
                                            const std::string& listen) {
    std::vector<std::string> all{"serve", "--listen", listen};
    all.insert(all.end(), more.begin(), more.end());
    return Sstferry(all);
  }
  Process process_;
  std::string address_;
};

}  // namespace sstferry
