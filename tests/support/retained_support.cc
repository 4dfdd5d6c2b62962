#include "tests/support/retained_support.h"

#include <algorithm>
#include <filesystem>
#include <thread>

#include "tests/support/catch.h"
#include "tests/support/sample_database.h"

namespace sstferry {

using rocksdb::Status;
using std::chrono::milliseconds;

namespace {

WaitLimit Soon() { return WaitLimit::Within(milliseconds(60'000)); }

}  // namespace

OpenRequest SampleRequest() {
  OpenRequest request;
  request.database = "db";
  request.lanes = 2;
  request.chunk_bytes = 256u << 10;
  return request;
}

OpenRequest ResumeOf(const TransferId& id) {
  OpenRequest request = SampleRequest();
  request.snapshot_use = SnapshotUse::kResume;
  request.named_transfer = id;
  return request;
}

Status OpenAs(const HostPort& where, const OpenRequest& request,
              std::unique_ptr<Channel>* control, Announced* announced,
              const Hello* as, const TlsFiles& tls) {
  *announced = Announced();
  std::unique_ptr<Connection> connection;
  std::unique_ptr<Dialer> dialer = MakeTcpDialer(where);
  Status status =
      tls.empty() ? Status::OK() : MakeTlsDialer(where, tls, &dialer);
  if (status.ok()) status = dialer->Dial(Soon(), &connection);
  if (!status.ok()) {
    return status;
  }
  *control = std::make_unique<Channel>(std::move(connection));
  HelloAck ack;
  status = ClientHandshake(control->get(), as != nullptr ? *as : MakeHello(),
                           Soon(), &ack);
  if (status.ok()) {
    status = (*control)->SendMessage(FrameType::kOpenRequest, request);
  }
  while (status.ok()) {
    Frame frame;
    status = (*control)->Receive(Soon(), &frame);
    if (!status.ok()) {
      break;
    }
    if (frame.type == FrameType::kPlanEnd) {
      return status;
    }
    if (frame.type == FrameType::kBusy) {
      status = Decode(frame.payload, &announced->busy.emplace());
    } else if (frame.type == FrameType::kOpened) {
      status = Decode(frame.payload, &announced->opened);
    } else if (frame.type == FrameType::kFamily) {
      status = Decode(frame.payload, &announced->families.emplace_back());
    } else if (frame.type == FrameType::kParts) {
      Parts batch;
      status = Decode(frame.payload, &batch);
      announced->parts.insert(announced->parts.end(), batch.parts.begin(),
                               batch.parts.end());
    } else if (frame.type == FrameType::kEnd) {
      status = (*control)->ExpectType(frame, FrameType::kPlanEnd);
    }
  }
  return status;
}

Status TakePart(Channel* lane, const PartRequest& request, PartEnd* end,
                 std::vector<ChunkEnd>* chunks) {
  Status status = lane->SendMessage(FrameType::kPartRequest, request);
  while (status.ok()) {
    Frame frame;
    status = lane->Receive(Soon(), &frame);
    if (status.ok() && frame.type == FrameType::kPartEnd) {
      return Decode(frame.payload, end);
    }
    if (status.ok() && frame.type == FrameType::kChunkEnd &&
        chunks != nullptr) {
      status = Decode(frame.payload, &chunks->emplace_back());
    } else if (status.ok() && frame.type == FrameType::kEnd) {
      status = lane->ExpectType(frame, FrameType::kPartEnd);
    }
  }
  return status;
}

Status AgreeOnTotals(Channel* control, const Finish& totals) {
  Status status = control->SendMessage(FrameType::kFinish, totals);
  Frame frame;
  do {
    status = status.ok() ? control->Receive(Soon(), &frame) : status;
  } while (status.ok() && frame.type != FrameType::kFinished &&
           frame.type != FrameType::kEnd);
  if (status.ok()) status = control->ExpectType(frame, FrameType::kFinished);
  Finish theirs;
  if (status.ok()) status = Decode(frame.payload, &theirs);
  if (status.ok() && theirs.families != totals.families) {
    status = Status::Corruption("totals differ");
  }
  return status;
}

Status FinishWith(Channel* control, const Finish& totals) {
  const Status status = AgreeOnTotals(control, totals);
  return status.ok() ? control->SendMessage(FrameType::kEnd, End()) : status;
}

void SendEndState(Channel* control, EndState state) {
  SendEnd(control, MakeStatus(state, "a test said so"), "test");
}

std::vector<std::string> SnapshotsIn(const std::string& parent) {
  std::vector<std::string> found;
  for (const std::string& name : NamesOf(parent)) {
    if (name.find(".sstferry-snapshot-") != std::string::npos) {
      found.push_back(name);
    }
  }
  return found;
}

bool WaitForSnapshots(const std::string& parent, size_t count) {
  const auto until = Clock::now() + milliseconds(60'000);
  while (Clock::now() < until) {
    if (SnapshotsIn(parent).size() == count) {
      return true;
    }
    std::this_thread::yield();
  }
  return false;
}

RetainedBench::RetainedBench() {
  std::filesystem::create_directory(dir / "source");
  MakeSampleDatabase(dir / "source/db");
}

ServeOptions RetainedBench::Options() {
  ServeOptions options = ServeSample(dir / "source/db");
  options.timeouts.peer = std::chrono::minutes(10);  // no test waits that long
  options.snapshot_ttl = std::chrono::seconds(100);
  options.leases.steady_seconds = clock.function();
  options.leases.wall_seconds = clock.function();
  options.leases.tick = milliseconds(5);
  return options;
}

}  // namespace sstferry
