// Several connections over one stream: credit, turns, hostile frames, and the
// stream's end.
#include "pipeline/wire/multiplexer.h"

#include <atomic>
#include <thread>
#include <vector>

#include "format/coding.h"
#include "format/end_state.h"
#include "format/stream_frame.h"
#include "pipeline/wire/stream_channels.h"
#include "tests/pipeline/wire/transports.h"

namespace sstferry::multiplexer_test {
namespace {

using rocksdb::Slice;
using rocksdb::Status;
using std::chrono::milliseconds;

WaitLimit Idle(int millis) {
  WaitLimit limit;
  limit.idle = milliseconds(millis);
  return limit;
}

Status WriteText(Connection* connection, const std::string& data,
                 const WaitLimit& limit = Soon()) {
  const Slice part(data);
  return connection->Write(&part, 1, limit);
}

StreamPair MakePair(const MultiplexerOptions& dials,
                    const MultiplexerOptions& accepts) {
  StreamFds fds = MakeStreamFds();
  StreamPair pair;
  REQUIRE_OK(Multiplexer::Start(std::move(fds.dials), Descriptor(), dials,
                                &pair.dials));
  REQUIRE_OK(Multiplexer::Start(std::move(fds.accepts), Descriptor(), accepts,
                                &pair.accepts));
  return pair;
}
StreamPair MakePair() {
  return MakePair(StreamOptions(true), StreamOptions(false));
}

Ends OpenChannel(StreamPair* pair) {
  Ends ends;
  REQUIRE_OK(pair->dials->Open(&ends.client));
  REQUIRE_OK(pair->accepts->Accept(&ends.server));
  return ends;
}

// Writes until nothing more is accepted. Returns the number of bytes.
size_t FillChannel(Connection* connection) {
  const std::string piece(1000, 'x');
  size_t taken = 0;
  while (WriteText(connection, piece, Idle(200)).ok()) {
    taken += piece.size();
  }
  return taken;
}

TEST_CASE("A channel without a reader does not block another channel",
          "[wire][stream]") {
  StreamPair pair = MakePair();
  Ends stuck = OpenChannel(&pair);
  Ends moves = OpenChannel(&pair);
  Connection* const stuck_writer =
      GENERATE(true, false) ? stuck.client.get() : stuck.server.get();
  const size_t taken = FillChannel(stuck_writer);

  // More than fits into all buffers between the ends, in both directions.
  const std::string there = Pattern(8 << 20, 1);
  const std::string back = Pattern(8 << 20, 2);
  auto client_writes =
      InBackground([&] { return WriteText(moves.client.get(), there); });
  auto server_writes =
      InBackground([&] { return WriteText(moves.server.get(), back); });
  auto client_reads =
      InBackground([&] { return ReadAll(moves.client.get(), back.size()); });
  REQUIRE((ReadAll(moves.server.get(), there.size()) == there));
  REQUIRE((client_reads.get() == back));
  REQUIRE_OK(client_writes.get());
  REQUIRE_OK(server_writes.get());

  // A channel without a reader takes a limited amount of memory.
  REQUIRE(taken > MultiplexerOptions().credit_bytes);
  REQUIRE(taken <= MultiplexerOptions().credit_bytes + kStreamSendBytes);
}

TEST_CASE("A channel that is read again moves all of its bytes",
          "[wire][stream]") {
  StreamPair pair = MakePair();
  Ends ends = OpenChannel(&pair);
  const size_t taken = FillChannel(ends.client.get());
  REQUIRE(ReadAll(ends.server.get(), taken) == std::string(taken, 'x'));
  REQUIRE_OK(WriteText(ends.client.get(), "more"));
  // A part of the last piece may have been sent before its write timed out.
  std::string rest = ReadAll(ends.server.get(), 4);
  while (rest.find("more") == std::string::npos && rest.size() < 2000) {
    rest += ReadAll(ends.server.get(), 1);
  }
  REQUIRE(rest.substr(rest.size() - 4) == "more");
}

TEST_CASE("Channels can be opened and closed without running out of numbers",
          "[wire][stream]") {
  MultiplexerOptions dials = StreamOptions(true);
  MultiplexerOptions accepts = StreamOptions(false);
  // The open channel, and two earlier ones whose ends may be in transit.
  dials.max_channels = 3;
  accepts.max_channels = 4;
  StreamPair pair = MakePair(dials, accepts);
  for (int i = 0; i < 500; ++i) {
    Ends ends = OpenChannel(&pair);
    REQUIRE_OK(WriteText(ends.client.get(), "ping"));
    REQUIRE(ReadAll(ends.server.get(), 4) == "ping");
    REQUIRE_OK(WriteText(ends.server.get(), "pong"));
    REQUIRE(ReadAll(ends.client.get(), 4) == "pong");
    ends.server.reset();
    // After the client has read the end, the number is free.
    char byte = 0;
    size_t got = 1;
    REQUIRE_OK(ends.client->Read(&byte, 1, Soon(), &got));
    REQUIRE(got == 0);
  }
  StreamPair full = MakePair(dials, accepts);
  Ends first = OpenChannel(&full);
  Ends second = OpenChannel(&full);
  Ends third = OpenChannel(&full);
  std::unique_ptr<Connection> fourth;
  const Status status = full.dials->Open(&fourth);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kDeadPeer);
}

TEST_CASE("Many channels carry bytes both ways while others close",
          "[wire][stream]") {
  StreamPair pair = MakePair();
  constexpr int kChannels = 6;
  std::vector<std::future<bool>> clients;
  std::vector<std::future<bool>> servers;
  for (int i = 0; i < kChannels; ++i) {
    clients.push_back(InBackground([&pair, i] {
      for (uint32_t round = 0; round < 8; ++round) {
        std::unique_ptr<Connection> channel;
        if (!pair.dials->Open(&channel).ok()) return false;
        const std::string text = Pattern(300'000 + round * 7919, round);
        auto writer =
            InBackground([&] { return WriteText(channel.get(), text).ok(); });
        const bool echoed = ReadAll(channel.get(), text.size()) == text;
        if (!writer.get() || !echoed) return false;
      }
      return true;
    }));
    servers.push_back(InBackground([&pair] {
      for (int round = 0; round < 8; ++round) {
        std::unique_ptr<Connection> channel;
        if (!pair.accepts->Accept(&channel).ok()) return false;
        std::vector<char> buffer(50'000);
        while (true) {
          size_t got = 0;
          if (!channel->Read(buffer.data(), buffer.size(), Soon(), &got).ok()) {
            return false;
          }
          if (got == 0) break;
          if (!WriteText(channel.get(), std::string(buffer.data(), got)).ok()) {
            return false;
          }
        }
      }
      return true;
    }));
  }
  for (auto& client : clients) {
    REQUIRE(client.get());
  }
  for (auto& server : servers) {
    REQUIRE(server.get());
  }
}

TEST_CASE("Finish sends the bytes that were written and closed before",
          "[wire][stream]") {
  StreamPair pair = MakePair();
  Ends ends = OpenChannel(&pair);
  const std::string last_words = Pattern(200'000, 9);
  REQUIRE_OK(WriteText(ends.client.get(), last_words));
  ends.client.reset();
  pair.dials->Finish(milliseconds(60'000), milliseconds(0));
  REQUIRE((ReadAll(ends.server.get(), last_words.size()) == last_words));
  char byte = 0;
  size_t got = 1;
  REQUIRE_OK(ends.server->Read(&byte, 1, Soon(), &got));
  REQUIRE(got == 0);
  std::unique_ptr<Connection> none;
  REQUIRE(EndStateOf(pair.accepts->Accept(&none)) == EndState::kDeadPeer);
}

TEST_CASE("The end of a stream reaches each channel after its bytes",
          "[wire][stream]") {
  MultiplexerOptions dials = StreamOptions(true);
  std::atomic<int> explained{0};
  dials.explain_end = [&](const Status& status, bool greeted) {
    explained += greeted && EndStateOf(status) == EndState::kDeadPeer ? 1 : 10;
    return MakeStatus(EndState::kDeadPeer, "ssh ended with exit code 255");
  };
  StreamPair pair = MakePair(dials, StreamOptions(false));
  Ends one = OpenChannel(&pair);
  Ends other = OpenChannel(&pair);
  REQUIRE_OK(WriteText(one.server.get(), "before"));
  // When this byte has arrived, "before" is in the stream, too.
  REQUIRE_OK(WriteText(other.server.get(), "x"));
  REQUIRE(ReadAll(other.client.get(), 1) == "x");
  auto waits = InBackground([&] {
    char byte = 0;
    size_t got = 0;
    return other.client->Read(&byte, 1, WaitLimit::Forever(), &got);
  });
  pair.accepts.reset();
  REQUIRE(ReadAll(one.client.get(), 6) == "before");
  char byte = 0;
  size_t got = 0;
  for (const Status& status :
       {waits.get(), one.client->Read(&byte, 1, Soon(), &got),
        WriteText(one.client.get(), "y")}) {
    INFO(status.ToString());
    REQUIRE(EndStateOf(status) == EndState::kDeadPeer);
    REQUIRE(MessageOf(status) == "ssh ended with exit code 255");
  }
  REQUIRE(pair.dials->ended());
  REQUIRE(explained == 1);
}

TEST_CASE("A stream ends if it is silent for its limit", "[wire][stream]") {
  MultiplexerOptions accepts = StreamOptions(false);
  accepts.silence_limit = milliseconds(3000);
  StreamPair pair = MakePair(StreamOptions(true), accepts);
  const auto begun = Clock::now();
  Ends ends = OpenChannel(&pair);
  // Bytes that this side sends do not prove that the other side runs.
  auto writer = InBackground([&] { return FillChannel(ends.server.get()); });
  std::unique_ptr<Connection> none;
  const Status status = pair.accepts->Accept(&none);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kDeadPeer);
  REQUIRE(MessageOf(status).find("no byte for 3 s") != std::string::npos);
  REQUIRE(Clock::now() - begun >= milliseconds(3000));
  writer.get();
}

TEST_CASE("Waiting for a hello ends with its limit, StopWaiting or the stream",
          "[wire][stream]") {
  StreamFds fds = MakeStreamFds();
  std::unique_ptr<Multiplexer> dials;
  REQUIRE_OK(Multiplexer::Start(std::move(fds.dials), Descriptor(),
                                StreamOptions(true), &dials));
  REQUIRE(dials->AwaitHello(Idle(50)).IsTimedOut());
  SECTION("StopWaiting") {
    auto waits =
        InBackground([&] { return dials->AwaitHello(WaitLimit::Forever()); });
    dials->StopWaiting();
    REQUIRE(waits.get().IsAborted());
  }
  SECTION("the stream's end") {
    auto waits =
        InBackground([&] { return dials->AwaitHello(WaitLimit::Forever()); });
    fds.accepts = Descriptor();
    REQUIRE(EndStateOf(waits.get()) == EndState::kDeadPeer);
  }
}

// --- Turns, without threads -------------------------------------------------

std::vector<std::shared_ptr<StreamChannel>> OpenSome(StreamChannels* channels,
                                                     size_t count) {
  channels->TakeHello({kMaxStreamCreditBytes});
  std::vector<std::shared_ptr<StreamChannel>> all(count);
  for (auto& channel : all) {
    REQUIRE_OK(channels->Open(&channel));
  }
  return all;
}

Status PutInto(StreamChannels* channels,
               const std::shared_ptr<StreamChannel>& channel,
               const std::string& text) {
  const Slice part(text);
  return channels->Write(channel, &part, 1, Idle(0));
}

TEST_CASE("Channels that have much to send take turns", "[wire][stream]") {
  StreamChannels channels(StreamOptions(true));
  const auto all = OpenSome(&channels, 4);
  for (size_t i = 0; i < 3; ++i) {
    REQUIRE_OK(PutInto(&channels, all[i], std::string(kStreamSendBytes, 'x')));
  }
  channels.Drain(milliseconds(0));
  std::vector<uint32_t> turns;
  StreamChannels::Sending turn;
  while (channels.NextTurn(&turn)) {
    if (turn.data_bytes > 0) {
      turns.push_back(turn.channel->id);
    }
    REQUIRE(turn.data_bytes <= kMaxStreamDataBytes);
    // A small message that is written now waits for one turn of each other
    // channel.
    if (turns.size() == 4) {
      REQUIRE_OK(PutInto(&channels, all[3], "ping"));
    }
    channels.EndTurn(turn);
  }
  REQUIRE(turns ==
          std::vector<uint32_t>{1, 2, 3, 1, 2, 3, 4, 1, 2, 3, 1, 2, 3});
}

TEST_CASE("A channel sends no more than its credit", "[wire][stream]") {
  StreamChannels channels(StreamOptions(true));
  channels.TakeHello({kMinStreamCreditBytes});
  std::shared_ptr<StreamChannel> channel;
  REQUIRE_OK(channels.Open(&channel));
  REQUIRE_OK(PutInto(&channels, channel, std::string(kStreamSendBytes, 'x')));
  channels.Drain(milliseconds(0));
  const auto send_all = [&channels] {
    size_t sent = 0;
    StreamChannels::Sending turn;
    while (channels.NextTurn(&turn)) {
      sent += turn.data_bytes;
      channels.EndTurn(turn);
    }
    return sent;
  };
  REQUIRE(send_all() == kMinStreamCreditBytes);
  REQUIRE_OK(channels.TakeFrame({StreamFrameKind::kCredit, 1, 1000}));
  REQUIRE(send_all() == 1000);
  REQUIRE(send_all() == 0);
}

// --- Hostile peers ----------------------------------------------------------

std::string HelloBytes(uint32_t credit = 1u << 20) {
  std::string bytes(kStreamHelloBytes, '\0');
  EncodeStreamHello({credit}, bytes.data());
  return bytes;
}
std::string FrameBytes(StreamFrameKind kind, uint32_t channel,
                       uint32_t value = 0) {
  std::string bytes(kStreamFrameHeaderBytes, '\0');
  EncodeStreamFrame({kind, channel, value}, bytes.data());
  return bytes;
}

struct Hostile {
  const char* name;
  bool dials;         // the side that is attacked
  std::string bytes;  // the bytes that it receives
  const char* says;
};

std::vector<Hostile> HostileStreams() {
  using Kind = StreamFrameKind;
  const std::string hello = HelloBytes();
  const std::string open = hello + FrameBytes(Kind::kOpen, 1);
  std::string many = hello;
  for (uint32_t i = 1; i <= 5; ++i) {
    many += FrameBytes(Kind::kOpen, i);
  }
  std::string credits = hello;
  for (int i = 0; i < 257; ++i) {
    credits += FrameBytes(Kind::kCredit, 1, kMaxStreamCreditBytes);
  }
  std::string beyond = open;
  for (int i = 0; i < 2; ++i) {
    beyond +=
        FrameBytes(Kind::kData, 1, 64u << 10) + std::string(64u << 10, 'x');
  }
  return {
      {"data of a channel that is not open", false,
       hello + FrameBytes(Kind::kData, 1, 1) + "x", "found channel 1"},
      {"credit of a channel that is not open", false,
       hello + FrameBytes(Kind::kCredit, 9, 1), "found channel 9"},
      {"the same channel twice", false, open + FrameBytes(Kind::kOpen, 1),
       "expected channel 2, found channel 1"},
      {"a channel out of order", false, hello + FrameBytes(Kind::kOpen, 7),
       "expected channel 1, found channel 7"},
      {"a channel of the side that accepts", true,
       hello + FrameBytes(Kind::kOpen, 2), "expected none"},
      {"more channels than allowed", false, many, "found one more"},
      {"data beyond the credit", false, beyond, "its credit"},
      {"data behind the end", false,
       open + FrameBytes(Kind::kClose, 1) + FrameBytes(Kind::kData, 1, 1) + "x",
       "found channel 1"},
      {"two ends", false,
       open + FrameBytes(Kind::kClose, 1) + FrameBytes(Kind::kClose, 1),
       "found channel 1"},
      {"credit without an end", true, credits, "bytes in all"},
      {"an unknown kind", false, hello + FrameBytes(static_cast<Kind>(9), 1),
       "kind"},
      {"a huge frame", false, open + FrameBytes(Kind::kData, 1, 0xffffffff),
       "value"},
  };
}

void WriteRaw(int fd, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t sent =
        send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) {
      return;  // the other side has closed the stream
    }
    at += static_cast<size_t>(sent);
  }
}

TEST_CASE("A stream that breaks a rule ends, and the error names the rule",
          "[wire][stream][hostile]") {
  for (const Hostile& hostile : HostileStreams()) {
    INFO(hostile.name);
    StreamFds fds = MakeStreamFds();
    MultiplexerOptions options = StreamOptions(hostile.dials);
    options.credit_bytes = 100'000;
    options.max_channels = 4;
    std::unique_ptr<Multiplexer> attacked;
    REQUIRE_OK(Multiplexer::Start(std::move(fds.dials), Descriptor(), options,
                                  &attacked));
    std::unique_ptr<Connection> channel;
    if (hostile.dials) {
      REQUIRE_OK(attacked->Open(&channel));
    }
    WriteRaw(fds.accepts.get(), hostile.bytes);
    shutdown(fds.accepts.get(), SHUT_WR);
    Status status;
    if (hostile.dials) {
      char byte = 0;
      size_t got = 0;
      status = channel->Read(&byte, 1, Soon(), &got);
    }
    std::vector<std::unique_ptr<Connection>> accepted;
    while (status.ok()) {
      accepted.emplace_back();
      status = attacked->Accept(&accepted.back());
    }
    INFO(status.ToString());
    REQUIRE(EndStateOf(status) == EndState::kCorrupt);
    REQUIRE(MessageOf(status).find(hostile.says) != std::string::npos);
    REQUIRE(accepted.size() <= 5);
  }
}

TEST_CASE("Bytes that are not a stream are shown, and refused",
          "[wire][stream][hostile]") {
  StreamFds fds = MakeStreamFds();
  std::unique_ptr<Multiplexer> dials;
  REQUIRE_OK(Multiplexer::Start(std::move(fds.dials), Descriptor(),
                                StreamOptions(true), &dials));
  SECTION("many bytes") {
    WriteRaw(fds.accepts.get(), "Welcome to\x1b[31m db1, have a nice day\n");
  }
  SECTION("few bytes and the end") {
    WriteRaw(fds.accepts.get(), "Welcome");
    fds.accepts = Descriptor();
  }
  const Status status = dials->AwaitHello(Soon());
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kRefused);
  REQUIRE(MessageOf(status).find("found \"Welcome") != std::string::npos);
  REQUIRE(MessageOf(status).find('\x1b') == std::string::npos);
}

TEST_CASE("A listener whose stream has ended waits for its connections",
          "[wire][stream]") {
  Transport transport = StreamOne();
  Ends ends = transport.Connect();
  REQUIRE_OK(WriteText(ends.client.get(), "last words"));
  ends.client.reset();
  transport.dialer.reset();
  auto accepts = InBackground([&] {
    std::unique_ptr<Connection> none;
    return transport.listener->Accept(&none);
  });
  REQUIRE(accepts.wait_for(milliseconds(200)) == std::future_status::timeout);
  REQUIRE(ReadAll(ends.server.get(), 10) == "last words");
  ends.server.reset();
  REQUIRE(accepts.get().IsAborted());
}

TEST_CASE("A stream may arrive byte by byte", "[wire][stream]") {
  StreamFds fds = MakeStreamFds();
  std::unique_ptr<Multiplexer> accepts;
  REQUIRE_OK(Multiplexer::Start(std::move(fds.dials), Descriptor(),
                                StreamOptions(false), &accepts));
  const std::string stream = HelloBytes() +
                             FrameBytes(StreamFrameKind::kOpen, 1) +
                             FrameBytes(StreamFrameKind::kData, 1, 5) +
                             "bytes" + FrameBytes(StreamFrameKind::kClose, 1);
  for (const char byte : stream) {
    WriteRaw(fds.accepts.get(), std::string(1, byte));
  }
  std::unique_ptr<Connection> channel;
  REQUIRE_OK(accepts->Accept(&channel));
  REQUIRE(ReadAll(channel.get(), 100) == "bytes");
}

}  // namespace
}  // namespace sstferry::multiplexer_test
