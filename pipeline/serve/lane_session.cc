#include "pipeline/serve/lane_session.h"

#include <algorithm>

#include "format/limits.h"
#include "pipeline/base/blocked_time.h"
#include "pipeline/base/descriptor_shortage.h"
#include "pipeline/base/thread_priority.h"
#include "pipeline/parts/interval_reader.h"
#include "pipeline/parts/read_failure.h"
#include "pipeline/parts/unit_sender.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// Approximate size of an EntriesReply. Even with one more key of maximum size,
// the reply is far smaller than kMaxPayloadBytes.
constexpr size_t kEntriesPageBytes = 256u << 10;
// Limits of the requests for parts and digests on one lane. A target never
// needs as many. A verify asks for the parts of another source's plan, so their
// number is unknown here.
constexpr uint64_t kRequestsPerPart = 16;
constexpr uint64_t kMoreRequests = 1024;

// Passes built bytes on to another sink. Does not count the time in that sink
// as work of this thread, because the sink waits for readers or for the
// network.
class WaitingSink final : public ChunkSink {
 public:
  WaitingSink(ChunkSink* sink, HoldBack::Worker* worker)
      : sink_(sink), worker_(worker) {}

  Status Begin(const ChunkBegin& begin) override {
    return Waited(sink_->Begin(begin));
  }
  Status Append(const Slice& data) override {
    return Waited(sink_->Append(data));
  }
  Status End(const ChunkEnd& end) override { return Waited(sink_->End(end)); }

 private:
  Status Waited(Status status) {
    worker_->Restart();
    return status;
  }

  ChunkSink* const sink_;
  HoldBack::Worker* const worker_;
};

}  // namespace

LaneSession::LaneSession(std::shared_ptr<Transfer> transfer, Channel* channel,
                         uint32_t lane)
    : transfer_(std::move(transfer)),
      lane_(lane),
      link_(transfer_.get(), channel),
      clock_(&transfer_->counters()->stages, Stage::kIdle),
      compressor_(transfer_->pace()->compression_level()),
      worker_(transfer_->pace()->hold_back().get(), &clock_),
      sink_(transfer_.get(), &link_, &clock_, &worker_, &compressor_,
            [this](const PartEnd& end, const Totals& received) {
              transfer_->ledger()->RecordPart(end, received);
            }) {}

void LaneSession::Run() {
  const Status attached = transfer_->Attach(lane_, &port_);
  if (!attached.ok()) {
    SendEnd(link_.channel(), attached, "lane " + std::to_string(lane_));
    return;
  }
  if (!port_->Enter(link_.channel())) {
    return;
  }
  if (transfer_->pace()->hold_back()->allowed()) {
    StepBack();
  }
  const uint64_t shortages = DescriptorShortages();
  const Status status = RetriedAfterShortage(Serve(), shortages);
  const std::string where = "source lane " + std::to_string(lane_);
  const bool failed = !status.ok() && !link_.lost() && !transfer_->ended() &&
                      !port_->replaced();
  if (failed && EndStateOf(status) == EndState::kTooSlow &&
      transfer_->may_keep()) {
    transfer_->Detach(status, where);  // unless the target has just reconnected
  } else if (failed && EndStateOf(status) == EndState::kDeadPeer) {
    // Tells the target, which will connect the lane again.
    SendEnd(link_.channel(), status, where);
  } else if (failed) {
    const Status told = transfer_->InDatabaseNames(status);
    SendEnd(link_.channel(), told, where);
    transfer_->Fail(told, where);
  }
  link_.channel()->Close();
  port_->Leave(link_.channel());
}

Status LaneSession::Serve() {
  Status status;
  bool done = false;
  while (status.ok() && !done) {
    clock_.Enter(Stage::kIdle);
    LaneRequest request;
    status = link_.Receive(&request);
    if (status.ok()) {
      clock_.Enter(Stage::kReadBuild);
      worker_.Restart();
      status = Answer(request, &done);
    }
  }
  return status;
}

Status LaneSession::Answer(const LaneRequest& asked, bool* done) {
  switch (asked.type) {
    case FrameType::kPartRequest: {
      PartRequest request;
      RETURN_IF_ERROR(Decode(asked.payload, &request));
      RETURN_IF_ERROR(CountRequest());
      return SendPart(request);
    }
    case FrameType::kDigestRequest: {
      DigestRequest request;
      RETURN_IF_ERROR(Decode(asked.payload, &request));
      RETURN_IF_ERROR(CountRequest());
      return SendDigest(request);
    }
    case FrameType::kUnitDigestRequest: {
      UnitDigestRequest request;
      RETURN_IF_ERROR(Decode(asked.payload, &request));
      RETURN_IF_ERROR(CountRequest());
      return SendUnitDigest(request);
    }
    case FrameType::kFileDigestRequest: {
      FileDigestRequest request;
      RETURN_IF_ERROR(Decode(asked.payload, &request));
      RETURN_IF_ERROR(CountRequest());
      return SendFileDigest(request);
    }
    case FrameType::kGroupRequest: {
      GroupRequest request;
      RETURN_IF_ERROR(Decode(asked.payload, &request));
      RETURN_IF_ERROR(CountRequest());
      return SendGroups(request);
    }
    case FrameType::kSiftRequest: {
      SiftRequest request;
      RETURN_IF_ERROR(Decode(asked.payload, &request));
      RETURN_IF_ERROR(CountRequest());
      return SendSifted(request);
    }
    case FrameType::kDeltaRequest: {
      DeltaRequest request;
      Status status = Decode(asked.payload, &request);
      status = status.ok() && request.complete ? CountRequest() : status;
      return status.ok() ? SendDelta(std::move(request)) : status;
    }
    case FrameType::kEntriesRequest: {
      EntriesRequest request;
      const Status status = Decode(asked.payload, &request);
      return status.ok() ? SendEntries(request) : status;
    }
    case FrameType::kEnd: {
      // The target needs the lane no longer. It sends the reason on the control
      // connection.
      *done = true;
      End end;
      return Decode(asked.payload, &end);
    }
    default:
      return MakeStatus(EndState::kCorrupt,
                        std::string("lane: expected a request, found frame ") +
                            FrameTypeName(asked.type));
  }
}

Status LaneSession::CountRequest() {
  const uint64_t allowed =
      kMoreRequests + (transfer_->request().purpose == Purpose::kVerify
                           ? kMaxParts
                           : kRequestsPerPart * transfer_->parts().size());
  return ++requests_ <= allowed
             ? Status::OK()
             : MakeStatus(EndState::kDenied,
                          "lane: expected at most " + std::to_string(allowed) +
                              " requests for parts and digests");
}

Status LaneSession::FindFamily(uint32_t index, const TransferFamily** family) {
  if (transfer_->is_clone()) {
    return MakeStatus(EndState::kCorrupt,
                      "lane: the target requested entries or their digests, "
                      "but this transfer is a clone");
  }
  if (index >= transfer_->families().size()) {
    return MakeStatus(EndState::kCorrupt,
                      "lane: expected a column family number below " +
                          std::to_string(transfer_->families().size()) +
                          ", found " + std::to_string(index));
  }
  *family = &transfer_->families()[index];
  return Status::OK();
}

Status LaneSession::SendPart(const PartRequest& request) {
  if (request.part_id >= transfer_->parts().size()) {
    return MakeStatus(EndState::kCorrupt,
                      "lane: expected a part number below " +
                          std::to_string(transfer_->parts().size()) +
                          ", found " + std::to_string(request.part_id));
  }
  const Part& part = transfer_->parts()[request.part_id];
  if (part.kind == PartKind::kUnit && request.received.chunks > 1) {
    return MakeStatus(EndState::kRefused,
                      "lane: part " + std::to_string(part.id) +
                          " has only one chunk, and the target requested a "
                          "second");
  }
  sink_.BeginPart(request);
  Status status;
  // A unit is one chunk. If the target already has this chunk, send only the
  // end of the part.
  const bool only_end =
      part.kind == PartKind::kUnit && request.received.chunks != 0;
  if (!only_end) {
    PartRead read;
    read.request = request;
    read.part = &part;
    read.cancelled = [this] { return PacedStop(); };
    // The wait for a builder is not work. Otherwise a lane that may work for
    // 1/20 of the time would sleep for 19 s after each second of waiting.
    read.cancelled_in_wait = [this] {
      worker_.Restart();
      return stopped();
    };
    read.on_progress = Counter();
    read.buffer = &unit_buffer_;
    if (part.kind == PartKind::kUnit) {
      read.unit = transfer_->unit_place(part);
    } else {
      SetBuild(request, &read);
    }
    status = transfer_->part_store()->Send(std::move(read), &sink_);
  }
  return status.ok() ? sink_.EndPart() : status;
}

bool LaneSession::PacedStop() {
  worker_.Pass();
  return stopped();
}

OnProgress LaneSession::Counter() {
  TransferCounters* counters = transfer_->counters();
  return [counters](uint64_t entries) {
    counters->entries.fetch_add(entries, std::memory_order_relaxed);
  };
}

// Sets read->build and read->build_for_all, which build the part. The part
// store may call build_for_all on a thread that outlives this lane, but not the
// plan.
void LaneSession::SetBuild(const PartRequest& request, PartRead* read) const {
  const TransferFamily& family = transfer_->families()[read->part->family];
  read->build = [&snapshot = transfer_->snapshot(), &family,
                 &part = *read->part,
                 options = BuilderOptions(family, request.chunk_bytes)](
                    const PartRequest& from,
                    const std::function<bool()>& cancelled,
                    const OnProgress& on_progress, ChunkSink* sink) {
    ChunkBuilderOptions own = options;
    own.cancelled = cancelled;
    own.on_progress = on_progress;
    KeyInterval left = part.interval;
    if (from.after.has_value()) {
      left.begin = from.after;
    }
    RETURN_IF_ERROR(
        snapshot.Fetch(family.handle->GetName(), left, own.cancelled));
    return ChunkBuilder(snapshot.db(), family.handle, family.chunk_options, own,
                        sink)
        .Build(part, from);
  };
  read->build_for_all = [build = read->build,
                         hold_back = transfer_->pace()->hold_back()](
                            const PartRequest& from,
                            const std::function<bool()>& cancelled,
                            const OnProgress& on_progress, ChunkSink* sink) {
    HoldBack::Worker worker(hold_back.get(), /*clock=*/nullptr);
    const auto paced = [&worker, &cancelled] {
      worker.Pass();
      return cancelled();
    };
    WaitingSink waiting(sink, &worker);
    return build(from, paced, on_progress, &waiting);
  };
}

ChunkBuilderOptions LaneSession::BuilderOptions(const TransferFamily& family,
                                                uint64_t chunk_bytes) const {
  ChunkBuilderOptions options;
  options.chunk_bytes = transfer_->request().chunk_bytes;
  if (chunk_bytes != 0) {
    options.chunk_bytes =
        std::min(options.chunk_bytes, std::max(chunk_bytes, kMinChunkBytes));
  }
  options.readahead_bytes = family.readahead_bytes;
  options.files = family.files_to_merge();
  options.target_takes_entities = transfer_->target_takes_entities();
  return options;
}

Status LaneSession::FindCompared(uint32_t part_id, const Part** part) {
  const RefreshAtSource* const refresh = transfer_->plan().refresh.get();
  if (refresh == nullptr || part_id >= transfer_->parts().size()) {
    return MakeStatus(EndState::kCorrupt,
                      "lane: the target requested to compare part " +
                          std::to_string(part_id) +
                          ", which is not a part of a refresh");
  }
  *part = &transfer_->parts()[part_id];
  if (deltas_ == nullptr) {
    deltas_ = refresh->MakeDeltas(transfer_->id());
  }
  return Status::OK();
}

Status LaneSession::SendGroups(const GroupRequest& request) {
  const Part* part = nullptr;
  RETURN_IF_ERROR(FindCompared(request.part_id, &part));
  GroupReply reply;
  RETURN_IF_ERROR(deltas_->Index(*part, request,
                                 [this] { return PacedStop(); }, &reply));
  return link_.Send(FrameType::kGroupReply, reply);
}

Status LaneSession::SendSifted(const SiftRequest& request) {
  const Part* part = nullptr;
  RETURN_IF_ERROR(FindCompared(request.part_id, &part));
  SiftReply reply;
  RETURN_IF_ERROR(deltas_->Sift(*part, request,
                                [this] { return PacedStop(); }, &reply));
  return link_.Send(FrameType::kSiftReply, reply);
}

Status LaneSession::SendDelta(DeltaRequest asked) {
  const bool complete = asked.complete;
  const Part* part = nullptr;
  RETURN_IF_ERROR(FindCompared(asked.part_id, &part));
  RETURN_IF_ERROR(deltas_->Add(*part, std::move(asked)));
  if (!complete) {
    return Status::OK();
  }
  ChunkBuilderOptions options = BuilderOptions(
      transfer_->families()[part->family], /*chunk_bytes=*/0);
  options.cancelled = [this] { return PacedStop(); };
  options.on_progress = Counter();
  PartRequest request;
  request.part_id = part->id;
  request.received = deltas_->asked().received;
  sink_.BeginPart(request);
  const Status status = deltas_->Build(*part, options, &sink_);
  return status.ok() ? sink_.EndPart() : status;
}

Status LaneSession::Fetch(const TransferFamily& family,
                          const KeyInterval& interval) {
  return transfer_->snapshot().Fetch(family.handle->GetName(), interval,
                                     [this] { return PacedStop(); });
}

Status LaneSession::SendDigest(const DigestRequest& request) {
  const TransferFamily* family = nullptr;
  RETURN_IF_ERROR(FindFamily(request.family, &family));
  RETURN_IF_ERROR(Fetch(*family, request.interval));
  DigestReply reply;
  RETURN_IF_ERROR(ReadFailure(
      DigestInterval(
          transfer_->db(), family->handle, request.interval,
          family->readahead_bytes, [this] { return PacedStop(); }, &reply),
      "digest"));
  return link_.Send(FrameType::kDigestReply, reply);
}

Status LaneSession::SendUnitDigest(const UnitDigestRequest& request) {
  if (!transfer_->is_clone() ||
      request.part_id >= transfer_->parts().size()) {
    return MakeStatus(EndState::kCorrupt,
                      "lane: the target requested the digest of part " +
                          std::to_string(request.part_id) +
                          ", which is not a unit of a clone");
  }
  const Part& unit = transfer_->parts()[request.part_id];
  DigestReply reply;
  const UnitPlace place = transfer_->unit_place(unit);
  const bool is_verify = transfer_->request().purpose == Purpose::kVerify;
  // A verify reads the objects of an archive, because the digests in a set's
  // record do not show that the objects still have these bytes.
  const auto from = is_verify ? UnitSource::DigestFrom::kBytes
                              : UnitSource::DigestFrom::kRecord;
  Status status = DigestUnit(
      place, unit, from, [this] { return PacedStop(); }, &unit_buffer_,
      &reply.content);
  // Only a verify checks the file here. In a pull, the target checks the files
  // that it received. The push has checked the files of an archive, and
  // DigestUnit() has compared their bytes with what the push read.
  if (status.ok() && is_verify && place.source == nullptr &&
      transfer_->is_last_unit(unit)) {
    status = CheckUnitFile(place.path,
                           transfer_->unit_file(unit), [&](uint64_t bytes) {
                             transfer_->CountRead(bytes);
                             return !PacedStop();
                           });
  }
  return status.ok() ? link_.Send(FrameType::kDigestReply, reply) : status;
}

Status LaneSession::SendFileDigest(const FileDigestRequest& request) {
  if (!transfer_->is_clone() || !transfer_->has_own_files() ||
      request.file >= transfer_->plan().clone->files.size()) {
    return MakeStatus(EndState::kCorrupt,
                      "lane: the target requested the digest of file " +
                          std::to_string(request.file) +
                          ", which is not a local file of a clone");
  }
  const FileSet& clone = *transfer_->plan().clone;
  const CloneFile& file = clone.files[request.file];
  FileDigestReply reply;
  RETURN_IF_ERROR(DigestPiece(
      transfer_->file_path(file), file, clone.unit_bytes, request,
      [this](uint64_t bytes) {
        transfer_->CountRead(bytes);
        return !PacedStop();
      },
      &unit_buffer_, &reply));
  return link_.Send(FrameType::kFileDigestReply, reply);
}

Status LaneSession::SendEntries(const EntriesRequest& request) {
  const TransferFamily* family = nullptr;
  RETURN_IF_ERROR(FindFamily(request.family, &family));
  RETURN_IF_ERROR(Fetch(*family, request.interval));
  EntriesReply reply;
  RETURN_IF_ERROR(ReadFailure(
      ReadEntries(transfer_->db(), family->handle, request,
                  family->readahead_bytes, kEntriesPageBytes, &reply),
      "entries"));
  return link_.Send(FrameType::kEntriesReply, reply);
}

}  // namespace sstferry
