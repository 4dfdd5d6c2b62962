// sstferry: finds the sub-command and lets it run.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>

#include "tools/sstferry/command/run.h"
#include "tools/sstferry/options/commands.h"
#include "tools/sstferry/output/console.h"
#include "tools/sstferry/service/signals.h"

namespace sstferry {
namespace {

using Run = int (*)(const std::vector<std::string>& arguments);

const std::map<std::string, Run> kRuns = {
    {"serve", RunServe},     {"pull", RunPull},
    {"verify", RunVerify},   {"plan", RunPlan},
    {"status", RunStatus},   {"release", RunRelease},
    {"inspect", RunInspect},
};

int Print(const std::string& text) {
  if (WriteResult(text)) {
    return 0;
  }
  std::fputs("sstferry: standard output could not be written\n", stderr);
  return ExitCodeOf(EndState::kInternal);
}

int Main(const std::vector<std::string>& words) {
  // What stands behind "--" is never an option.
  const auto options_end = std::find(words.begin(), words.end(), "--");
  const auto given = [&](const char* option) {
    return std::find(words.begin(), options_end, option) != options_end;
  };
  if (given("--version")) {
    return Print(VersionText());
  }
  const bool help = given("--help") || given("-h");
  const bool has_command =
      !words.empty() && !words[0].empty() && words[0][0] != '-';
  if (!has_command && help) {
    return Print(GeneralHelp());
  }
  if (!has_command) {
    return ReportUsage("", rocksdb::Status::InvalidArgument(
                               "expected a command: serve, pull, verify, plan, "
                               "status, release or inspect"));
  }
  const Command* command = FindCommand(words[0]);
  if (command == nullptr) {
    return ReportUsage(
        "", rocksdb::Status::InvalidArgument(
                "command: expected serve, pull, verify, plan, status, release "
                "or inspect, found \"" + words[0] + "\""));
  }
  if (help) {
    return Print(CommandHelp(*command));
  }
  return kRuns.at(command->name)({words.begin() + 1, words.end()});
}

}  // namespace
}  // namespace sstferry

int main(int argc, char** argv) {
  sstferry::HoldSignals();
  try {
    return sstferry::Main({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    // Out of memory, most likely: nothing else is thrown across a file.
    std::fprintf(stderr, "sstferry: INTERNAL: %s\n", error.what());
    return sstferry::ExitCodeOf(sstferry::EndState::kInternal);
  }
}
