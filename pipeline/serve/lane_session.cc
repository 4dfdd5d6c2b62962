#include "pipeline/serve/lane_session.h"

#include "format/limits.h"
#include "pipeline/base/blocked_time.h"
#include "pipeline/base/descriptor_shortage.h"
#include "pipeline/parts/interval_reader.h"
#include "pipeline/parts/read_failure.h"
#include "pipeline/parts/unit_sender.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// Size of a page of EntriesReply: far below kMaxPayloadBytes even with one more
// key of the maximum size.
constexpr size_t kEntriesPageBytes = 256u << 10;
// Requests of one lane for parts and digests, far above what a target needs.
// A verify asks for the other side's parts.
constexpr uint64_t kRequestsPerPart = 16;
constexpr uint64_t kMoreRequests = 1024;
// On each connection, a target repeats its unanswered requests.
constexpr uint64_t kRequestsPerConnection = 4;

}  // namespace

LaneSession::LaneSession(std::shared_ptr<Transfer> transfer, Channel* channel,
                         uint32_t lane)
    : transfer_(std::move(transfer)),
      channel_(channel),
      lane_(lane),
      clock_(&transfer_->counters()->stages, Stage::kIdle),
      compressor_(transfer_->pace()->compression_level()),
      deltas_(transfer_.get()) {}

void LaneSession::Run() {
  LanePort* port = nullptr;
  const Status attached = transfer_->Attach(lane_, &port);
  if (!attached.ok()) {
    SendEnd(channel_, attached, "lane " + std::to_string(lane_));
    return;
  }
  if (port->Enter(channel_) == LanePort::Role::kServe) {
    ServeLane(port);
    port->Leave();
  }
}

void LaneSession::ServeLane(LanePort* port) {
  LaneLink link(transfer_.get(), port, channel_);
  link_ = &link;
  LaneSink sink(transfer_.get(), &link, &clock_, &compressor_,
                [this](const PartEnd& end, const Totals& received) {
                  transfer_->ledger()->RecordPart(end, received);
                });
  sink_ = &sink;
  const uint64_t shortages = DescriptorShortages();
  const Status status = RetriedAfterShortage(Serve(port), shortages);
  const std::string where = "source lane " + std::to_string(lane_);
  const bool failed = !status.ok() && !link.lost() &&
                      link.channel() != nullptr && !transfer_->ended();
  if (failed && EndStateOf(status) == EndState::kTooSlow &&
      transfer_->may_keep()) {
    transfer_->Detach(status, where);  // unless it has just come back
  } else if (failed && EndStateOf(status) == EndState::kDeadPeer) {
    // The target takes the lane up again.
    SendEnd(link.channel(), status, where);
  } else if (failed) {
    const Status told = transfer_->InDatabaseNames(status);
    SendEnd(link.channel(), told, where);
    transfer_->Fail(told, where);
  }
  if (link.channel() != nullptr) {
    link.channel()->Close();
  }
}

Status LaneSession::Serve(LanePort* port) {
  bool done = false;
  while (!done) {
    clock_.Enter(Stage::kIdle);
    LaneRequest request;
    Status status = link_->Receive(
        &request, [this] { return sink_->AwaitsAck(); });
    if (!status.ok() && link_->lost() && !sink_->empty()) {
      status = sink_->GoOn();
    } else if (status.ok()) {
      clock_.Enter(Stage::kReadBuild);
      status = Answer(request, port, &done);
      // A unit of a clone is read again, if it is requested.
      if (!status.ok() && link_->lost() && !sink_->empty()) {
        status = sink_->GoOn();
      }
    }
    if (!status.ok()) {
      return status;
    }
  }
  return Status::OK();
}

Status LaneSession::Answer(const LaneRequest& asked, LanePort* port,
                           bool* done) {
  switch (asked.type) {
    case FrameType::kPartRequest: {
      PartRequest request;
      Status status = request.DecodeFrom(asked.payload);
      status = status.ok() ? CountRequest() : status;
      return status.ok() ? SendPart(request) : status;
    }
    case FrameType::kDigestRequest: {
      DigestRequest request;
      Status status = request.DecodeFrom(asked.payload);
      status = status.ok() ? CountRequest() : status;
      return status.ok() ? SendDigest(request, port) : status;
    }
    case FrameType::kUnitDigestRequest: {
      UnitDigestRequest request;
      Status status = request.DecodeFrom(asked.payload);
      status = status.ok() ? CountRequest() : status;
      return status.ok() ? SendUnitDigest(request, port) : status;
    }
    case FrameType::kGroupRequest: {
      GroupRequest request;
      Status status = request.DecodeFrom(asked.payload);
      status = status.ok() ? CountRequest() : status;
      return status.ok() ? SendGroups(request, port) : status;
    }
    case FrameType::kDeltaRequest: {
      DeltaRequest request;
      Status status = request.DecodeFrom(asked.payload);
      status = status.ok() && request.complete ? CountRequest() : status;
      return status.ok() ? SendDelta(std::move(request)) : status;
    }
    case FrameType::kEntriesRequest: {
      EntriesRequest request;
      const Status status = request.DecodeFrom(asked.payload);
      return status.ok() ? SendEntries(request) : status;
    }
    case FrameType::kEnd: {
      // The lane is no longer needed; the control connection knows why.
      *done = true;
      End end;
      return end.DecodeFrom(asked.payload);
    }
    default:
      return MakeStatus(EndState::kCorrupt,
                        std::string("lane: expected a request, found frame ") +
                            FrameTypeName(asked.type));
  }
}

Status LaneSession::CountRequest() {
  const uint64_t allowed =
      kMoreRequests + kRequestsPerConnection * link_->connections() +
      (transfer_->request().purpose == Purpose::kVerify
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
                      "lane: a clone has no entries to compare");
  }
  if (index >= transfer_->families().size()) {
    return MakeStatus(EndState::kCorrupt,
                      "lane: expected a family below " +
                          std::to_string(transfer_->families().size()) +
                          ", found " + std::to_string(index));
  }
  *family = &transfer_->families()[index];
  return Status::OK();
}

Status LaneSession::SendPart(const PartRequest& request) {
  if (request.part_id >= transfer_->parts().size()) {
    return MakeStatus(EndState::kCorrupt,
                      "lane: expected a part below " +
                          std::to_string(transfer_->parts().size()) +
                          ", found " + std::to_string(request.part_id));
  }
  const Part& part = transfer_->parts()[request.part_id];
  sink_->BeginRange(request, /*rebuilt=*/!transfer_->is_clone());
  Status status = transfer_->is_clone() ? ClonePart(part, request)
                                        : BuildPart(part, request);
  if (status.ok()) {
    status = sink_->EndPart();
  }
  // Then the link's next request decides.
  return sink_->TakeSuperseded() ? Status::OK() : status;
}

std::function<void(uint64_t)> LaneSession::Counter() {
  TransferCounters* counters = transfer_->counters();
  return [counters](uint64_t entries) {
    counters->entries.fetch_add(entries, std::memory_order_relaxed);
  };
}

Status LaneSession::BuildPart(const Part& part,
                               const PartRequest& request) {
  const TransferFamily& family = transfer_->families()[part.family];
  if (part.need == PartNeed::kLookup && request.received.chunks == 0) {
    const auto [first, last] = family.changed->Find(
        family.handle->GetComparator(), part.interval);
    DeltaBuilder delta(transfer_->db(), family.handle, family.delta_options,
                       BuilderOptions(family), sink_);
    return delta.BuildLookups(part, family.lookup_files, *family.changed,
                              first, last);
  }
  if (request.of_delta || part.need == PartNeed::kLookup) {
    return Status::OK();  // the end alone: what came before it is not made anew
  }
  CachedRead read;
  read.request = request;
  const Status status = SendCached(part, family, &read);
  if (!status.ok() || read.complete) {
    return status;
  }
  ChunkBuilder builder(transfer_->db(), family.handle, family.chunk_options,
                       BuilderOptions(family), sink_);
  return builder.Build(part, read.request);
}

// Sends chunks that other targets of the same snapshot get, too.
Status LaneSession::SendCached(const Part& part, const TransferFamily& family,
                               CachedRead* read) {
  ChunkCache* const cache = transfer_->chunk_cache();
  if (cache == nullptr) {
    return Status::OK();
  }
  ChunkBuilderOptions options = BuilderOptions(family);
  options.cancelled = nullptr;
  options.on_progress = nullptr;
  // Outlives this lane, but not the plan.
  read->build = [db = transfer_->db(), &family, &part, options](
                    const PartRequest& from,
                    const std::function<bool()>& cancelled, ChunkSink* sink) {
    ChunkBuilderOptions own = options;
    own.cancelled = cancelled;
    return ChunkBuilder(db, family.handle, family.chunk_options, own, sink)
        .Build(part, from);
  };
  read->cancelled = [this] { return transfer_->ended(); };
  // In place of the resend buffer, which these chunks do not need.
  read->newest_bytes = transfer_->pace()->shares()->lane_bytes();
  read->on_chunk = [count = Counter()](const ChunkEnd& end) {
    count(end.entries);
  };
  return cache->Send(read, sink_);
}

ChunkBuilderOptions LaneSession::BuilderOptions(const TransferFamily& family) {
  ChunkBuilderOptions options;
  options.chunk_bytes = transfer_->request().chunk_bytes;
  options.readahead_bytes = family.readahead_bytes;
  options.files = family.files_to_merge();
  options.target_takes_entities = transfer_->target_takes_entities();
  options.cancelled = [this] { return transfer_->ended(); };
  options.on_progress = Counter();
  return options;
}

Status LaneSession::SendGroups(const GroupRequest& request, LanePort* port) {
  GroupReply reply;
  const Status status = deltas_.Index(
      request,
      [this, port] { return transfer_->ended() || port->replaced(); }, &reply);
  // As with SendDigest().
  return status.ok() || port->replaced()
             ? link_->Send(FrameType::kGroupReply, reply)
             : status;
}

Status LaneSession::SendDelta(DeltaRequest asked) {
  const uint32_t part_id = asked.part_id;
  const bool complete = asked.complete;
  Status status = deltas_.Add(std::move(asked));
  if (!status.ok() || !complete) {
    return status;
  }
  const Part& part = transfer_->parts()[part_id];
  const TransferFamily& family = transfer_->families()[part.family];
  PartRequest request;
  request.part_id = part_id;
  request.received = deltas_.asked().received;
  request.of_delta = true;
  sink_->BeginRange(request, /*rebuilt=*/true);
  status = deltas_.Build(part, BuilderOptions(family), sink_);
  if (status.ok()) {
    status = sink_->EndPart();
  }
  // As with SendPart().
  return sink_->TakeSuperseded() ? Status::OK() : status;
}

Status LaneSession::ClonePart(const Part& part,
                               const PartRequest& request) {
  if (request.received.chunks == 1 && request.after.has_value()) {
    return Status::OK();  // only the part's end was missing
  }
  if (request.after.has_value() || request.received.chunks != 0) {
    return MakeStatus(EndState::kRefused,
                      "lane: part " + std::to_string(part.id) +
                          " is one unit and has no second chunk");
  }
  const uint64_t first_byte = sink_->FirstByte(request);
  return SendUnit(transfer_->unit_path(part), part,
                  first_byte < part.bytes ? first_byte : 0,
                  [this] { return transfer_->ended(); }, sink_,
                  &unit_buffer_);
}

Status LaneSession::SendDigest(const DigestRequest& request, LanePort* port) {
  const TransferFamily* family = nullptr;
  Status status = FindFamily(request.family, &family);
  DigestReply reply;
  if (status.ok()) {
    status = ReadFailure(
        DigestInterval(transfer_->db(), family->handle, request.interval,
                       family->readahead_bytes,
                       [this, port] {
                         return transfer_->ended() || port->replaced();
                       },
                       &reply),
        "digest");
  }
  // The target repeats a request of a replaced connection on the next one.
  return status.ok() || port->replaced()
             ? link_->Send(FrameType::kDigestReply, reply)
             : status;
}

Status LaneSession::SendUnitDigest(const UnitDigestRequest& request,
                                   LanePort* port) {
  if (!transfer_->is_clone() ||
      request.part_id >= transfer_->parts().size()) {
    return MakeStatus(EndState::kCorrupt,
                      "lane: expected a unit of a clone, found part " +
                          std::to_string(request.part_id));
  }
  const Part& unit = transfer_->parts()[request.part_id];
  const auto stopped = [this, port] {
    return transfer_->ended() || port->replaced();
  };
  DigestReply reply;
  Status status = DigestUnit(transfer_->unit_path(unit), unit, stopped,
                             &unit_buffer_, &reply.content);
  // In a pull, the target checked what it has.
  if (status.ok() && transfer_->request().purpose == Purpose::kVerify &&
      transfer_->is_last_unit(unit)) {
    status = CheckUnitFile(transfer_->unit_path(unit),
                           transfer_->unit_file(unit), [&](uint64_t bytes) {
                             transfer_->CountRead(bytes);
                             return !stopped();
                           });
  }
  // As with SendDigest().
  return status.ok() || port->replaced()
             ? link_->Send(FrameType::kDigestReply, reply)
             : status;
}

Status LaneSession::SendEntries(const EntriesRequest& request) {
  const TransferFamily* family = nullptr;
  Status status = FindFamily(request.family, &family);
  EntriesReply reply;
  if (status.ok()) {
    status = ReadFailure(
        ReadEntries(transfer_->db(), family->handle, request,
                    family->readahead_bytes, kEntriesPageBytes, &reply),
        "entries");
  }
  return status.ok() ? link_->Send(FrameType::kEntriesReply, reply) : status;
}

}  // namespace sstferry
