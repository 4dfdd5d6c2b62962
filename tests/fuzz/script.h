// A peer that sends the frames of a script, valid or not. The fuzz targets of
// the state machines connect it to a Channel.
//
// A script is a list of steps:
//   offset  size  field
//   0       1     frame type, any value
//   1       1     flags, StepFlag
//   2       2     n, payload bytes, little-endian; at most the rest
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
  kRaw = 4,    // sends the payload as it is, without a header
  kGate = 8,   // waits until the side under test waits for it (gate.h)
  kMend = 16,  // ChunkEnd, PartEnd: gets the digests of the sent bytes;
               // OpenRequest: is changed by set_mend_open()
  kDrip = 32,  // arrives a few bytes at a time
  kCut = 64,   // the connection is lost after this step
  kZstd = 128,  // has the flag of a compressed frame
};

void AddStep(FrameType type, uint8_t flags, const std::string& payload,
             std::string* script);

// The digest and size of the chunk that the connections of a script have sent
// so far, one after the other.
struct ScriptChunk {
  ChunkDigest digest;
  uint64_t bytes = 0;
};

// Removes the steps of the first connection, up to the first cut, and returns
// them.
rocksdb::Slice TakeConnection(rocksdb::Slice* script);

// A connection to the peer of a script. Aborts the process if the other side
// writes anything but valid frames in order. At the end of the script the peer
// has closed. A reader that only checks for available bytes does not see that,
// unless the last step cuts the connection.
//
// Threads: like Connection.
class ScriptConnection final : public Connection {
 public:
  // Without a gate (null), kGate has no effect; for a side with one thread,
  // which writes nothing while it reads.
  // `on_end` (may be null): called once from any thread, when the end was read
  // or the connection was closed. `chunk` (may be null: its own): shared by the
  // connections; kMend uses its digests.
  ScriptConnection(const rocksdb::Slice& script, Gate* gate,
                   std::function<void()> on_end = nullptr,
                   ScriptChunk* chunk = nullptr);

  // Sets a function that puts values into an OpenRequest that a script cannot
  // know. Call it before the first Read().
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
  bool cut_ = false;       // only for the reader
  rocksdb::Slice script_;  // the rest; this and all below only for the reader
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

// Dial() returns a connection with the first script and the gate, then one with
// the second, then errors.
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

// Does a server's handshake with the script behind `channel`. Returns true if
// the script requests a connection of that kind.
bool ShakesHands(Channel* channel, ConnectionKind kind, Hello* hello);

// Removes the first byte and returns it; 0 if no byte is left.
uint8_t TakeByte(rocksdb::Slice* input);
// Removes a 16-bit length and that many bytes, or all that are left. Returns
// the bytes.
rocksdb::Slice TakeBytes(rocksdb::Slice* input);

}  // namespace sstferry::fuzz
