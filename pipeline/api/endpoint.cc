#include "pipeline/api/endpoint.h"

#include <algorithm>

#include "pipeline/archive/restore.h"
#include "pipeline/base/start_thread.h"
#include "pipeline/snapshot/posix_files.h"
#include "pipeline/snapshot/retained_snapshots.h"
#include "pipeline/snapshot/snapshot_place.h"

namespace sstferry {

using rocksdb::Status;

namespace {

constexpr char kLocalName[] = "local";
constexpr std::chrono::milliseconds kLastWordsLimit{2000};

// Returns the remote directory, with the serve options that a local directory
// would get.
SshPlace PlaceOf(const EndpointOptions& options) {
  const SourceAddress& address = options.address;
  SshPlace place{address.user,      address.host, address.port,
                 address.directory, options.ssh,  {}};
  std::vector<std::string>& serve = place.serve_options;
  if (!options.snapshot_dir.empty()) {
    serve.insert(serve.end(), {"--snapshot-dir", options.snapshot_dir});
  }
  if (!options.wal_dir.empty()) {
    serve.insert(serve.end(), {"--wal-dir", std::string(kStdioDatabase) + "=" +
                                                options.wal_dir});
  }
  if (options.snapshot_ttl != EndpointOptions().snapshot_ttl) {
    const auto seconds = options.snapshot_ttl.count();
    serve.insert(
        serve.end(),
        {"--snapshot-ttl", seconds == 0 ? "0" : std::to_string(seconds) + "s"});
  }
  return place;
}

// Returns the options of the archive's store with shorter timeouts. A lane
// waits for its source at most for the stall timeout, so the store must fail
// earlier. If there was progress, the lane then repeats its request.
StoreOptions StoreOf(const EndpointOptions& options) {
  StoreOptions store = options.store;
  store.where = *options.address.archive;
  store.connections = std::max(options.lanes, 1u);
  store.timeouts.connect = options.timeouts.connect;
  store.timeouts.retry =
      std::min(options.timeouts.retry, options.timeouts.stall / 2);
  store.timeouts.peer =
      std::min(store.timeouts.peer, options.timeouts.stall / 2);
  store.on_retry = RetryLog(options.log);
  return store;
}

// Checks that a snapshot can be created in the snapshot directory. If not,
// fails with a message that contains a command that works.
Status CheckPlace(const EndpointOptions& options) {
  std::string real;
  if (options.is_tree ||
      !ResolveDatabase(options.address.directory, &real).ok()) {
    return Status::OK();  // opening the source will report the error
  }
  return CheckSnapshotPlace(real, SnapshotParent(real, options.snapshot_dir),
                            options.snapshot_dir, options.command);
}

}  // namespace

Status Endpoint::Open(const EndpointOptions& options,
                      std::unique_ptr<Endpoint>* out) {
  std::unique_ptr<Endpoint> opened(new Endpoint);
  if (!options.address.is_directory() && !options.address.is_archive()) {
    const HostPort where{options.address.host, options.address.port};
    opened->name_ = options.address.name;
    if (options.address.is_ssh()) {
      opened->dialer_ = MakeSshDialer(PlaceOf(options));
    } else if (where.is_unix()) {
      opened->dialer_ = MakeUnixDialer(where.host);
    } else if (options.tls.empty()) {
      opened->dialer_ = MakeTcpDialer(where);
    } else {
      RETURN_IF_ERROR(MakeTlsDialer(where, options.tls, &opened->dialer_));
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
  if (options.address.is_archive()) {
    RETURN_IF_ERROR(MakeArchiveOrigin(StoreOf(options), options.address.set,
                                      &opened->origin_));
    database.origin = opened->origin_;
    serve.full_rate = true;  // no application waits for an archive
  } else {
    database.directory = options.address.directory;
    database.wal_dir = options.wal_dir;
    RETURN_IF_ERROR(CheckPlace(options));
  }
  if (options.is_tree) {
    serve.tree.directory = options.address.directory;
  } else {
    serve.databases.push_back(database);
  }
  serve.max_lanes = options.lanes;
  serve.max_held_bytes = options.max_held_bytes;
  serve.snapshot_dir = options.snapshot_dir;
  serve.timeouts = options.timeouts;
  serve.snapshot_ttl = options.snapshot_ttl;
  serve.registry = options.registry;
  serve.log = options.log;
  RETURN_IF_ERROR(
      MakeSourceServer(serve, std::move(transport.listener), &opened->server_));
  SourceServer* server = opened->server_.get();
  const auto run = [server, log = options.log] {
    const Status ended = server->Run();
    if (!ended.ok() && log) {
      log(LogLevel::kError, "in-process source: " + MessageOf(ended));
    }
  };
  RETURN_IF_ERROR(StartThread(run, &opened->server_thread_));
  *out = std::move(opened);
  return Status::OK();
}

Endpoint::~Endpoint() {
  if (origin_ != nullptr) {
    origin_->Cancel();
  }
  if (server_thread_.joinable()) {
    // Waits for the last message of the only target. This message decides
    // whether the snapshot is retained.
    server_->AwaitIdle(kLastWordsLimit);
    server_->Stop();
    server_thread_.join();
  }
}

}  // namespace sstferry
