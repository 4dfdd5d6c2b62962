#include "tests/support/refreshed.h"

namespace sstferry::test {
namespace {

Ferried Run(Operation* operation) {
  Ferried result;
  result.status = operation->Run(&result.summary);
  return result;
}

void SetSource(const std::string& source_dir, PullOptions* options) {
  options->source = SourceAddress();
  options->source.directory = source_dir;
  options->snapshot_ttl = std::chrono::seconds(0);  // leaks must show
  options->mode = PullMode::kRefresh;
}

}  // namespace

Ferried Refresh(const std::string& source_dir, const std::string& target_dir,
                PullOptions options) {
  SetSource(source_dir, &options);
  options.target_dir = target_dir;
  return Run(MakePull(options).get());
}

Ferried RefreshOpen(const std::string& source_dir, OpenDb* target,
                    const std::vector<std::string>& families,
                    PullOptions options) {
  SetSource(source_dir, &options);
  OpenReplica replica;
  replica.db = target->get();
  for (const std::string& family : families) {
    replica.families.push_back(target->cf(family));
  }
  return Run(MakeRefresh(options, replica).get());
}

}  // namespace sstferry::test
