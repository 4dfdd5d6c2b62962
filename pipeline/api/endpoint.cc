#include "pipeline/api/endpoint.h"

namespace sstferry {

using rocksdb::Status;

namespace {

constexpr char kLocalName[] = "local";
constexpr std::chrono::milliseconds kLastWordsLimit{2000};

}  // namespace

Status Endpoint::Open(const EndpointOptions& options,
                      std::unique_ptr<Endpoint>* out) {
  std::unique_ptr<Endpoint> opened(new Endpoint);
  if (!options.address.is_directory()) {
    const HostPort where{options.address.host, options.address.port};
    opened->name_ = options.address.name;
    if (where.is_unix()) {
      opened->dialer_ = MakeUnixDialer(where.host);
    } else if (options.tls.empty()) {
      opened->dialer_ = MakeTcpDialer(where);
    } else {
      const Status status =
          MakeTlsDialer(where, options.tls, &opened->dialer_);
      if (!status.ok()) {
        return status;
      }
    }
    *out = std::move(opened);
    return Status::OK();
  }
  opened->name_ = kLocalName;
  MemoryTransport transport = MakeMemoryTransport();
  opened->dialer_ = std::move(transport.dialer);
  ServeOptions serve;
  ServedDatabase database;
  database.name = kLocalName;
  database.directory = options.address.directory;
  database.wal_dir = options.wal_dir;
  serve.databases.push_back(database);
  serve.max_lanes = options.lanes;
  serve.snapshot_dir = options.snapshot_dir;
  serve.peer_timeout = options.peer_timeout;
  serve.ping_interval = options.peer_timeout / 2;
  serve.stall_timeout = options.stall_timeout;
  serve.snapshot_ttl = options.snapshot_ttl;
  serve.registry = options.registry;
  serve.log = options.log;
  RETURN_IF_ERROR(
      MakeSourceServer(serve, std::move(transport.listener), &opened->server_));
  SourceServer* server = opened->server_.get();
  opened->server_thread_ = std::thread([server, log = options.log] {
    const Status ended = server->Run();
    if (!ended.ok() && log) {
      log(LogLevel::kError, "in-process source: " + MessageOf(ended));
    }
  });
  *out = std::move(opened);
  return Status::OK();
}

Endpoint::~Endpoint() {
  if (server_ != nullptr) {
    // The last words of the only target decide whether the snapshot stays.
    server_->AwaitIdle(kLastWordsLimit);
    server_->Stop();
    server_thread_.join();
  }
}

}  // namespace sstferry
