#include "pipeline/serve/lane_window.h"

#include <rapidcheck.h>

#include "pipeline/serve/frame_list.h"
#include "tests/support/catch.h"

namespace sstferry {
namespace {

using Found = LaneWindow::Found;

ChunkBegin BeginOf(uint32_t part_id, uint32_t ordinal) {
  ChunkBegin begin;
  begin.part_id = part_id;
  begin.ordinal = ordinal;
  return begin;
}

PartRequest RequestOf(uint32_t part_id, uint32_t chunks,
                       const std::string& last_key) {
  PartRequest request;
  request.part_id = part_id;
  request.received.chunks = chunks;
  if (chunks != 0) {
    request.after = last_key;
  }
  return request;
}

ChunkAck AckOf(uint32_t part_id, uint32_t ordinal, uint64_t bytes) {
  ChunkAck ack;
  ack.part_id = part_id;
  ack.ordinal = ordinal;
  ack.bytes = bytes;
  return ack;
}

std::string KeyOf(uint32_t ordinal) { return "key" + std::to_string(ordinal); }

// A window, and a link that takes whatever the window says is not sent.
struct Sender {
  LaneWindow window;
  // What has arrived, in order: one entry a frame.
  struct Arrived {
    uint32_t part_id = 0;
    uint32_t ordinal = 0;
    uint64_t begin = 0;
    std::string bytes;
  };
  std::vector<Arrived> arrived;

  void Send() {
    for (LaneWindow::Part& part : window.parts()) {
      while (part.sent_chunks < part.chunks.size()) {
        LaneWindow::Chunk& chunk = part.chunks[part.sent_chunks];
        while (chunk.frames.bytes() < chunk.bytes) {
          const uint64_t at = chunk.frames.bytes();
          const rocksdb::Slice piece = chunk.At(at);
          arrived.push_back({part.request.part_id, chunk.begin.ordinal, at,
                             piece.ToString()});
          chunk.frames.Add(/*digest=*/at, piece.size());
        }
        if (!chunk.end) {
          return;
        }
        part.sent_chunks++;
      }
      part.end_sent = part.ended;
    }
  }
  void Begin(uint32_t part_id, uint32_t ordinal) {
    window.BeginChunk(BeginOf(part_id, ordinal));
  }
  void Add(const std::string& piece) {
    window.Add(piece);
    Send();
  }
  void End(uint32_t ordinal) {
    ChunkEnd end;
    end.ordinal = ordinal;
    end.file_bytes = window.chunk().bytes;
    end.largest = KeyOf(ordinal);
    window.EndChunk(end, end.largest);
    Send();
  }
};

// Where a target stands: behind `frames` of all that arrived.
PartRequest StandingBehind(const Sender& sender, size_t frames) {
  const auto& last = sender.arrived[frames - 1];
  PartRequest request =
      RequestOf(last.part_id, last.ordinal, KeyOf(last.ordinal - 1));
  request.open_bytes = last.begin + last.bytes.size();
  for (size_t i = 0; i < frames; ++i) {
    request.open_frames += sender.arrived[i].part_id == last.part_id &&
                                   sender.arrived[i].ordinal == last.ordinal
                               ? 1
                               : 0;
  }
  return request;
}

TEST_CASE("LaneWindow sends again what follows any place that a target has "
          "not acknowledged",
          "[source][lane]") {
  REQUIRE(rc::check([] {
    Sender sender;
    // Two parts, the first with an end, the second in the making.
    const auto chunks = *rc::gen::inRange<uint32_t>(1, 4);
    std::vector<std::string> pieces;
    for (uint32_t part = 0; part < 2; ++part) {
      sender.window.BeginRange(RequestOf(part, 0, ""));
      for (uint32_t ordinal = 0; ordinal < chunks; ++ordinal) {
        sender.Begin(part, ordinal);
        const auto count = *rc::gen::inRange(1, 5);
        for (int i = 0; i < count; ++i) {
          pieces.push_back(
              std::string(*rc::gen::inRange<size_t>(1, 3000), 'a') +
              std::to_string(pieces.size()));
          sender.Add(pieces.back());
        }
        if (part == 0 || ordinal + 1 < chunks) {
          sender.End(ordinal);
        }
      }
      if (part == 0) {
        sender.window.EndPart();
        sender.Send();
      }
    }
    const auto first = sender.arrived;
    RC_ASSERT(first.size() == pieces.size());
    const auto acked = *rc::gen::inRange<size_t>(0, first.size());
    if (acked > 0) {
      const auto& frame = first[acked - 1];
      RC_ASSERT(sender.window
                    .Acknowledge(AckOf(frame.part_id, frame.ordinal,
                                       frame.begin + frame.bytes.size()))
                    .ok());
    }
    for (size_t at = std::max<size_t>(acked, 1); at <= first.size(); ++at) {
      sender.arrived.assign(first.begin(),
                            first.begin() + static_cast<ptrdiff_t>(at));
      RC_ASSERT(sender.window.Rewind(StandingBehind(sender, at), true) ==
                Found::kAll);
      sender.Send();
      RC_ASSERT(sender.arrived.size() == pieces.size());
      for (size_t i = 0; i < pieces.size(); ++i) {
        RC_ASSERT(sender.arrived[i].bytes == pieces[i]);
        RC_ASSERT(sender.arrived[i].begin == first[i].begin);
      }
    }
  }));
}

TEST_CASE("LaneWindow keeps a chunk that came in whole until the next is "
          "acknowledged",
          "[source][lane]") {
  Sender sender;
  LaneWindow& window = sender.window;
  window.BeginRange(RequestOf(0, 0, ""));
  for (uint32_t ordinal = 0; ordinal < 2; ++ordinal) {
    sender.Begin(0, ordinal);
    sender.Add("abc");
    sender.End(ordinal);
  }
  REQUIRE_OK(window.Acknowledge(AckOf(0, 0, 3)));
  REQUIRE(window.parts()[0].chunks.size() == 2);
  SECTION("its end can still be sent again") {
    PartRequest request;
    request.open_bytes = 3;
    request.open_frames = 1;
    REQUIRE(window.Rewind(request, true) == Found::kAll);
    REQUIRE(window.parts()[0].sent_chunks == 0);
  }
  SECTION("its bytes cannot") {
    REQUIRE(window.Rewind(PartRequest(), true) == Found::kNothing);
    REQUIRE(window.empty());
    REQUIRE(window.bytes() == 0);
  }
  SECTION("then it is forgotten") {
    REQUIRE_OK(window.Acknowledge(AckOf(0, 1, 0)));
    REQUIRE(window.parts()[0].chunks.size() == 1);
    REQUIRE_OK(window.Acknowledge(AckOf(0, 2, 0)));
    REQUIRE(window.bytes() == 0);
    REQUIRE_OK(window.Acknowledge(AckOf(0, 1, 2)));  // late
    REQUIRE(window.Rewind(RequestOf(0, 2, KeyOf(1)), true) == Found::kAll);
  }
}

TEST_CASE("LaneWindow refuses acknowledgements of what was not sent",
          "[source][lane]") {
  Sender sender;
  LaneWindow& window = sender.window;
  window.BeginRange(RequestOf(0, 0, ""));
  sender.Begin(0, 0);
  sender.Add("abc");
  for (const ChunkAck& ack : {AckOf(0, 0, 4), AckOf(0, 1, 0), AckOf(0, 5, 0)}) {
    REQUIRE(EndStateOf(window.Acknowledge(ack)) == EndState::kCorrupt);
  }
  REQUIRE_OK(window.Acknowledge(AckOf(7, 0, 1)));  // of a part long gone
  sender.End(0);
  window.BeginRange(RequestOf(1, 0, ""));
  sender.Begin(1, 0);
  REQUIRE(EndStateOf(window.Acknowledge(AckOf(1, 0, 0))) ==
          EndState::kCorrupt);
}

TEST_CASE("LaneWindow finds nothing for a target that stands elsewhere",
          "[source][lane]") {
  Sender sender;
  sender.window.BeginRange(RequestOf(3, 1, KeyOf(0)));
  sender.Begin(3, 1);
  sender.Add("abc");
  sender.Add("defg");
  PartRequest request = RequestOf(3, 1, KeyOf(0));
  SECTION("another part") { request.part_id = 4; }
  SECTION("another chunk") { request.received.chunks = 2; }
  SECTION("another key") { request.after = "x"; }
  SECTION("within a frame") {
    request.open_bytes = 2;
    request.open_frames = 1;
  }
  REQUIRE(sender.window.Rewind(request, true) == Found::kNothing);
  REQUIRE(sender.window.empty());
}

TEST_CASE("LaneWindow remembers the frames of a unit, which is read again",
          "[source][lane]") {
  LaneWindow window;
  window.BeginRange(RequestOf(0, 0, ""));
  ChunkBegin begin = BeginOf(0, 0);
  begin.kind = PartKind::kUnit;
  window.BeginChunk(begin);
  for (const uint64_t digest : {1, 2, 3}) {
    window.chunk().frames.Add(digest, 100);
  }
  REQUIRE(window.sends_unit());
  PartRequest request;
  request.open_bytes = 200;
  request.open_frames = 2;
  SECTION("of its middle, once its end has gone, too") {
    if (GENERATE(false, true)) {
      ChunkEnd end;
      end.file_bytes = 300;
      window.EndChunk(end, end.largest);
      REQUIRE_FALSE(window.sends_unit());
    }
    REQUIRE(window.Rewind(request, false) == Found::kToBeRead);
    REQUIRE(window.empty());
    REQUIRE(window.FirstByte(request) == 200);
    request.open_bytes = 100;
    REQUIRE(window.FirstByte(request) == 0);
    window.BeginRange(request);
    begin.first_byte = 200;
    window.BeginChunk(begin);
    REQUIRE(window.chunk().frames.EndsAt(2, 200));
    REQUIRE(window.chunk().FrameBytes(1u << 20) ==
            LaneWindow::kCarefulFrameBytes);
  }
  SECTION("but only its end is sent again where that is missing") {
    ChunkEnd end;
    end.file_bytes = 300;
    window.EndChunk(end, end.largest);
    request.open_bytes = 300;
    request.open_frames = 3;
    REQUIRE(window.Rewind(request, false) == Found::kAll);
    REQUIRE(window.parts()[0].sent_chunks == 0);
  }
}

TEST_CASE("LaneWindow forgets a later part that it cannot send again, to be "
          "asked for anew",
          "[source][lane]") {
  Sender sender;
  LaneWindow& window = sender.window;
  window.BeginRange(RequestOf(0, 0, ""));
  sender.Begin(0, 0);
  sender.Add("abc");
  sender.End(0);
  window.EndPart();
  sender.Send();
  window.BeginRange(RequestOf(1, 0, ""));
  ChunkBegin begin = BeginOf(1, 0);
  begin.kind = PartKind::kUnit;
  window.BeginChunk(begin);
  window.chunk().frames.Add(1, 100);
  REQUIRE(window.Rewind(PartRequest(), false) == Found::kAll);
  REQUIRE(window.parts().size() == 1);
  REQUIRE(window.parts()[0].sent_chunks == 0);
  REQUIRE_FALSE(window.parts()[0].end_sent);
}

TEST_CASE("LaneWindow sends again in small frames, and what is new in large "
          "ones",
          "[source][lane]") {
  Sender sender;
  LaneWindow& window = sender.window;
  const uint64_t small = LaneWindow::kCarefulFrameBytes;
  window.BeginRange(RequestOf(0, 0, ""));
  sender.Begin(0, 0);
  sender.Add(std::string(3 * small + 1, 'a'));
  REQUIRE(sender.arrived.size() == 1);
  sender.arrived.clear();
  REQUIRE(window.Rewind(PartRequest(), true) == Found::kAll);
  sender.Send();
  REQUIRE(sender.arrived.size() == 4);
  REQUIRE(sender.arrived[3].bytes.size() == 1);
  sender.Add(std::string(3 * small, 'b'));
  REQUIRE(sender.arrived.size() == 5);
  // From the midst of a piece, too.
  PartRequest request;
  request.open_bytes = 2 * small;
  request.open_frames = 2;
  REQUIRE_OK(window.Acknowledge(AckOf(0, 0, 2 * small)));
  REQUIRE(window.Rewind(request, true) == Found::kAll);
  REQUIRE(window.chunk().At(2 * small).size() == small);
  REQUIRE(window.chunk().At(3 * small).ToString() == "a");
}

TEST_CASE("LaneWindow has room for 8 MiB over all chunks and no more",
          "[source][lane]") {
  Sender sender;
  LaneWindow& window = sender.window;
  const std::string piece(1u << 20, 'x');
  window.BeginRange(RequestOf(0, 0, ""));
  for (uint32_t i = 0; i < 7; ++i) {
    sender.Begin(0, i);
    REQUIRE(window.HasRoom(piece.size()));
    sender.Add(piece);
    sender.End(i);
  }
  sender.Begin(0, 7);
  REQUIRE_FALSE(window.HasRoom(piece.size()));
  REQUIRE_OK(window.Acknowledge(AckOf(0, 1, 0)));
  REQUIRE(window.HasRoom(piece.size()));
  REQUIRE(window.bytes() < (6u << 20) + (100u << 10));
}

TEST_CASE("FrameList goes on from any frame and from nowhere else",
          "[source][lane]") {
  FrameList frames;
  for (uint64_t i = 1; i <= 4; ++i) {
    frames.Add(100 + i, 10 * i);
  }
  REQUIRE(frames.bytes() == 100);
  REQUIRE(frames.EndsAt(0, 0));
  REQUIRE(frames.EndsAt(2, 30));
  REQUIRE_FALSE(frames.EndsAt(2, 29));
  REQUIRE_FALSE(frames.EndsAt(5, 100));
  frames.Truncate(2);
  frames.Add(7, 1);
  ChunkDigest expected;
  for (const uint64_t digest : {101, 102, 7}) {
    expected.AddFrame(digest);
  }
  REQUIRE(frames.Digest() == expected.Finish());
}

}  // namespace
}  // namespace sstferry
