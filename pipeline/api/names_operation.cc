// Lists the served names: the plan of sst://HOST[:PORT] if the command gives no
// name.
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "pipeline/api/endpoint.h"
#include "pipeline/api/one_session.h"
#include "pipeline/api/operation_parts.h"
#include "sstferry/target.h"

namespace sstferry {
namespace {

using rocksdb::Status;

class NamesOperation : public Operation {
 public:
  explicit NamesOperation(const PullOptions& options) : options_(options) {}

  Status Run(Summary* summary) override {
    summary->started_at = NowRfc3339();
    summary->source = options_.source.ToString();
    std::unique_ptr<Endpoint> endpoint;
    Status status = Endpoint::Open(
        EndpointFor(options_), &endpoint);
    if (status.ok()) {
      status =
          session_.Run(endpoint->dialer(),
                       AskOnce(options_.timeouts, options_.deadline),
                       {FailedPart::kPlan}, [summary](SourceSession* session) {
                         ListReply reply;
                         const Status listed =
                             session->List(ListRequest(), &reply);
                         summary->served_names = std::move(reply.names);
                         if (listed.ok() && !reply.is_complete) {
                           summary->notes.push_back(
                               "the source may have more databases: it could "
                               "not search a directory, which its log "
                               "names");
                         }
                         return listed;
                       });
    }
    finished_ = status.ok();
    FinishSummary(status, {FailedPart::kPlan}, summary);
    return status;
  }
  void Cancel() override { session_.Cancel(); }
  void SetMaxRate(uint64_t /*bytes_per_sec*/) override {}
  Progress progress() const override {
    Progress progress;
    progress.phase = "plan";
    progress.finished = finished_;
    return progress;
  }

 private:
  const PullOptions options_;
  std::atomic<bool> finished_{false};
  OneSession session_;
};

}  // namespace

std::unique_ptr<Operation> MakeNames(const PullOptions& options) {
  return std::make_unique<NamesOperation>(options);
}

}  // namespace sstferry
