// `sstferry serve` as a process of its own, on a free port.
#pragma once

#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/process.h"

namespace sstferry {

class ServeProcess {
 public:
  // `most_descriptors`: the hard limit of descriptors, because serve raises the
  // soft limit; 0: this process's limit.
  explicit ServeProcess(std::vector<std::string> arguments,
                        const std::string& listen = "127.0.0.1:0",
                        size_t most_descriptors = 0)
      : process_(WithLimit(WithServe(std::move(arguments), listen),
                           most_descriptors)) {
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
  static std::vector<std::string> WithLimit(std::vector<std::string> words,
                                            size_t most_descriptors) {
    if (most_descriptors != 0) {
      const std::string limit =
          "ulimit -n " + std::to_string(most_descriptors);
      words.insert(words.begin(),
                   {"/bin/sh", "-c", limit + "; exec \"$@\"", "sh"});
    }
    return words;
  }
  Process process_;
  std::string address_;
};

}  // namespace sstferry
