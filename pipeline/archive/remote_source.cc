#include "pipeline/archive/remote_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "format/end_state.h"
#include "format/limits.h"
#include "pipeline/archive/store.h"
#include "pipeline/pull/chunk_check.h"
#include "pipeline/pull/lane_channel.h"
#include "pipeline/pull/lane_retry.h"
#include "pipeline/pull/plan_check.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

struct RemoteSource::Lane {
  Lane(LaneShared* state, uint32_t lane)
      : number(lane),
        channel(state, lane),
        retry(state, "lane " + std::to_string(lane)) {}
  const uint32_t number;
  LaneChannel channel;
  LaneRetry retry;
  bool is_open = false;
};

// An open file and its lane. The lane is idle, or it transfers one unit.
class RemoteSource::File : public SetFile {
 public:
  File(RemoteSource* source, std::unique_ptr<Lane> lane, size_t file)
      : source_(source),
        lane_(std::move(lane)),
        channel_(lane_->channel),
        file_(file),
        known_(source->set_.files[file].file) {}
  // Discards the bytes that may still arrive on the lane.
  ~File() override {
    if (is_asked_) {
      Abandon();
    }
    source_->ReturnLane(std::move(lane_));
  }

  uint64_t size() const override { return known_.bytes; }
  [[nodiscard]] Status Read(uint64_t offset, size_t n, std::string* scratch,
                            Slice* out) const override {
    RETURN_IF_ERROR(const_cast<File*>(this)->Fill(offset, n, scratch));
    *out = Slice(*scratch);
    return Status::OK();
  }
  [[nodiscard]] Status Digest(uint64_t offset, uint64_t bytes,
                              FileDigests* digests) override;

 private:
  const Part& unit() const { return source_->plan_.parts[unit_]; }
  // Calls work() again until it succeeds, or its error permits no further
  // attempt.
  template <typename Work>
  [[nodiscard]] Status Tried(const Work& work);
  [[nodiscard]] Status Ready();
  [[nodiscard]] Status AskDigest(const FileDigestRequest& request,
                                 FileDigestReply* reply);
  [[nodiscard]] Status Fill(uint64_t offset, size_t n, std::string* scratch);
  // Receives the next bytes of the unit into frame_.
  [[nodiscard]] Status Receive();
  [[nodiscard]] Status BeginUnit();
  [[nodiscard]] Status EndUnit();
  [[nodiscard]] Status ReceiveFrame();
  // Ends the transfer of a unit early, because its remaining bytes are not
  // needed.
  void Abandon();

  RemoteSource* const source_;
  std::unique_ptr<Lane> lane_;
  LaneChannel& channel_;
  const size_t file_;
  const CloneFile& known_;
  uint64_t at_ = 0;        // offset of the next byte in the file
  size_t unit_ = 0;        // index of the unit that contains at_
  bool is_asked_ = false;  // the unit was requested on the open connection
  Frame frame_;
  size_t taken_ = 0;  // number of bytes of frame_ that Read() returned
  ChunkDigest digest_;
};

template <typename Work>
Status RemoteSource::File::Tried(const Work& work) {
  while (true) {
    Status status = Ready();
    if (status.ok()) {
      status = work();
    }
    if (status.ok()) {
      source_->state_.counters.progress++;
      return status;
    }
    const LaneFailure failure = channel_.failure();
    Abandon();
    if (source_->failure_.failed()) {
      return source_->failure_.status();
    }
    status = lane_->retry.AwaitTurn(status, failure);
    if (!status.ok()) {
      return source_->Fail(status, *lane_);
    }
  }
}

Status RemoteSource::File::Ready() {
  if (lane_->is_open) {
    return Status::OK();
  }
  RETURN_IF_ERROR(channel_.Open());
  lane_->is_open = true;
  lane_->retry.Connected();
  return Status::OK();
}

void RemoteSource::File::Abandon() {
  channel_.Leave(/*close=*/true);
  lane_->is_open = false;
  is_asked_ = false;
  frame_.payload.clear();
  taken_ = 0;
}

// Requests the digests of a piece. Waits without a deadline, because the source
// may read for a long time before it answers. The source reports its progress
// on the control connection.
Status RemoteSource::File::AskDigest(const FileDigestRequest& request,
                                     FileDigestReply* reply) {
  RETURN_IF_ERROR(channel_.Send(FrameType::kFileDigestRequest, request));
  Frame frame;
  RETURN_IF_ERROR(channel_.Receive(&frame, Clock::time_point::max()));
  RETURN_IF_ERROR(channel_.Expect(frame, FrameType::kFileDigestReply));
  return channel_.Damaged(Decode(frame.payload, reply));
}

Status RemoteSource::File::Digest(uint64_t offset, uint64_t bytes,
                                  FileDigests* digests) {
  if (is_asked_) {
    Abandon();
  }
  FileDigestRequest request;
  request.file = static_cast<uint32_t>(file_);
  request.offset = offset;
  request.bytes = bytes;
  FileDigestReply reply;
  RETURN_IF_ERROR(Tried([&] { return AskDigest(request, &reply); }));
  digests->Add(reply);
  return Status::OK();
}

Status RemoteSource::File::ReceiveFrame() {
  const LaneShared& state = source_->state_;
  taken_ = 0;
  frame_.payload.clear();
  return channel_.Receive(&frame_, Clock::now() + state.chunk_time +
                                       state.chunk_time_per_mib);
}

Status RemoteSource::File::BeginUnit() {
  PartRequest request;
  request.part_id = unit().id;
  request.open_bytes = at_ - unit().offset;
  RETURN_IF_ERROR(channel_.Send(FrameType::kPartRequest, request));
  is_asked_ = true;
  digest_ = ChunkDigest();
  RETURN_IF_ERROR(ReceiveFrame());
  RETURN_IF_ERROR(channel_.Expect(frame_, FrameType::kChunkBegin));
  ChunkBegin begin;
  RETURN_IF_ERROR(channel_.Damaged(Decode(frame_.payload, &begin)));
  frame_.payload.clear();
  if (begin.part_id != unit().id || begin.kind != PartKind::kUnit ||
      begin.ordinal != 0 || begin.file_bytes != unit().bytes ||
      begin.first_byte != request.open_bytes) {
    return channel_.Damaged(MakeStatus(
        EndState::kCorrupt,
        "chunk: expected unit " + std::to_string(unit().id) + " of " +
            std::to_string(unit().bytes) + " bytes from byte " +
            std::to_string(request.open_bytes) + " on, found part " +
            std::to_string(begin.part_id) + " of " +
            std::to_string(begin.file_bytes) + " from byte " +
            std::to_string(begin.first_byte) + " on"));
  }
  return Status::OK();
}

Status RemoteSource::File::Receive() {
  if (!is_asked_) {
    RETURN_IF_ERROR(BeginUnit());
  }
  RETURN_IF_ERROR(ReceiveFrame());
  RETURN_IF_ERROR(channel_.Expect(frame_, FrameType::kChunkData));
  const uint64_t left = unit().offset + unit().bytes - at_;
  if (frame_.payload.empty() || frame_.payload.size() > left) {
    const size_t found = frame_.payload.size();
    frame_.payload.clear();
    return channel_.Damaged(MakeStatus(
        EndState::kCorrupt, "chunk data: expected 1 to " +
                                std::to_string(left) + " bytes, found " +
                                std::to_string(found)));
  }
  digest_.AddFrame(frame_.digest);
  lane_->retry.CountGood(frame_.payload.size());
  return Status::OK();
}

// Receives the end of a unit. If the connection breaks, the next attempt
// requests the end again. A wrong digest of the unit is a fault of the source,
// because each frame was intact. So this error permits no further attempt.
Status RemoteSource::File::EndUnit() {
  if (!is_asked_) {
    RETURN_IF_ERROR(BeginUnit());
  }
  RETURN_IF_ERROR(ReceiveFrame());
  RETURN_IF_ERROR(channel_.Expect(frame_, FrameType::kChunkEnd));
  ChunkEnd end;
  RETURN_IF_ERROR(channel_.Damaged(Decode(frame_.payload, &end)));
  if (end.part_id != unit().id || end.file_bytes != unit().bytes ||
      end.digest != digest_.Finish()) {
    return channel_.Final(MakeStatus(
        EndState::kCorrupt,
        "unit " + std::to_string(unit().id) +
            ": its digest or length differs from that in its frames"));
  }
  ChunkAck ack;
  ack.part_id = unit().id;
  RETURN_IF_ERROR(channel_.Send(FrameType::kChunkAck, ack));
  RETURN_IF_ERROR(ReceiveFrame());
  RETURN_IF_ERROR(channel_.Expect(frame_, FrameType::kPartEnd));
  PartEnd part_end;
  RETURN_IF_ERROR(channel_.Damaged(Decode(frame_.payload, &part_end)));
  frame_.payload.clear();
  Totals totals;
  totals.chunks = 1;
  totals.sst_bytes = unit().bytes;
  PartDigest chain;
  chain.AddChunk(end.digest);
  RETURN_IF_ERROR(channel_.Final(
      CheckTotals(unit(), part_end, totals, chain.Finish())));
  is_asked_ = false;
  lane_->retry.ChunkDone();
  const std::lock_guard<std::mutex> lock(source_->mu_);
  source_->totals_[unit().id] = totals;
  return Status::OK();
}

// Reads bytes of the file. A store that retries a piece reads from the
// beginning of the piece again. Then the lane abandons its unit, and requests
// bytes from there.
Status RemoteSource::File::Fill(uint64_t offset, size_t n,
                                std::string* scratch) {
  if (offset > size() || n > size() - offset) {
    return MakeStatus(EndState::kInternal, "push: read past the end of a file");
  }
  if (offset != at_) {
    if (is_asked_) {
      Abandon();
    }
    at_ = offset;
  }
  scratch->clear();
  scratch->reserve(n);
  while (scratch->size() < n) {
    if (!is_asked_) {
      unit_ = source_->first_units_[file_];
      while (at_ >= unit().offset + unit().bytes) {
        ++unit_;
      }
    }
    if (taken_ == frame_.payload.size()) {
      RETURN_IF_ERROR(Tried([this] { return Receive(); }));
    }
    const size_t bytes =
        std::min(n - scratch->size(), frame_.payload.size() - taken_);
    scratch->append(frame_.payload.data() + taken_, bytes);
    taken_ += bytes;
    at_ += bytes;
    if (at_ == unit().offset + unit().bytes) {
      RETURN_IF_ERROR(Tried([this] { return EndUnit(); }));
    }
  }
  return Status::OK();
}

// --- the source --------------------------------------------------------------

RemoteSource::RemoteSource(Dialer* dialer, const RemoteSourceOptions& options)
    : options_(options),
      failure_([this] {
        link_.Close();
        const std::lock_guard<std::mutex> lock(mu_);
        changed_.notify_all();
      }),
      link_(dialer,
            [this] {
              SourceLinkOptions link;
              link.timeouts = options_.timeouts;
              link.log = options_.log;
              link.progress = [this] { return state_.counters.progress.load(); };
              link.on_loss = [this] { state_.retries++; };
              link.on_busy = [this] { state_.counters.progress++; };
              return link;
            }(),
            &failure_) {
  link_.ShareWith(&state_);
}

RemoteSource::~RemoteSource() {
  // No later push resumes this transfer. So the source can remove the snapshot.
  link_.End(MakeStatus(EndState::kRefused,
                       "the push ended before all files were uploaded; run the "
                       "same command again, which reuses what was uploaded"),
            FailedPart::kTarget);
}

void RemoteSource::Cancel() {
  failure_.Set(MakeStatus(EndState::kCancelled, "stopped on request"),
               FailedPart::kTarget);
}

Status RemoteSource::Fail(const Status& status, const Lane& lane) {
  link_.FailLane(status,
                 FailurePlace::Lane(FailedPart::kTargetLane, lane.number));
  return failure_.status();
}

Status RemoteSource::Connect() {
  RETURN_IF_ERROR(watch_.Start(options_.deadline, &failure_));
  RETURN_IF_ERROR(link_.Connect());
  SourceSession* const session = link_.session();
  PullOptions as_pulled;
  as_pulled.lanes = options_.lanes;
  as_pulled.chunk_bytes = kSetChunkBytes;
  as_pulled.method = PullMethod::kClone;
  OpenRequest request =
      MakeOpenRequest(as_pulled, options_.database, Purpose::kPull);
  request.target += ": archive push " + options_.place;
  request.target.resize(
      std::min<size_t>(request.target.size(), kMaxTargetTextBytes));
  RETURN_IF_ERROR(session->Open(request, &plan_));
  RETURN_IF_ERROR(CheckFamilies(plan_, {}));
  const uint32_t lanes = plan_.opened.lanes;
  if (!plan_.clone.has_value() || lanes == 0 || lanes > options_.lanes) {
    return MakeStatus(EndState::kCorrupt,
                      "plan: expected files and 1 to " +
                          std::to_string(options_.lanes) + " lanes, found " +
                          std::to_string(lanes) + " lanes" +
                          (plan_.clone.has_value() ? "" : " and no files"));
  }
  link_.SetLanes(lanes);
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    free_lanes_.push_back(std::make_unique<Lane>(&state_, lane));
  }
  set_ = SetOfPlan(plan_);
  first_units_.assign(set_.files.size() + 1, plan_.parts.size());
  for (size_t i = plan_.parts.size(); i-- > 0;) {
    first_units_[plan_.parts[i].file] = i;
  }
  totals_.resize(plan_.parts.size());
  state_.parts = &plan_.parts;
  state_.transfer_id = plan_.opened.transfer_id;
  return Status::OK();
}

Status RemoteSource::TakeLane(std::unique_ptr<Lane>* lane) {
  std::unique_lock<std::mutex> lock(mu_);
  changed_.wait(lock, [this] {
    return !free_lanes_.empty() || failure_.failed();
  });
  if (failure_.failed()) {
    return failure_.status();
  }
  *lane = std::move(free_lanes_.back());
  free_lanes_.pop_back();
  return Status::OK();
}

void RemoteSource::ReturnLane(std::unique_ptr<Lane> lane) {
  const std::lock_guard<std::mutex> lock(mu_);
  free_lanes_.push_back(std::move(lane));
  changed_.notify_one();
}

Status RemoteSource::Open(size_t file, std::unique_ptr<SetFile>* opened) {
  std::unique_ptr<Lane> lane;
  RETURN_IF_ERROR(TakeLane(&lane));
  *opened = std::make_unique<File>(this, std::move(lane), file);
  return Status::OK();
}

// Compares the totals of all parts with the totals of the source, and ends the
// transfer. If a part was not requested, both totals are zero.
Status RemoteSource::Finish() {
  struct Finish ours;
  struct Finish theirs;
  ours.families.resize(plan_.families.size());
  std::vector<ReceivedPart> received;
  for (const Part& part : plan_.parts) {
    ours.families[part.family] += totals_[part.id];
    received.push_back({part.id, totals_[part.id]});
  }
  const Status status = link_.session()->Finish(ours, received, &theirs);
  RETURN_IF_ERROR(failure_.failed() ? failure_.status() : status);
  link_.End(Status::OK(), {});
  return Status::OK();
}

}  // namespace sstferry
