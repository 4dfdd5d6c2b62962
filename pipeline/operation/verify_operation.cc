// A verify: the endpoints of both sides joined to a Verifier.
#include "pipeline/operation/endpoint.h"
#include "pipeline/operation/operation_parts.h"
#include "pipeline/operation/verifier.h"
#include "sstferry/target.h"

namespace sstferry {
namespace {

using rocksdb::Status;

class VerifyOperation : public Operation {
 public:
  explicit VerifyOperation(const VerifyOptions& options) : options_(options) {}

  Status Run(Summary* summary) override {
    PullOptions common;
    common.snapshot_dir = options_.snapshot_dir;
    common.wal_dir = options_.wal_dir;
    common.tls = options_.tls;
    common.peer_timeout = options_.peer_timeout;
    common.stall_timeout = options_.stall_timeout;
    common.registry = options_.registry;
    common.log = options_.log;
    std::unique_ptr<Endpoint> left;
    std::unique_ptr<Endpoint> right;
    Status status = Endpoint::Open(
        EndpointFor(options_.left, options_.lanes, common), &left);
    common.wal_dir.clear();
    if (status.ok()) {
      status = Endpoint::Open(
          EndpointFor(options_.right, options_.lanes, common), &right);
    }
    std::string where = "verify";
    if (status.ok()) {
      Verifier verifier(options_, left->dialer(), left->name(),
                        right->dialer(), right->name());
      status = slot_.Set(&verifier) ? verifier.Run(summary)
                                    : CancelledBeforeStart();
      if (!verifier.error_where().empty()) {
        where = verifier.error_where();
      }
      slot_.Clear(verifier.progress());
    }
    FinishSummary(status, where, summary);
    return status;
  }
  void Cancel() override { slot_.Cancel(); }
  void SetMaxRate(uint64_t /*bytes_per_sec*/) override {}
  Progress progress() const override { return slot_.progress(); }

 private:
  const VerifyOptions options_;
  WorkerSlot<Verifier> slot_;
};

}  // namespace

std::unique_ptr<Operation> MakeVerify(const VerifyOptions& options) {
  return std::make_unique<VerifyOperation>(options);
}

}  // namespace sstferry
