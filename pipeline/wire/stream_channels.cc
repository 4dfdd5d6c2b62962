#include "pipeline/wire/stream_channels.h"

#include <algorithm>
#include <cstring>

#include "format/end_state.h"
#include "format/limits.h"
#include "format/printable.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// A side grants credit again when a quarter of the channel's credit was read.
// So few frames grant credit, and a sender never waits if its reader is fast
// enough.
constexpr uint32_t kGrantParts = 4;
// Maximum number of bytes that are copied before the other thread is woken.
// With a small number, both threads copy at the same time.
constexpr size_t kStreamPieceBytes = 64u << 10;
// Maximum credit of one channel. A peer that grants more breaks a rule.
constexpr uint64_t kMostCredit = 1ull << 32;
// If the input is no stream of sstferry, a message shows this many bytes of it.
constexpr size_t kMaxShownBytes = 60;

Status BrokenRule(const std::string& what) {
  return MakeStatus(EndState::kCorrupt, "stream: " + what);
}

std::string NameOf(uint32_t id) { return "channel " + std::to_string(id); }

}  // namespace

void ByteRing::Put(const Slice& data) {
  const size_t first = std::min(data.size(), capacity_ - put_at_);
  memcpy(bytes_.get() + put_at_, data.data(), first);
  memcpy(bytes_.get(), data.data() + first, data.size() - first);
  put_at_ = (put_at_ + data.size()) % capacity_;
}

std::array<Slice, 2> ByteRing::Peek(size_t bytes) const {
  const size_t first = std::min(bytes, capacity_ - take_at_);
  return {Slice(bytes_.get() + take_at_, first),
          Slice(bytes_.get(), bytes - first)};
}

void ByteRing::Take(char* out, size_t bytes) {
  for (const Slice& piece : Peek(bytes)) {
    memcpy(out, piece.data(), piece.size());
    out += piece.size();
  }
  Drop(bytes);
}

StreamChannels::StreamChannels(const MultiplexerOptions& options)
    : options_(options) {}

// --- for the multiplexer's callers ------------------------------------------

Status StreamChannels::EndedLocked() const {
  return ended_ ? end_status_ : Status::OK();
}

Status StreamChannels::AwaitHello(const WaitLimit& limit) {
  WaitDeadline deadline(limit);
  Lock lock(mu_);
  while (!stopped_waiting_ && !ended_ && first_credit_ == 0) {
    if (deadline.Expired()) {
      return deadline.Timeout("peer " + peer() + ": hello");
    }
    changed_.wait_until(lock, deadline.WakeAt());
  }
  return stopped_waiting_ ? ClosedHere("peer " + peer()) : EndedLocked();
}

std::shared_ptr<StreamChannel> StreamChannels::AddLocked(uint32_t id) {
  auto channel = std::make_shared<StreamChannel>(id, options_.credit_bytes);
  channel->may_receive = options_.credit_bytes;
  channel->may_send = first_credit_;
  channels_[id] = channel;
  last_id_ = id;
  return channel;
}

Status StreamChannels::Open(std::shared_ptr<StreamChannel>* channel) {
  Lock lock(mu_);
  RETURN_IF_ERROR(EndedLocked());
  if (channels_.size() >= options_.max_channels || last_id_ == UINT32_MAX) {
    return PeerGone("peer " + peer() + ": expected at most " +
                    std::to_string(options_.max_channels) +
                    " channels at once, found no free one");
  }
  *channel = AddLocked(last_id_ + 1);
  (*channel)->open_due = true;
  EnqueueLocked(*channel);
  return Status::OK();
}

Status StreamChannels::Accept(std::shared_ptr<StreamChannel>* channel) {
  Lock lock(mu_);
  changed_.wait(lock, [this] {
    return stopped_waiting_ || ended_ || !accepted_.empty();
  });
  if (stopped_waiting_) {
    return ClosedHere("accept " + peer());
  }
  RETURN_IF_ERROR(EndedLocked());
  *channel = std::move(accepted_.front());
  accepted_.pop_front();
  return Status::OK();
}

void StreamChannels::StopWaiting() {
  const Lock lock(mu_);
  stopped_waiting_ = true;
  changed_.notify_all();
}

bool StreamChannels::ended() const {
  const Lock lock(mu_);
  return ended_;
}

void StreamChannels::AwaitClosed(std::chrono::milliseconds limit) {
  Lock lock(mu_);
  for (const std::shared_ptr<StreamChannel>& nobodys : accepted_) {
    nobodys->closed_here = true;
    EnqueueLocked(nobodys);
  }
  accepted_.clear();
  changed_.wait_until(lock, Clock::now() + limit, [this] {
    return std::all_of(
        channels_.begin(), channels_.end(),
        [](const auto& each) { return each.second->closed_here; });
  });
}

// --- for a channel's connection ---------------------------------------------

Status StreamChannels::Read(const std::shared_ptr<StreamChannel>& channel,
                            char* buffer, size_t capacity,
                            const WaitLimit& limit, size_t* bytes) {
  *bytes = 0;
  WaitDeadline deadline(limit);
  Lock lock(mu_);
  while (!channel->closed_here && channel->in_used == 0 &&
         !channel->closed_there && !ended_) {
    if (deadline.Expired()) {
      return deadline.Timeout("peer " + peer() + ": read");
    }
    channel->readable.wait_until(lock, deadline.WakeAt());
  }
  if (channel->closed_here) {
    return ClosedHere("peer " + peer());
  }
  const size_t take = std::min({channel->in_used, capacity, kStreamPieceBytes});
  if (take == 0) {
    return channel->closed_there ? Status::OK() : EndedLocked();
  }
  lock.unlock();
  channel->in.Take(buffer, take);
  lock.lock();
  channel->in_used -= take;
  channel->to_grant += static_cast<uint32_t>(take);
  *bytes = take;
  channel->grant_due = channel->grant_due ||
                       channel->to_grant >= options_.credit_bytes / kGrantParts;
  EnqueueLocked(channel);
  return Status::OK();
}

Status StreamChannels::WaitForRoom(StreamChannel* channel, const Slice& data,
                                   WaitDeadline* deadline, size_t* room) {
  Lock lock(mu_);
  while (!channel->closed_here && !channel->closed_there && !ended_ &&
         channel->out_used == channel->out.capacity()) {
    if (deadline->Expired()) {
      return deadline->Timeout("peer " + peer() + ": write");
    }
    channel->writable.wait_until(lock, deadline->WakeAt());
  }
  if (channel->closed_here) {
    return ClosedHere("peer " + peer());
  }
  if (channel->closed_there) {
    return PeerGone("peer " + peer() +
                    ": closed the connection while it was written to");
  }
  RETURN_IF_ERROR(EndedLocked());
  *room = std::min({channel->out.capacity() - channel->out_used, data.size(),
                    kStreamPieceBytes});
  return Status::OK();
}

Status StreamChannels::Write(const std::shared_ptr<StreamChannel>& channel,
                             const Slice* parts, size_t part_count,
                             const WaitLimit& limit) {
  WaitDeadline deadline(limit);
  for (size_t i = 0; i < part_count; ++i) {
    Slice left = parts[i];
    while (!left.empty()) {
      size_t room = 0;
      RETURN_IF_ERROR(WaitForRoom(channel.get(), left, &deadline, &room));
      channel->out.Put(Slice(left.data(), room));
      left.remove_prefix(room);
      deadline.Progress();
      const Lock lock(mu_);
      channel->out_used += room;
      EnqueueLocked(channel);
    }
  }
  return Status::OK();
}

void StreamChannels::Close(const std::shared_ptr<StreamChannel>& channel) {
  const Lock lock(mu_);
  if (channel->closed_here) {
    return;
  }
  channel->closed_here = true;
  changed_.notify_all();
  channel->readable.notify_all();
  channel->writable.notify_all();
  EnqueueLocked(channel);
}

// --- for the reading thread -------------------------------------------------

void StreamChannels::TakeHello(const StreamHello& hello) {
  const Lock lock(mu_);
  first_credit_ = hello.credit_bytes;
  for (const auto& [id, channel] : channels_) {
    channel->may_send += first_credit_;
    EnqueueLocked(channel);
  }
  changed_.notify_all();
}

Status StreamChannels::TakeOpenLocked(uint32_t id) {
  if (options_.dials) {
    return BrokenRule("Open: expected none from the accepting side, found " +
                      NameOf(id));
  }
  if (id != last_id_ + 1) {
    return BrokenRule("Open: expected " + NameOf(last_id_ + 1) + ", found " +
                      NameOf(id));
  }
  if (channels_.size() >= options_.max_channels) {
    return BrokenRule("Open: expected at most " +
                      std::to_string(options_.max_channels) +
                      " channels at once, found one more");
  }
  accepted_.push_back(AddLocked(id));
  changed_.notify_all();
  return Status::OK();
}

Status StreamChannels::TakeDataLocked(
    const std::shared_ptr<StreamChannel>& channel, uint32_t bytes) {
  if (bytes > channel->may_receive) {
    return BrokenRule("Data of " + NameOf(channel->id) + ": expected at most " +
                      std::to_string(channel->may_receive) +
                      " bytes, its credit, found " + std::to_string(bytes));
  }
  channel->may_receive -= bytes;
  receives_ = channel;
  return Status::OK();
}

Status StreamChannels::TakeCreditLocked(
    const std::shared_ptr<StreamChannel>& channel, uint32_t bytes) {
  if (channel->may_send + bytes > kMostCredit) {
    return BrokenRule("Credit of " + NameOf(channel->id) +
                      ": expected at most " + std::to_string(kMostCredit) +
                      " bytes in all, found more");
  }
  channel->may_send += bytes;
  EnqueueLocked(channel);
  return Status::OK();
}

Status StreamChannels::TakeFrame(const StreamFrame& frame) {
  const Lock lock(mu_);
  if (frame.kind == StreamFrameKind::kOpen) {
    return TakeOpenLocked(frame.channel);
  }
  const auto found = channels_.find(frame.channel);
  if (found == channels_.end() || found->second->closed_there) {
    return BrokenRule("expected a channel that is open, found " +
                      NameOf(frame.channel));
  }
  const std::shared_ptr<StreamChannel> channel = found->second;
  if (frame.kind == StreamFrameKind::kData) {
    return TakeDataLocked(channel, frame.value);
  }
  if (frame.kind == StreamFrameKind::kCredit) {
    return TakeCreditLocked(channel, frame.value);
  }
  channel->closed_there = true;
  channel->readable.notify_all();
  channel->writable.notify_all();
  ForgetIfClosedLocked(*channel);
  EnqueueLocked(channel);
  return Status::OK();
}

void StreamChannels::TakePayload(const Slice& data) {
  {
    const Lock lock(mu_);
    if (receives_->closed_here) {
      return;  // this side has closed the channel
    }
  }
  receives_->in.Put(data);  // fits: the peer had credit for these bytes
  const Lock lock(mu_);
  receives_->in_used += data.size();
  receives_->readable.notify_all();
}

void StreamChannels::End(const Status& status) {
  const Lock lock(mu_);
  if (!ended_) {
    ended_ = true;
    end_status_ = status;
  }
  for (const auto& [id, channel] : channels_) {
    channel->readable.notify_all();
    channel->writable.notify_all();
  }
  changed_.notify_all();
  work_.notify_all();
}

Status StreamParser::NotAStream(const Slice& found) const {
  const std::string shown(found.data(), std::min(found.size(), kMaxShownBytes));
  return MakeStatus(
      EndState::kRefused,
      "peer " + channels_->peer() +
          ": expected the stream of sstferry, found \"" + Printable(shown) +
          "\"; does a start-up file of the shell there print something?");
}

Status StreamParser::TakeHello(Slice* input) {
  StreamHello hello;
  if (!DecodeStreamHello(*input, &hello).ok()) {
    return NotAStream(*input);
  }
  input->remove_prefix(kStreamHelloBytes);
  greeted_ = true;
  channels_->TakeHello(hello);
  return Status::OK();
}

Status StreamParser::TakeHeader(Slice* input) {
  StreamFrame frame;
  Status status = DecodeStreamFrame(*input, &frame);
  if (status.ok()) {
    input->remove_prefix(kStreamFrameHeaderBytes);
    payload_left_ = frame.kind == StreamFrameKind::kData ? frame.value : 0;
    status = channels_->TakeFrame(frame);
  }
  return WithContext(status, EndState::kCorrupt, "peer " + channels_->peer());
}

Status StreamParser::Take(Slice* input) {
  if (!greeted_ && input->size() >= kStreamHelloBytes) {
    RETURN_IF_ERROR(TakeHello(input));
  }
  while (greeted_) {
    if (payload_left_ > 0 && !input->empty()) {
      const size_t take = std::min<size_t>(payload_left_, input->size());
      channels_->TakePayload(Slice(input->data(), take));
      input->remove_prefix(take);
      payload_left_ -= static_cast<uint32_t>(take);
    } else if (payload_left_ == 0 && input->size() >= kStreamFrameHeaderBytes) {
      RETURN_IF_ERROR(TakeHeader(input));
    } else {
      break;
    }
  }
  return Status::OK();
}

Status StreamParser::Close(const Slice& left) const {
  return !greeted_ && !left.empty() ? NotAStream(left)
                                    : PeerGone("peer " + channels_->peer() +
                                               ": closed the connection");
}

// --- for the writing thread -------------------------------------------------

uint32_t StreamChannels::SendableLocked(const StreamChannel& channel) const {
  const uint64_t bytes =
      channel.closed_there
          ? 0
          : std::min<uint64_t>(
                {channel.out_used, channel.may_send, kMaxStreamDataBytes});
  return static_cast<uint32_t>(bytes);
}

bool StreamChannels::CloseDueLocked(const StreamChannel& channel) {
  return channel.closed_here && !channel.close_sent &&
         (channel.out_used == 0 || channel.closed_there);
}

bool StreamChannels::HasWorkLocked(const StreamChannel& channel) const {
  return !channel.close_sent &&
         (channel.open_due || (channel.grant_due && !channel.closed_there) ||
          SendableLocked(channel) > 0 || CloseDueLocked(channel));
}

void StreamChannels::EnqueueLocked(
    const std::shared_ptr<StreamChannel>& channel) {
  if (!channel->has_turn && HasWorkLocked(*channel)) {
    channel->has_turn = true;
    turns_.push_back(channel);
    work_.notify_one();
  }
}

void StreamChannels::ForgetIfClosedLocked(const StreamChannel& channel) {
  if (channel.close_sent && channel.closed_there) {
    channels_.erase(channel.id);
  }
}

// Returns true if any channel still has bytes or its Close frame to send, even
// if it has no credit for the bytes.
bool StreamChannels::HasLeftLocked() const {
  return std::any_of(channels_.begin(), channels_.end(), [](const auto& each) {
    const StreamChannel& channel = *each.second;
    return !channel.closed_there && !channel.close_sent &&
           (channel.out_used > 0 || channel.closed_here);
  });
}

bool StreamChannels::NextTurn(Sending* turn) {
  Lock lock(mu_);
  work_.wait(lock, [this] {
    return ended_ || !turns_.empty() || drain_limit_passed_ ||
           (drains_ && !HasLeftLocked());
  });
  if (ended_ || turns_.empty()) {
    return false;
  }
  *turn = Sending();
  turn->channel = std::move(turns_.front());
  turns_.pop_front();
  StreamChannel& channel = *turn->channel;
  char* header = turn->headers.data();
  const auto add = [&](StreamFrameKind kind, uint32_t value) {
    EncodeStreamFrame({kind, channel.id, value}, header);
    turn->parts[turn->part_count++] = Slice(header, kStreamFrameHeaderBytes);
    header += kStreamFrameHeaderBytes;
  };
  if (channel.open_due) {
    channel.open_due = false;
    add(StreamFrameKind::kOpen, 0);
  }
  if (channel.grant_due && !channel.closed_here && !channel.closed_there) {
    add(StreamFrameKind::kCredit, channel.to_grant);
    channel.may_receive += channel.to_grant;
    channel.to_grant = 0;
  }
  channel.grant_due = false;
  turn->data_bytes = SendableLocked(channel);
  if (turn->data_bytes > 0) {
    add(StreamFrameKind::kData, turn->data_bytes);
    channel.may_send -= turn->data_bytes;
    for (const Slice& piece : channel.out.Peek(turn->data_bytes)) {
      turn->parts[turn->part_count++] = piece;
    }
  }
  if (channel.closed_here &&
      (channel.out_used == turn->data_bytes || channel.closed_there)) {
    add(StreamFrameKind::kClose, 0);
    channel.close_sent = true;
  }
  return true;
}

void StreamChannels::EndTurn(const Sending& turn) {
  const Lock lock(mu_);
  StreamChannel& channel = *turn.channel;
  channel.out.Drop(turn.data_bytes);
  channel.out_used -= turn.data_bytes;
  channel.has_turn = false;
  channel.writable.notify_all();
  ForgetIfClosedLocked(channel);
  EnqueueLocked(turn.channel);
}

void StreamChannels::Drain(std::chrono::milliseconds limit) {
  Lock lock(mu_);
  drains_ = true;
  work_.notify_all();
  changed_.wait_until(lock, Clock::now() + limit,
                      [this] { return writer_ended_; });
  drain_limit_passed_ = true;
  work_.notify_all();
}

void StreamChannels::WriterEnded(int error) {
  const Lock lock(mu_);
  writer_ended_ = true;
  write_error_ = error;
  changed_.notify_all();
}

int StreamChannels::write_error() const {
  const Lock lock(mu_);
  return write_error_;
}

void StreamChannels::AwaitEnd(std::chrono::milliseconds limit) {
  Lock lock(mu_);
  changed_.wait_until(lock, Clock::now() + limit, [this] { return ended_; });
}

}  // namespace sstferry
