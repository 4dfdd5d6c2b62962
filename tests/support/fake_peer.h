// Peers that say what a test tells them to: a target for a real server, and a
// source for a real pull.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "format/messages.h"
#include "pipeline/wire/channel.h"
#include "sstferry/source.h"

namespace sstferry {

// A real server on a free loopback port, in this process.
class TestServer {
 public:
  explicit TestServer(ServeOptions options, const TlsFiles& tls = {});
  ~TestServer();  // stops it
  // Returns when every thread of the server has ended.
  void Stop();
  HostPort address() const;
  std::string url(const std::string& name) const;
  ServerState state() { return server_->state(); }
  // The report of the nth ended transfer (0 the first); waits for it.
  TransferReport Report(size_t n);
  // Waits until that text stands in the log; false when it never does.
  bool WaitForLog(const std::string& text);
  // How many lines hold that text now.
  size_t LinesWith(const std::string& text) const;
  // Whether it stands there now.
  bool LogHolds(const std::string& text) const;

 private:
  mutable std::mutex mu_;
  std::condition_variable changed_;
  std::vector<TransferReport> reports_;  // under mu_
  std::string log_;                      // under mu_
  std::unique_ptr<SourceServer> server_;
  std::thread thread_;
};

// Serves `directory` as "db" with short timeouts, and keeps no snapshot of a
// target that is gone: what is left behind is then a leak.
ServeOptions ServeSample(const std::string& directory);

// A database that is served there.
SourceAddress AddressAt(const HostPort& where,
                        const std::string& name = "db");

// Connects and shakes hands as a target would, with TLS where files are given.
rocksdb::Status DialControl(const HostPort& where,
                            std::unique_ptr<Channel>* channel,
                            const TlsFiles& tls = {});
rocksdb::Status DialLane(const HostPort& where, const TransferId& id,
                         uint32_t lane, std::unique_ptr<Channel>* channel,
                         const TlsFiles& tls = {});
// A control connection on which "db" is opened; *opened and *parts (may be
// null: how many parts the plan has) are its answer. `as` (may be null) is
// who this side says it is, without TLS.
rocksdb::Status OpenSample(const HostPort& where, Opened* opened,
                           std::unique_ptr<Channel>* channel,
                           uint32_t* parts = nullptr,
                           const Hello* as = nullptr,
                           const TlsFiles& tls = {});
// Takes parts 0 to count - 1 of one family over a lane; *totals is what a
// target that kept all of it would send. `chunks` (may be null) gets each
// chunk's file, in the order of the parts.
rocksdb::Status TakeParts(Channel* lane, uint32_t count, Finish* totals,
                           std::vector<std::string>* chunks = nullptr);
// The End frame a peer sends, skipping others; what Receive() says if none
// comes.
rocksdb::Status ReceiveEnd(Channel* channel);

// For threads of a test: Catch2's own assertions are for the main thread only.
void MustWork(const rocksdb::Status& status);

// Bytes as they are: what the peer answers until it closes.
std::string SendRaw(const HostPort& where, const std::string& bytes,
                    bool then_wait = true);

// Accepts connections and runs a script on each, control and lanes alike.
class FakeSource {
 public:
  using Script = std::function<void(Channel*)>;
  // Called for each connection before any handshake.
  explicit FakeSource(Script script);
  ~FakeSource();
  HostPort address() const;

 private:
  const Script script_;
  std::unique_ptr<Listener> listener_;
  std::mutex mu_;
  std::vector<std::unique_ptr<Channel>> channels_;  // under mu_
  std::vector<std::thread> threads_;                // under mu_
  std::thread acceptor_;
};

// A source that keeps to the protocol for one family of one part with one
// chunk, but for what a test changes.
struct SourceLies {
  std::function<void(Opened*)> opened;
  std::function<void(std::vector<Family>*)> families;
  std::function<void(std::vector<Part>*)> parts;
  std::function<void(PlanEnd*)> plan_end;
  std::function<void(std::string*)> chunk_file;
  // The payload of its only data frame, and the frame's flags.
  std::function<void(std::string*, uint16_t*)> chunk_payload;
  std::function<void(ChunkBegin*)> chunk_begin;
  std::function<void(ChunkEnd*)> chunk_end;
  std::function<void(PartEnd*)> part_end;
  std::function<void(Finish*)> finished;
  // Its files all hold the 6 bytes "bytes\n".
  std::function<void(const OtherFileRequest&, OtherFilePart*)> other_file;
  // In place of what is said after Opened (or of a whole lane), when set.
  FakeSource::Script after_opened;
  FakeSource::Script lane;
  // Called before a lane answers a request for a part, with the control
  // channel too.
  std::function<void(Channel* control, Channel* lane)> before_part;
  // What a lane does with requests other than for parts; unset: nothing.
  std::function<void(Channel*, const Frame&)> other_request;
  // From the first frame of that type on it only answers pings; HelloAck: of
  // control connections, or of lanes.
  std::optional<FrameType> withholds;
  bool withholds_of_lanes = false;
  bool repeat_chunk = false;
};
std::unique_ptr<FakeSource> LyingSource(const SourceLies& lies);

}  // namespace sstferry
