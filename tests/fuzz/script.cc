#include "tests/fuzz/script.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "format/wire_compression.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/wire/wait_deadline.h"
#include "tests/format/samples.h"

namespace sstferry::fuzz {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

const std::string kPeer = "script";

uint64_t RawBytes(const std::string& payload) {
  CompressedPayload compressed;
  return ParseCompressedPayload(payload, &compressed).ok()
             ? compressed.raw_bytes
             : 0;
}

void Require(bool holds, const char* what) {
  if (!holds) {
    fprintf(stderr, "a frame was sent that is wrong: %s\n", what);
    abort();
  }
}

}  // namespace

void AddStep(FrameType type, uint8_t flags, const std::string& payload,
             std::string* script) {
  script->push_back(static_cast<char>(type));
  script->push_back(static_cast<char>(flags));
  script->push_back(static_cast<char>(payload.size()));
  script->push_back(static_cast<char>(payload.size() >> 8));
  script->append(payload);
}

bool ShakesHands(Channel* channel, ConnectionKind kind, Hello* hello) {
  HelloAck ack;
  const Status status =
      ServerHandshake(channel, "sstferry fuzzed", RocksDbVersion(),
                      WaitLimit::Within(std::chrono::seconds(1)), hello, &ack);
  return status.ok() && hello->kind == kind;
}

uint8_t TakeByte(Slice* input) {
  if (input->empty()) {
    return 0;
  }
  const uint8_t byte = static_cast<uint8_t>((*input)[0]);
  input->remove_prefix(1);
  return byte;
}

Slice TakeBytes(Slice* input) {
  size_t size = TakeByte(input);
  size |= static_cast<size_t>(TakeByte(input)) << 8;
  const Slice taken(input->data(), std::min(size, input->size()));
  input->remove_prefix(taken.size());
  return taken;
}

Slice TakeConnection(Slice* script) {
  const char* const begin = script->data();
  uint8_t flags = 0;
  while (!script->empty() && (flags & kCut) == 0) {
    TakeByte(script);
    flags = TakeByte(script);
    TakeBytes(script);
  }
  return Slice(begin, static_cast<size_t>(script->data() - begin));
}

ScriptConnection::ScriptConnection(const Slice& script, Gate* gate,
                                   std::function<void()> on_end,
                                   ScriptChunk* chunk)
    : gate_(gate),
      on_end_(std::move(on_end)),
      script_(script),
      chunk_(chunk != nullptr ? chunk : &own_chunk_) {}

void ScriptConnection::Ended() {
  if (!ended_.exchange(true) && on_end_) {
    on_end_();
  }
}

void ScriptConnection::PrepareStep() {
  const FrameType type = static_cast<FrameType>(TakeByte(&script_));
  const uint8_t flags = TakeByte(&script_);
  std::string payload = TakeBytes(&script_).ToString();
  if ((flags & kGate) != 0 && gate_ != nullptr) {
    gate_->Await();
  }
  drip_ = (flags & kDrip) != 0;
  cut_ = (flags & kCut) != 0;
  ready_at_ = 0;
  if ((flags & kRaw) != 0) {
    if (gate_ != nullptr) {
      gate_->Close();  // frame boundaries are unknown from here on
    }
    ready_ = payload;
    return;
  }
  if ((flags & kMend) != 0) {
    Mend(type, &payload);
  }
  ready_.assign(kFrameHeaderBytes, '\0');
  const Slice part(payload);
  uint64_t digest = 0;
  const bool zstd = (flags & kZstd) != 0;
  EncodeFrameHeader(type, sequence_ + ((flags & kWrongSequence) != 0 ? 1 : 0),
                    &part, 1, ready_.data(), &digest,
                    zstd ? kFrameFlagZstd : 0);
  if ((flags & kWrongDigest) != 0) {
    ready_[kFrameHeaderBytes - 1] ^= 1;
  }
  ++sequence_;
  Note(type, zstd, payload, digest);
  if (gate_ != nullptr) {
    gate_->Said(type);
  }
  ready_ += payload;
}

void ScriptConnection::Mend(FrameType type, std::string* payload) const {
  if (type == FrameType::kChunkEnd) {
    ChunkEnd end;
    if (Decode(*payload, &end).ok()) {
      end.digest = chunk_->digest.Finish();
      end.file_bytes = chunk_->bytes;
      *payload = Encode(end);
    }
  } else if (type == FrameType::kPartEnd) {
    PartEnd end;
    if (Decode(*payload, &end).ok()) {
      end.chain = chain_.Finish();
      end.totals = totals_;
      *payload = Encode(end);
    }
  } else if (type == FrameType::kOpenRequest && mend_open_) {
    OpenRequest request;
    if (Decode(*payload, &request).ok()) {
      mend_open_(&request);
      *payload = Encode(request);
    }
  }
}

void ScriptConnection::Note(FrameType type, bool zstd,
                            const std::string& payload, uint64_t digest) {
  switch (type) {
    case FrameType::kChunkBegin: {
      ChunkBegin begin;
      if (!Decode(payload, &begin).ok() || begin.first_byte == 0) {
        *chunk_ = ScriptChunk();
      }
      break;
    }
    case FrameType::kChunkData:
      chunk_->digest.AddFrame(digest);
      chunk_->bytes += zstd ? RawBytes(payload) : payload.size();
      break;
    case FrameType::kChunkEnd: {
      ChunkEnd end;
      if (Decode(payload, &end).ok()) {
        chain_.AddChunk(end.digest);
        totals_.chunks++;
        totals_.entries += end.entries;
        totals_.key_value_bytes += end.key_bytes + end.value_bytes;
        totals_.sst_bytes += end.file_bytes;
      }
      break;
    }
    case FrameType::kPartEnd:
      chain_ = PartDigest();
      totals_ = Totals();
      break;
    default:
      break;
  }
}

Status ScriptConnection::Read(char* buffer, size_t capacity,
                              const WaitLimit& limit, size_t* bytes) {
  *bytes = 0;
  while (ready_at_ == ready_.size() && !script_.empty()) {
    PrepareStep();
  }
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (closed_) {
      return ClosedHere("peer " + kPeer);
    }
  }
  *bytes = std::min(capacity, ready_.size() - ready_at_);
  if (*bytes == 0 && !cut_ && limit.idle.count() == 0) {
    return MakeStatus(EndState::kDeadPeer, "peer " + kPeer + ": nothing yet");
  }
  if (*bytes == 0) {
    if (gate_ != nullptr) {
      gate_->SaidAll();
    }
    Ended();
  }
  if (drip_) {
    *bytes = std::min<size_t>(*bytes, 5);
  }
  memcpy(buffer, ready_.data() + ready_at_, *bytes);
  ready_at_ += *bytes;
  return Status::OK();
}

Status ScriptConnection::Write(const Slice* parts, size_t part_count,
                               const WaitLimit& limit) {
  std::string frame;
  for (size_t i = 0; i < part_count; ++i) {
    frame.append(parts[i].data(), parts[i].size());
  }
  FrameHeader header;
  Require(DecodeFrameHeader(frame, &header).ok(), "header");
  const Slice payload(frame.data() + kFrameHeaderBytes,
                      frame.size() - kFrameHeaderBytes);
  Require(header.payload_bytes == payload.size(), "length");
  Require(CheckFrameDigest(frame.data(), header, payload).ok(), "digest");
  Require(DecodePayload(header.type, payload).ok(), "payload");
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (closed_) {
      return ClosedHere("peer " + kPeer);
    }
    Require(header.sequence == frames_written_, "sequence");
    ++frames_written_;
  }
  if (gate_ != nullptr) {
    gate_->Heard(header.type);
  }
  return Status::OK();
}

void ScriptConnection::Close() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    closed_ = true;
  }
  if (gate_ != nullptr) {
    gate_->Close();
  }
  Ended();
}

const std::string& ScriptConnection::peer() const { return kPeer; }

ScriptDialer::ScriptDialer(const Slice& first, Gate* gate,
                           const Slice& second)
    : scripts_{first, second}, gate_(gate) {}

Status ScriptDialer::Dial(const WaitLimit& limit,
                          std::unique_ptr<Connection>* connection) {
  if (next_ >= std::size(scripts_)) {
    return PeerGone("connect " + kPeer + ": nobody listens");
  }
  Gate* const gate = next_ == 0 ? gate_ : nullptr;
  *connection = std::make_unique<ScriptConnection>(scripts_[next_++], gate);
  return Status::OK();
}

const std::string& ScriptDialer::address() const { return kPeer; }

}  // namespace sstferry::fuzz
