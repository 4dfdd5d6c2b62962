// A peer that says what a script tells it to, frame by frame, right or wrong:
// what the fuzz targets of the state machines put behind a Channel.
//
// A script is a list of steps:
//   offset  size  field
//   0       1     frame type, any value
//   1       1     flags, StepFlag
//   2       2     n, payload bytes, little-endian; cut to what is left
//   4       n     payload
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "format/frame.h"
#include "format/messages.h"
#include "pipeline/wire/channel.h"
#include "sstferry/transport.h"
#include "tests/fuzz/gate.h"

namespace sstferry::fuzz {

enum StepFlag : uint8_t {
  kWrongSequence = 1,
  kWrongDigest = 2,
  kRaw = 4,    // the payload as it is, without a header
  kGate = 8,   // not before the side under test waits for it (gate.h)
  kMend = 16,  // ChunkEnd, PartEnd: with the digests of what was sent;
               // OpenRequest: as set_mend_open() says
  kDrip = 32,  // arrives a few bytes at a time
  kCut = 64,   // and then the connection is lost
  kZstd = 128,  // with the flag of a compressed frame
};

void AddStep(FrameType type, uint8_t flags, const std::string& payload,
             std::string* script);

// The chunk that a script's connections send, one after the other, as their
// digests have it.
struct ScriptChunk {
  ChunkDigest digest;
  uint64_t bytes = 0;
};

// Takes the steps of one connection off the front, up to the first that cuts.
rocksdb::Slice TakeConnection(rocksdb::Slice* script);

// Everything the other side writes must be frames in order that decode;
// anything else aborts the process. At the script's end the peer has closed;
// who only looks whether something has come does not see that, unless the last
// step cuts the connection.
//
// Threads: as Connection says.
class ScriptConnection final : public Connection {
 public:
  // Without a gate (null) kGate means nothing: for a side of one thread, which
  // writes nothing while it reads.
  // `on_end` (may be null) is called once, when the end was read or the
  // connection closed, from any thread. `chunk` (may be null: its own) is what
  // connections share, and kMend goes by.
  ScriptConnection(const rocksdb::Slice& script, Gate* gate,
                   std::function<void()> on_end = nullptr,
                   ScriptChunk* chunk = nullptr);

  // Puts into requests what a script cannot know. Before the first Read().
  void set_mend_open(std::function<void(OpenRequest*)> mend) {
    mend_open_ = std::move(mend);
  }

  rocksdb::Status Read(char* buffer, size_t capacity, const WaitLimit& limit,
                       size_t* bytes) override;
  rocksdb::Status Write(const rocksdb::Slice* parts, size_t part_count,
                        const WaitLimit& limit) override;
  void Close() override;
  const std::string& peer() const override;

 private:
  void PrepareStep();
  void Mend(FrameType type, std::string* payload) const;
  void Note(FrameType type, bool zstd, const std::string& payload,
            uint64_t digest);
  void Ended();

  Gate* const gate_;
  const std::function<void()> on_end_;
  std::function<void(OpenRequest*)> mend_open_;
  std::atomic<bool> ended_{false};
  bool cut_ = false;       // the reader's alone
  rocksdb::Slice script_;  // what is left; the reader's alone, and all below
  std::string ready_;
  size_t ready_at_ = 0;
  bool drip_ = false;
  uint64_t sequence_ = 0;
  ScriptChunk own_chunk_;
  ScriptChunk* const chunk_;
  PartDigest chain_;
  Totals totals_;

  std::mutex mu_;
  bool closed_ = false;          // under mu_
  uint64_t frames_written_ = 0;  // under mu_
};

// Dial() gives a connection with the first script and the gate, then one with
// the second, then nobody listens.
class ScriptDialer final : public Dialer {
 public:
  ScriptDialer(const rocksdb::Slice& first, Gate* gate,
               const rocksdb::Slice& second);
  rocksdb::Status Dial(const WaitLimit& limit,
                       std::unique_ptr<Connection>* connection) override;
  void Close() override {}
  const std::string& address() const override;

 private:
  rocksdb::Slice scripts_[2];
  Gate* const gate_;
  size_t next_ = 0;
};

// A server's handshake with the script behind `channel`; OK when it asks for a
// connection of that kind.
bool ShakesHands(Channel* channel, ConnectionKind kind, Hello* hello);

// Takes one byte off the front; 0 when there is none.
uint8_t TakeByte(rocksdb::Slice* input);
// Takes a 16-bit length and so many bytes, or what is left.
rocksdb::Slice TakeBytes(rocksdb::Slice* input);

}  // namespace sstferry::fuzz
