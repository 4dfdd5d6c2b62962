// Input: what an operator types. The first byte chooses: 0: arguments, one per
// line; 1: the lines of a config file; else: one value for every parser of
// values.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

#include "sstferry/transport.h"
#include "tests/support/scratch_dir.h"
#include "tools/sstferry/arguments.h"

namespace sstferry {
namespace {

using rocksdb::Status;

const std::vector<OptionSpec> kSpecs = {
    {"lanes", "N", OptionGroup::kCommon, "a number"},
    {"cf", "NAME", OptionGroup::kCommon, "repeatable", true},
    {"replace", nullptr, OptionGroup::kCommon, "a switch"},
    {"config", "FILE", OptionGroup::kCommon, "a file"},
};

// Requires that every error has a message.
void Require(const Status& status) {
  if (!status.ok() &&
      (status.getState() == nullptr || *status.getState() == '\0')) {
    abort();
  }
}

void ParseValue(const std::string& text) {
  uint64_t number = 0;
  Status status = ParseByteCount("--x", text, &number);
  Require(status);
  if (status.ok() && number == 0) {
    abort();
  }
  std::chrono::milliseconds duration{0};
  status = ParseDuration("--x", text, &duration);
  Require(status);
  if (status.ok() && duration.count() <= 0) {
    abort();
  }
  std::string key;
  Require(ParseKey("--x", text, &key));
  status = ParseNumber("--x", text, 3, 1000, &number);
  Require(status);
  if (status.ok() && (number < 3 || number > 1000)) {
    abort();
  }
  Require(ParseNumber("--x", text, 0, std::numeric_limits<uint64_t>::max(),
                      &number));
  NamedDirectory named;
  Require(ParseNamedDirectory("--x", text, &named));
  HostPort where;
  status = ParseHostPort(text, &where);
  Require(status);
  HostPort again;
  if (status.ok() && (!ParseHostPort(ToString(where), &again).ok() ||
                      again.host != where.host || again.port != where.port)) {
    abort();
  }
}

void ParseLines(const std::string& text) {
  std::vector<std::string> arguments;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    // Skips options that name another config file than the one made here.
    if (!line.starts_with("--c")) {
      arguments.push_back(line);
    }
  }
  OptionTexts texts;
  Require(ReadOptions(kSpecs, {"SOURCE", "TARGET_DIR"}, arguments, &texts));
}

void ParseConfig(const std::string& text) {
  static const ScratchDir scratch;
  const std::string path = scratch / "config";
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  OptionTexts texts;
  Require(ReadOptions(kSpecs, {"SOURCE", "TARGET_DIR"},
                      {"--config", path, "a", "b"}, &texts));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 0:
      ParseLines(text);
      break;
    case 1:
      ParseConfig(text);
      break;
    default:
      ParseValue(text);
      break;
  }
  return 0;
}

}  // namespace sstferry
