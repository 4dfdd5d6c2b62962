// Input: a byte that chooses the target's requests, a 16-bit length and the
// script of the control connection, then the script of a lane's connection. The
// script is the source's side of a control connection: handshake, list, status,
// plan (with the options that its families describe), totals.
#include "pipeline/options/family_options.h"
#include "pipeline/options/operators.h"
#include "pipeline/pull/plan_check.h"
#include "pipeline/pull/plan_options.h"
#include "pipeline/pull/source_session.h"
#include "tests/fuzz/script.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

enum Action : uint8_t {
  kList = 1,
  kOpen = 2,
  kLane = 4,
  kFinish = 8,
  kEnd = 16,
  kFail = 32,
  kCancel = 64,
  kStatus = 128,
};

// Uses a plan as a pull does before it requests data.
void UsePlan(const Plan& plan) {
  std::vector<const rocksdb::Comparator*> orders;
  Status status;
  for (const Family& family : plan.families) {
    const rocksdb::Comparator* order = nullptr;
    status = FindComparator(family.description.name,
                            family.description.comparator, {}, &order);
    BuiltFamily built;
    if (status.ok()) {
      status = BuildFamily(family.description, {}, {}, &built);
    }
    if (!status.ok()) {
      return;
    }
    orders.push_back(order);
  }
  std::string text;
  status = OptionsTextOf(plan, &text);
  if (status.ok()) {
    status = CheckTiling(plan, KeyInterval(), orders);
  }
  status.PermitUncheckedError();
}

void Use(uint8_t actions, SourceSession* session, fuzz::Gate* gate) {
  Status status;
  // Waits until the session has read everything that the source sends unasked.
  const auto next = [&](uint8_t action) {
    gate->AwaitRelease();
    return status.ok() && (actions & action) != 0;
  };
  if (next(kList)) {
    ListReply reply;
    status = session->List(ListRequest(), &reply);
  }
  if (next(kStatus)) {
    StatusReply reply;
    status = session->AskRetained({"db"}, &reply);
  }
  if (next(kOpen)) {
    OpenRequest request;
    request.database = "db";
    request.lanes = 2;
    request.chunk_bytes = 1u << 20;
    Plan plan;
    status = session->Open(request, &plan);
    if (status.ok()) {
      UsePlan(plan);
    }
  }
  if (next(kLane)) {
    std::unique_ptr<Channel> lane;
    status = session->ConnectLane(0, &lane);
  }
  if (next(kFinish)) {
    Finish ours;
    ours.families.resize(1);
    ours.families[0] = {1, 2, 3, 4};
    Finish theirs;
    status = session->Finish(ours, {}, &theirs);
  }
  if ((actions & kCancel) != 0) {
    session->Cancel();
  }
  if ((actions & kFail) != 0) {
    status = MakeStatus(EndState::kNoSpace, "disk full");
  }
  if ((actions & (kEnd | kFail)) != 0) {
    session->End(status, "target");
  }
  status.PermitUncheckedError();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Slice input(reinterpret_cast<const char*>(data), size);
  const uint8_t actions = fuzz::TakeByte(&input);
  const Slice control = fuzz::TakeBytes(&input);
  fuzz::Gate gate(fuzz::Gate::Tests::kTarget);
  fuzz::ScriptDialer dialer(control, &gate, input);
  SourceSessionOptions options;
  options.on_fail = [&gate](const Status&) {
    gate.Close();
  };
  std::unique_ptr<SourceSession> session;
  if (SourceSession::Connect(&dialer, options, &session).ok()) {
    Use(actions, session.get(), &gate);
  }
  return 0;
}

}  // namespace sstferry
