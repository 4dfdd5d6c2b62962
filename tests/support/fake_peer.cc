#include "tests/support/fake_peer.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include "format/digest.h"
#include "pipeline/pull/source_session.h"
#include "rocksdb/env.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/table.h"
#include "tests/support/catch.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;
using std::chrono::milliseconds;

const WaitLimit Soon() { return WaitLimit::Within(milliseconds(60'000)); }

HostPort Parse(const std::string& address) {
  HostPort where;
  // Throws on failure. REQUIRE is not possible: other threads than the test's
  // call this.
  const Status status = ParseHostPort(address, &where);
  if (!status.ok()) {
    throw std::runtime_error(status.ToString());
  }
  return where;
}

Status Dial(const HostPort& where, const Hello& hello, const TlsFiles& tls,
            std::unique_ptr<Channel>* channel) {
  std::unique_ptr<Connection> connection;
  std::unique_ptr<Dialer> dialer =
      where.is_unix() ? MakeUnixDialer(where.host) : MakeTcpDialer(where);
  Status status = tls.empty() ? Status::OK()
                              : MakeTlsDialer(where, tls, &dialer);
  if (status.ok()) {
    status = dialer->Dial(Soon(), &connection);
  }
  if (status.ok()) {
    *channel = std::make_unique<Channel>(std::move(connection));
    HelloAck ack;
    status = ClientHandshake(channel->get(), hello, Soon(), &ack);
  }
  return status;
}

}  // namespace

TestServer::TestServer(ServeOptions options, const TlsFiles& tls) {
  options.on_transfer_end = [this](const TransferReport& report) {
    std::lock_guard<std::mutex> lock(mu_);
    reports_.push_back(report);
    changed_.notify_all();
  };
  options.log = [this](LogLevel, const std::string& line) {
    std::lock_guard<std::mutex> lock(mu_);
    log_ += line + "\n";
    changed_.notify_all();
  };
  std::unique_ptr<Listener> listener;
  const HostPort where{"127.0.0.1", 0};
  REQUIRE_OK(tls.empty() ? ListenTcp(where, &listener)
                         : ListenTls(where, tls, &listener));
  REQUIRE_OK(MakeSourceServer(options, std::move(listener), &server_));
  thread_ = std::thread([this] { server_->Run().PermitUncheckedError(); });
}

TestServer::~TestServer() { Stop(); }

void TestServer::Stop() {
  server_->Stop();
  if (thread_.joinable()) {
    thread_.join();
  }
}

HostPort TestServer::address() const { return Parse(server_->address()); }

std::string TestServer::url(const std::string& name) const {
  return "sst://" + server_->address() + "/" + name;
}

TransferReport TestServer::Report(size_t n) {
  std::unique_lock<std::mutex> lock(mu_);
  REQUIRE(changed_.wait_for(lock, std::chrono::seconds(60),
                            [&] { return reports_.size() > n; }));
  return reports_[n];
}

bool TestServer::WaitForLog(const std::string& text) {
  std::unique_lock<std::mutex> lock(mu_);
  return changed_.wait_for(lock, std::chrono::seconds(60), [&] {
    return log_.find(text) != std::string::npos;
  });
}

size_t TestServer::LinesWith(const std::string& text) const {
  std::lock_guard<std::mutex> lock(mu_);
  size_t lines = 0;
  std::istringstream in(log_);
  for (std::string line; std::getline(in, line);) {
    lines += line.find(text) != std::string::npos ? 1 : 0;
  }
  return lines;
}

bool TestServer::LogHolds(const std::string& text) const {
  std::lock_guard<std::mutex> lock(mu_);
  return log_.find(text) != std::string::npos;
}

ServeOptions ServeSample(const std::string& directory) {
  ServeOptions options;
  ServedDatabase database;
  database.name = "db";
  database.directory = directory;
  options.databases.push_back(database);
  // The peers of tests answer no pings, and may be slow on a busy machine.
  // Tests of silent peers set a shorter time.
  options.handshake_timeout = milliseconds(60'000);
  options.timeouts.peer = milliseconds(60'000);
  options.snapshot_ttl = std::chrono::seconds(0);
  return options;
}

SourceAddress AddressAt(const HostPort& where, const std::string& name) {
  SourceAddress address;
  address.host = where.host;
  address.port = where.port;
  address.name = name;
  return address;
}

Status DialControl(const HostPort& where, std::unique_ptr<Channel>* channel,
                   const TlsFiles& tls) {
  return Dial(where, MakeHello(), tls, channel);
}

Status DialLane(const HostPort& where, const TransferId& id, uint32_t lane,
                std::unique_ptr<Channel>* channel, const TlsFiles& tls) {
  Hello hello = MakeHello();
  hello.kind = ConnectionKind::kLane;
  hello.transfer_id = id;
  hello.lane = lane;
  return Dial(where, hello, tls, channel);
}

Status OpenSample(const HostPort& where, Opened* opened,
                  std::unique_ptr<Channel>* channel, uint32_t* parts,
                  const Hello* as, const TlsFiles& tls) {
  Status status = as != nullptr ? Dial(where, *as, tls, channel)
                                : DialControl(where, channel, tls);
  OpenRequest request;
  request.database = "db";
  request.lanes = 2;
  request.chunk_bytes = 256u << 10;
  if (status.ok()) {
    status = (*channel)->SendMessage(FrameType::kOpenRequest, request);
  }
  Frame frame;
  bool planned = false;
  while (status.ok() && !planned) {
    status = (*channel)->Receive(Soon(), &frame);
    if (status.ok() && frame.type == FrameType::kOpened) {
      status = Decode(frame.payload, opened);
    } else if (status.ok() && frame.type == FrameType::kEnd) {
      status = (*channel)->ExpectType(frame, FrameType::kPlanEnd);
    }
    planned = status.ok() && frame.type == FrameType::kPlanEnd;
  }
  PlanEnd end;
  if (status.ok() && parts != nullptr) {
    status = Decode(frame.payload, &end);
    *parts = end.part_count;
  }
  return status;
}

Status TakeParts(Channel* lane, uint32_t count, Finish* totals,
                  std::vector<std::string>* chunks) {
  totals->families.assign(1, Totals());
  for (uint32_t id = 0; id < count; ++id) {
    PartRequest request;
    request.part_id = id;
    Status status = lane->SendMessage(FrameType::kPartRequest, request);
    Frame frame;
    do {
      status = status.ok() ? lane->Receive(Soon(), &frame) : status;
      if (status.ok() && chunks != nullptr) {
        if (frame.type == FrameType::kChunkBegin) {
          chunks->emplace_back();
        } else if (frame.type == FrameType::kChunkData) {
          chunks->back().append(frame.payload.data(), frame.payload.size());
        }
      }
    } while (status.ok() && frame.type != FrameType::kPartEnd &&
             frame.type != FrameType::kEnd);
    PartEnd end;
    if (status.ok()) {
      status = lane->ExpectType(frame, FrameType::kPartEnd);
    }
    if (status.ok()) {
      status = Decode(frame.payload, &end);
    }
    if (!status.ok()) {
      return status;
    }
    totals->families[0] += end.totals;
  }
  return Status::OK();
}

Status ReceiveEnd(Channel* channel) {
  Frame frame;
  Status status;
  do {
    status = channel->Receive(Soon(), &frame);
  } while (status.ok() && frame.type != FrameType::kEnd);
  return status.ok() ? channel->ExpectType(frame, FrameType::kPing) : status;
}

void MustWork(const rocksdb::Status& status) {
  if (!status.ok()) {
    fprintf(stderr, "a peer of the test failed: %s\n",
            status.ToString().c_str());
    abort();
  }
}

std::string SendRaw(const HostPort& where, const std::string& bytes,
                    bool then_wait) {
  std::unique_ptr<Connection> connection;
  MustWork(MakeTcpDialer(where)->Dial(Soon(), &connection));
  const Slice part(bytes);
  // The peer may close the connection before it has read everything.
  connection->Write(&part, 1, Soon()).PermitUncheckedError();
  std::string answer;
  char buffer[4096];
  size_t got = 1;
  while (then_wait && got > 0 &&
         connection->Read(buffer, sizeof(buffer), Soon(), &got).ok()) {
    answer.append(buffer, got);
  }
  return answer;
}

FakeSource::FakeSource(Script script) : script_(std::move(script)) {
  REQUIRE_OK(ListenTcp(HostPort{"127.0.0.1", 0}, &listener_));
  acceptor_ = std::thread([this] {
    std::unique_ptr<Connection> connection;
    while (listener_->Accept(&connection).ok()) {
      std::lock_guard<std::mutex> lock(mu_);
      channels_.push_back(std::make_unique<Channel>(std::move(connection)));
      Channel* channel = channels_.back().get();
      threads_.emplace_back([this, channel] {
        script_(channel);
        channel->Close();
      });
    }
  });
}

FakeSource::~FakeSource() {
  listener_->Close();
  acceptor_.join();
  for (const std::unique_ptr<Channel>& channel : channels_) {
    channel->Close();
  }
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

HostPort FakeSource::address() const { return Parse(listener_->address()); }

namespace {

// The chunk as an honest source would send it.
struct Honest {
  std::string file;
  ChunkEnd end;
};

Honest MakeChunk() {
  ScratchDir dir;
  rocksdb::Options options;
  options.compression = rocksdb::kNoCompression;
  rocksdb::BlockBasedTableOptions table;
  table.format_version = 5;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
  MustWork(writer.Open(dir / "chunk"));
  Honest honest;
  for (int i = 100; i < 900; ++i) {
    const std::string key = std::string("key").append(std::to_string(i));
    const std::string value(100, static_cast<char>('a' + i % 26));
    MustWork(writer.Put(key, value));
    honest.end.entries++;
    honest.end.key_bytes += key.size();
    honest.end.value_bytes += value.size();
  }
  honest.end.smallest = "key100";
  honest.end.largest = "key899";
  MustWork(writer.Finish());
  honest.file = BytesOf(dir / "chunk");
  return honest;
}

template <typename Message>
void Lie(const std::function<void(Message*)>& lie, Message* message) {
  if (lie) {
    lie(message);
  }
}

Status SendPlan(const SourceLies& lies, Channel* channel) {
  if (lies.withholds == FrameType::kOpened) {
    return Status::OK();
  }
  Opened opened;
  opened.transfer_id[0] = 1;
  opened.source_database_id = "fake";
  opened.lanes = 1;
  opened.family_count = 1;
  Lie(lies.opened, &opened);
  Status status = channel->SendMessage(FrameType::kOpened, opened);
  if (lies.after_opened) {
    lies.after_opened(channel);
    return status;
  }
  Family family;
  family.description.name = "default";
  family.description.comparator = "leveldb.BytewiseComparator";
  family.description.table_factory = "BlockBasedTable";
  family.format_version = 5;
  std::vector<Family> families{family};
  Lie(lies.families, &families);
  if (lies.withholds == FrameType::kFamily) {
    return status;
  }
  for (const Family& one : families) {
    if (status.ok()) {
      status = channel->SendMessage(FrameType::kFamily, one);
    }
  }
  Parts batch;
  batch.parts.resize(1);
  batch.parts[0].bytes = 1000;
  Lie(lies.parts, &batch.parts);
  PlanEnd end;
  end.part_count = static_cast<uint32_t>(batch.parts.size());
  Lie(lies.plan_end, &end);
  if (lies.withholds == FrameType::kParts) {
    return status;
  }
  if (status.ok()) {
    status = channel->SendMessage(FrameType::kParts, batch);
  }
  if (lies.withholds == FrameType::kPlanEnd) {
    return status;
  }
  return status.ok() ? channel->SendMessage(FrameType::kPlanEnd, end) : status;
}

Totals TotalsOf(const ChunkEnd& end) {
  Totals totals;
  totals.chunks = 1;
  totals.entries = end.entries;
  totals.key_value_bytes = end.key_bytes + end.value_bytes;
  totals.sst_bytes = end.file_bytes;
  return totals;
}

void SendPartOnce(const SourceLies& lies, Channel* channel) {
  Honest honest = MakeChunk();
  Lie(lies.chunk_file, &honest.file);
  ChunkBegin begin;
  Lie(lies.chunk_begin, &begin);
  ChunkDigest digest;
  uint64_t frame_digest = 0;
  std::string payload = honest.file;
  uint16_t flags = 0;
  if (lies.chunk_payload) {
    lies.chunk_payload(&payload, &flags);
  }
  const Slice part(payload);
  if (lies.withholds == FrameType::kChunkBegin) {
    return;
  }
  Status status = channel->SendMessage(FrameType::kChunkBegin, begin, Soon());
  if (lies.withholds == FrameType::kChunkData) {
    return;
  }
  if (status.ok()) {
    status = channel->SendParts(FrameType::kChunkData, &part, 1, Soon(),
                                &frame_digest, flags);
  }
  digest.AddFrame(frame_digest);
  honest.end.file_bytes = honest.file.size();
  honest.end.digest = digest.Finish();
  PartEnd end;
  end.totals = TotalsOf(honest.end);
  PartDigest chain;
  chain.AddChunk(honest.end.digest);
  end.chain = chain.Finish();
  Lie(lies.chunk_end, &honest.end);
  if (lies.withholds == FrameType::kChunkEnd) {
    return;
  }
  if (status.ok()) {
    status = channel->SendMessage(FrameType::kChunkEnd, honest.end, Soon());
  }
  if (status.ok() && lies.repeat_chunk) {
    begin.ordinal = 1;
    honest.end.ordinal = 1;
    status = channel->SendMessage(FrameType::kChunkBegin, begin, Soon());
    if (status.ok()) {
      status = channel->SendParts(FrameType::kChunkData, &part, 1, Soon(),
                                  &frame_digest);
    }
    ChunkDigest again;
    again.AddFrame(frame_digest);
    honest.end.digest = again.Finish();
    if (status.ok()) {
      status = channel->SendMessage(FrameType::kChunkEnd, honest.end, Soon());
    }
  }
  Lie(lies.part_end, &end);
  if (status.ok() && lies.withholds != FrameType::kPartEnd) {
    // The target may have closed the connection.
    channel->SendMessage(FrameType::kPartEnd, end, Soon())
        .PermitUncheckedError();
  }
}

void ServeControl(const SourceLies& lies, Channel* channel) {
  Frame frame;
  while (channel->Receive(Soon(), &frame).ok()) {
    Status status;
    if (frame.type == FrameType::kFactsRequest) {
      status = channel->SendMessage(FrameType::kFactsReply, FactsReply());
    } else if (frame.type == FrameType::kOtherFileRequest) {
      OtherFileRequest request;
      status = Decode(frame.payload, &request);
      OtherFilePart part;
      part.bytes = "bytes\n";
      part.file_bytes = part.bytes.size();
      part.content = DigestOf(part.bytes);
      if (lies.other_file) lies.other_file(request, &part);
      if (status.ok() && lies.withholds != FrameType::kOtherFilePart) {
        status = channel->SendMessage(FrameType::kOtherFilePart, part);
      }
    } else if (frame.type == FrameType::kOpenRequest) {
      status = SendPlan(lies, channel);
    } else if (frame.type == FrameType::kFinish) {
      Finish finish;
      status = Decode(frame.payload, &finish);
      Lie(lies.finished, &finish);
      if (status.ok() && lies.withholds != FrameType::kFinished) {
        status = channel->SendMessage(FrameType::kFinished, finish);
      }
    } else if (frame.type == FrameType::kPing) {
      Ping ping;
      status = Decode(frame.payload, &ping);
      if (status.ok()) {
        status = channel->SendMessage(FrameType::kPong, ping);
      }
    }
    if (!status.ok()) {
      return;
    }
  }
}

}  // namespace

std::unique_ptr<FakeSource> LyingSource(const SourceLies& lies) {
  const auto control = std::make_shared<std::atomic<Channel*>>(nullptr);
  return std::make_unique<FakeSource>([lies, control](Channel* channel) {
    Hello hello;
    HelloAck ack;
    if (lies.withholds == FrameType::kHelloAck) {
      const bool first = *control == nullptr;
      *control = channel;
      if (first != lies.withholds_of_lanes) {
        Frame frame;
        while (channel->Receive(WaitLimit::Forever(), &frame).ok()) {
        }
        return;
      }
    }
    if (!ServerHandshake(channel, "fake", "0", Soon(), &hello, &ack).ok()) {
      return;
    }
    if (hello.kind == ConnectionKind::kControl) {
      *control = channel;
      ServeControl(lies, channel);
      return;
    }
    if (lies.lane) {
      lies.lane(channel);
      return;
    }
    Frame frame;
    while (channel->Receive(WaitLimit::Forever(), &frame).ok()) {
      if (frame.type == FrameType::kPartRequest) {
        if (lies.before_part) {
          lies.before_part(*control, channel);
        }
        SendPartOnce(lies, channel);
      } else if (lies.other_request) {
        lies.other_request(channel, frame);
      }
    }
  });
}

}  // namespace sstferry
