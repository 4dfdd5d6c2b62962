// Peers that send what a test wants: a target for a real server, and a source
// for a real pull.
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
  // Stops the server. Returns after all of its threads have ended.
  void Stop();
  HostPort address() const;
  std::string url(const std::string& name) const;
  ServerState state() { return server_->state(); }
  // Waits for the nth ended transfer (0: the first) and returns its report.
  TransferReport Report(size_t n);
  // Waits until the log contains `text`. Returns false if it never does.
  bool WaitForLog(const std::string& text);
  // Returns the number of lines of the log that contain `text` now.
  size_t LinesWith(const std::string& text) const;
  // Returns true if the log contains `text` now.
  bool LogHolds(const std::string& text) const;

 private:
  mutable std::mutex mu_;
  std::condition_variable changed_;
  std::vector<TransferReport> reports_;  // under mu_
  std::string log_;                      // under mu_
  std::unique_ptr<SourceServer> server_;
  std::thread thread_;
};

// Returns options that serve `directory` as "db" with short timeouts. Retains
// no snapshot after its target is gone, so anything left behind is a leak.
ServeOptions ServeSample(const std::string& directory);

// Returns the address of a database that a server at `where` serves.
SourceAddress AddressAt(const HostPort& where,
                        const std::string& name = "db");

// Connects and shakes hands as a target does, with TLS if `tls` has files.
rocksdb::Status DialControl(const HostPort& where,
                            std::unique_ptr<Channel>* channel,
                            const TlsFiles& tls = {});
rocksdb::Status DialLane(const HostPort& where, const TransferId& id,
                         uint32_t lane, std::unique_ptr<Channel>* channel,
                         const TlsFiles& tls = {});
// Opens "db" on a new control connection. *opened: the source's answer; *parts
// (may be null): the plan's number of parts. `as` (may be null): the Hello that
// this side sends instead of its own.
rocksdb::Status OpenSample(const HostPort& where, Opened* opened,
                           std::unique_ptr<Channel>* channel,
                           uint32_t* parts = nullptr,
                           const Hello* as = nullptr,
                           const TlsFiles& tls = {});
// Receives parts 0 to count - 1 of one family over a lane. *totals: the totals
// that a real target would then send. *chunks (may be null): each chunk's file,
// in the order of the parts.
rocksdb::Status TakeParts(Channel* lane, uint32_t count, Finish* totals,
                           std::vector<std::string>* chunks = nullptr);
// Skips frames until the peer's End frame and returns its status. If none
// arrives, returns the error of Receive().
rocksdb::Status ReceiveEnd(Channel* channel);

// Aborts unless the status is OK. For threads in which Catch2 cannot assert.
void MustWork(const rocksdb::Status& status);

// Sends raw bytes. Returns everything that the peer answers until it closes.
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

// Changes to a source that otherwise follows the protocol: it has one family
// with one part of one chunk.
struct SourceLies {
  std::function<void(Opened*)> opened;
  std::function<void(std::vector<Family>*)> families;
  std::function<void(std::vector<Part>*)> parts;
  std::function<void(PlanEnd*)> plan_end;
  std::function<void(std::string*)> chunk_file;
  // Changes the payload of the source's only data frame, and its flags.
  std::function<void(std::string*, uint16_t*)> chunk_payload;
  std::function<void(ChunkBegin*)> chunk_begin;
  std::function<void(ChunkEnd*)> chunk_end;
  std::function<void(PartEnd*)> part_end;
  std::function<void(Finish*)> finished;
  // Changes an answer about other files, which all contain "bytes\n".
  std::function<void(const OtherFileRequest&, OtherFilePart*)> other_file;
  // If set, runs after Opened, instead of the rest of the control connection.
  FakeSource::Script after_opened;
  // If set, runs instead of each lane.
  FakeSource::Script lane;
  // Called before a lane answers a request for a part.
  std::function<void(Channel* control, Channel* lane)> before_part;
  // Answers a lane's requests that are not for parts; null: no answer.
  std::function<void(Channel*, const Frame&)> other_request;
  // If set, the source does not send the first frame of this type, and from
  // then on only answers pings. It withholds HelloAck on control connections,
  // or, with withholds_of_lanes, on lanes.
  std::optional<FrameType> withholds;
  bool withholds_of_lanes = false;
  bool repeat_chunk = false;
};
std::unique_ptr<FakeSource> LyingSource(const SourceLies& lies);

}  // namespace sstferry
