#include "pipeline/serve/server.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <list>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "format/nearest.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/base/start_thread.h"
#include "pipeline/serve/admission.h"
#include "pipeline/serve/control_session.h"
#include "pipeline/serve/lane_session.h"
#include "pipeline/serve/served_databases.h"
#include "sstferry/rate_limited_log.h"

namespace sstferry {
namespace {

using rocksdb::Status;

class Server : public SourceServer {
 public:
  Server(const ServeOptions& options, std::unique_ptr<Listener> listener,
         const RefreshFactory& make_refresh, const FollowFactory& make_follow)
      : options_(options),
        listener_(std::move(listener)),
        shares_(options.max_rate_bytes_per_sec, options.spool_bytes,
                make_refresh, options.full_rate),
        admission_({options.max_connections,
                    options.max_connections_per_address,
                    options.max_half_open,
                    options.max_half_open_per_address}),
        databases_(&options_),
        store_(&options_, &databases_, &shares_),
        follow_(make_follow == nullptr ? nullptr
                                       : make_follow(options.max_held_bytes)) {
    host_.options = &options_;
    host_.databases = &databases_;
    host_.shares = &shares_;
    host_.find_database = [this](const std::string& name,
                                 const PeerIdentity* peer,
                                 ServedDatabase* database) {
      return FindDatabase(name, peer, database);
    };
    host_.store = &store_;
    host_.follow = follow_.get();
    host_.log_peer = [this](const std::string& line) {
      LogLimited(&peer_log_, line);
    };
    store_.RemoveLeftovers();
    store_.Start();
  }

  ~Server() override {
    Stop();
    JoinAll();
  }

  Status Run() override {
    Status status;
    while (status.ok()) {
      std::unique_ptr<Connection> connection;
      status = listener_->Accept(&connection);
      if (status.ok()) {
        StartSession(std::move(connection));
      }
    }
    const bool stopped = stopping_;
    Stop();
    JoinAll();
    store_.Join();
    return stopped ? Status::OK() : status;
  }

  void Stop() override {
    stopping_ = true;
    listener_->Close();
    // Run() calls Stop(), too. The call that comes second waits here until the
    // first one has told the targets.
    std::lock_guard<std::mutex> stopping(stop_mu_);
    // Stops the store first. Otherwise a lane that the bucket wakes could fail
    // before the store tells the targets that the server is shutting down.
    store_.Stop();
    if (follow_ != nullptr) follow_->Stop();
    shares_.wire_bucket()->Close();
    std::lock_guard<std::mutex> lock(mu_);
    for (Session& session : sessions_) {
      if (session.channel != nullptr) {
        session.channel->Close();
      }
    }
  }

  void SetMaxRate(uint64_t wire_bytes_per_sec) override {
    shares_.wire_bucket()->SetRate(wire_bytes_per_sec);
  }

  void SetAllowed(const ServeOptions& options) override {
    databases_.SetAllowed(options);
  }

  void LookForDatabases() override { databases_.Look(); }

  ServerState state() override {
    const std::shared_ptr<const ServedSet> served = databases_.Now();
    std::set<std::string> names;
    for (const ServedDatabase& database : served->databases) {
      names.insert(database.name);
    }
    return {served->databases, store_.Reports(), store_.List(names, nullptr),
            follow_ == nullptr ? std::vector<FollowedState>()
                               : follow_->state(),
            shares_.spool_budget()->built(),
            shares_.spool_budget()->sent()};
  }

  bool AwaitIdle(std::chrono::milliseconds limit) override {
    std::unique_lock<std::mutex> lock(mu_);
    return idle_.wait_for(lock, limit, [this] {
      return std::all_of(sessions_.begin(), sessions_.end(),
                         [](const Session& session) { return !!session.done; });
    });
  }

  const std::string& address() const override { return listener_->address(); }

 private:
  struct Session {
    uint64_t id = 0;  // number of the connection in admission_
    std::unique_ptr<Channel> channel;
    std::thread thread;
    std::atomic<bool> done{false};
  };

  void Log(LogLevel level, const std::string& text) const {
    if (options_.log) {
      options_.log(level, text);
    }
  }

  // Logs a line that any host can cause if it can connect to the port.
  void LogStranger(const std::string& text) {
    LogLimited(&stranger_log_, text);
  }
  void LogLimited(RateLimitedLog* limited, const std::string& text) {
    if (const std::optional<std::string> line = limited->Admit(text)) {
      Log(LogLevel::kWarning, *line);
    }
  }

  void StartSession(std::unique_ptr<Connection> connection) {
    JoinFinished();
    uint64_t dropped = 0;
    std::string why;
    const std::string peer = connection->peer();
    const uint64_t id = admission_.Enter(PeerAddress(peer), &dropped, &why);
    if (id == 0) {
      LogStranger("refused a connection from " + peer + ": " + why);
      return;
    }
    std::lock_guard<std::mutex> lock(mu_);
    for (Session& session : sessions_) {
      if (session.id == dropped && dropped != 0 &&
          session.channel != nullptr) {
        session.channel->Close();
      }
    }
    if (stopping_) {
      admission_.Leave(id);
      return;
    }
    sessions_.emplace_back();
    Session* session = &sessions_.back();
    session->id = id;
    session->channel = std::make_unique<Channel>(std::move(connection));
    const Status started = StartThread(
        [this, session] {
          Serve(session->id, session->channel.get());
          session->channel->Close();
          admission_.Leave(session->id);
          std::lock_guard<std::mutex> done(mu_);
          // Frees the channel now. JoinFinished() runs only when another peer
          // connects.
          session->channel.reset();
          session->done = true;
          idle_.notify_all();
        },
        &session->thread);
    if (!started.ok()) {
      sessions_.pop_back();
      admission_.Leave(id);
      LogStranger("refused a connection from " + peer + ": " +
                  MessageOf(started));
    }
  }

  void Serve(uint64_t id, Channel* channel) {
    Hello hello;
    HelloAck ack;
    const Status status = ServerHandshake(
        channel, SoftwareVersion(), RocksDbVersion(),
        WaitLimit::Within(options_.handshake_timeout), &hello, &ack);
    const bool dropped = admission_.IsDropped(id);
    if (dropped && !stopping_) {
      LogStranger("dropped a connection from " + channel->peer() +
                  " during its handshake: too many newer connections");
    } else if (!status.ok() && !channel->is_in_process()) {
      LogStranger("handshake with " + channel->peer() + " failed: " +
                  EndStateName(EndStateOf(status)) + ": " + MessageOf(status));
    }
    if (dropped || !status.ok()) {
      return;
    }
    if (hello.kind == ConnectionKind::kControl) {
      ControlSession(host_, hello, channel,
                     [this, id] { return admission_.Establish(id); })
          .Run();
      return;
    }
    const std::shared_ptr<Transfer> transfer = store_.Find(hello.transfer_id);
    // The source may have restarted and not have planned the transfer again
    // yet. The target's lanes then connect again later.
    if (transfer == nullptr || !transfer->planned()) {
      SendEnd(channel,
              MakeStatus(EndState::kSnapshotGone,
                         "no transfer " + ToHex(hello.transfer_id) +
                             " is retained here"),
              "source");
      return;
    }
    if (!transfer->IsOwner(channel->identity())) {
      const Status denied =
          MakeStatus(EndState::kDenied,
                     "transfer " + ToHex(hello.transfer_id) +
                         " was opened with another certificate or by another "
                         "account");
      LogLimited(&peer_log_, "lane from " + channel->peer() + ": DENIED: " +
                                 MessageOf(denied));
      SendEnd(channel, denied, "source");
      return;
    }
    if (admission_.Establish(id)) {
      LaneSession(transfer, channel, hello.lane).Run();
    }
  }

  Status FindDatabase(const std::string& name, const PeerIdentity* peer,
                      ServedDatabase* database) {
    const std::shared_ptr<const ServedSet> set = databases_.Now();
    const ServedDatabase* const found = set->Find(name);
    if (found != nullptr && !databases_.MayRead(name, peer)) {
      return MakeStatus(EndState::kDenied,
                        NameOfPeer(peer) + " may not read database '" + name +
                            "' (serve --allow)");
    }
    if (found != nullptr) {
      *database = *found;
      return Status::OK();
    }
    std::vector<std::string> names;  // only those that the peer may know
    for (const ServedDatabase& served : set->databases) {
      if (databases_.MayRead(served.name, peer)) {
        names.push_back(served.name);
      }
    }
    if (name == kStdioDatabase && !options_.tree.directory.empty()) {
      return MakeStatus(EndState::kRefused,
                        options_.tree.directory +
                            ": expected a database, found a directory with " +
                            std::to_string(names.size()) +
                            " databases; --all selects all of them");
    }
    const std::string nearest = DidYouMean(name, names);
    return MakeStatus(
        EndState::kRefused,
        "no database named '" + name + "' is served here" +
            (nearest.empty() ? "; sstferry ls lists the names" : nearest));
  }

  // Removes the sessions whose threads have ended.
  void JoinFinished() {
    std::list<Session> finished;
    {
      std::lock_guard<std::mutex> lock(mu_);
      for (auto it = sessions_.begin(); it != sessions_.end();) {
        const auto next = std::next(it);
        if (it->done) {
          finished.splice(finished.end(), sessions_, it);
        }
        it = next;
      }
    }
    for (Session& session : finished) {
      session.thread.join();
    }
  }

  void JoinAll() {
    std::list<Session> all;
    {
      std::lock_guard<std::mutex> lock(mu_);
      all.swap(sessions_);
    }
    for (Session& session : all) {
      session.thread.join();
    }
  }

  const ServeOptions options_;
  const std::unique_ptr<Listener> listener_;
  ServerShares shares_;
  Admission admission_;
  RateLimitedLog stranger_log_;  // lines that peers cause before their
                                 // handshake
  RateLimitedLog peer_log_;      // lines that peers cause after their handshake
  ServedDatabases databases_;
  SnapshotStore store_;
  const std::unique_ptr<FollowAtSource> follow_;  // null: no followers
  SessionHost host_;
  std::mutex stop_mu_;
  std::atomic<bool> stopping_{false};

  std::mutex mu_;
  std::condition_variable idle_;
  std::list<Session> sessions_;  // under mu_
};

}  // namespace

Status MakeServer(const ServeOptions& options,
                  std::unique_ptr<Listener> listener,
                  const RefreshFactory& make_refresh,
                  const FollowFactory& make_follow,
                  std::unique_ptr<SourceServer>* server) {
  std::set<std::string> names;
  for (const ServedDatabase& database : options.databases) {
    if (!IsValidDatabaseName(database.name)) {
      return MakeStatus(EndState::kRefused,
                        "database name '" + database.name +
                            "': expected " + kDatabaseNameGrammar);
    }
    if (!names.insert(database.name).second) {
      return MakeStatus(EndState::kRefused,
                        "database name '" + database.name + "' is given twice");
    }
  }
  RETURN_IF_ERROR(StartRocksDbThreads());
  *server = std::make_unique<Server>(options, std::move(listener),
                                     make_refresh, make_follow);
  return Status::OK();
}

}  // namespace sstferry
