// Implements the command sstferry serve.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>

#include "format/quantity.h"
#include "sstferry/descriptor.h"
#include "sstferry/rate_limited_log.h"
#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/console.h"
#include "tools/sstferry/metrics_endpoint.h"
#include "tools/sstferry/progress.h"
#include "tools/sstferry/reload.h"
#include "tools/sstferry/run.h"
#include "tools/sstferry/serve_metrics.h"
#include "tools/sstferry/signals.h"
#include "tools/sstferry/version.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Counts the transfers of this server, their failures and their bytes.
//
// Threads: all members from any thread.
class Ledger {
 public:
  void Add(const TransferReport& report) {
    const std::lock_guard<std::mutex> lock(mu_);
    if (transfers_ == 0) {
      first_ = report;
    }
    ++transfers_;
    failed_ += report.status.ok() ? 0 : 1;
    entries_ += report.entries;
    sst_bytes_ += report.sst_bytes;
    wire_bytes_ += report.wire_bytes;
  }
  uint64_t transfers() const {
    const std::lock_guard<std::mutex> lock(mu_);
    return transfers_;
  }
  TransferReport first() const {
    const std::lock_guard<std::mutex> lock(mu_);
    return first_;
  }
  void AddTo(Summary* summary) const {
    const std::lock_guard<std::mutex> lock(mu_);
    summary->entries = entries_;
    summary->sst_bytes = sst_bytes_;
    summary->wire_bytes = wire_bytes_;
  }
  uint64_t failed() const {
    const std::lock_guard<std::mutex> lock(mu_);
    return failed_;
  }

 private:
  mutable std::mutex mu_;
  TransferReport first_;
  uint64_t transfers_ = 0;
  uint64_t failed_ = 0;
  uint64_t entries_ = 0;
  uint64_t sst_bytes_ = 0;
  uint64_t wire_bytes_ = 0;
};

std::string ServeSeconds(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f s", seconds);
  return text.data();
}

void LogTransfer(const TransferReport& report, RateLimitedLog* limited,
                 Console* console) {
  const EndState state = EndStateOf(report.status);
  std::string line = "transfer " + report.transfer_id + " of " + report.name +
                     " to " + report.peer + ": " + EndStateName(state) + ", " +
                     FormatBytes(report.sst_bytes) + ", " +
                     ServeSeconds(report.seconds);
  if (!report.status.ok()) {
    line += ": " + MessageOf(report.status);
    if (!report.error_where.empty()) {
      line += " (" + report.error_where + ")";
    }
  }
  if (report.kept_for.count() > 0) {
    line += "; its snapshot is retained for " +
            FormatMillis(std::chrono::milliseconds(report.kept_for).count());
  }
  if (const std::optional<std::string> admitted = limited->Admit(line)) {
    console->Log(report.status.ok() ? LogLevel::kInfo : LogLevel::kWarning,
                 *admitted);
  }
}

// Maximum length of the database names in the line for systemctl status and in
// a warning.
constexpr size_t kMaxStatusNames = 200;

std::string Cut(const std::string& text, size_t most) {
  return text.size() <= most ? text : text.substr(0, most) + "...";
}

void Announce(const ServeArguments& arguments, const std::string& address,
              Console* console) {
  if (arguments.tls.empty() && !IsLoopback(arguments.listen.host)) {
    console->Log(LogLevel::kWarning,
                 "--insecure: anyone who reaches " + address +
                     " can read the served databases, and the data crosses the "
                     "network unencrypted");
  }
  std::string open_names;
  for (const ServedDatabase& database : arguments.options.databases) {
    if (!arguments.tls.empty() && database.allowed.empty()) {
      open_names += (open_names.empty() ? "" : ", ") + database.name;
    }
  }
  if (!arguments.tls.empty() && !arguments.options.tree.directory.empty() &&
      arguments.options.tree.allowed.empty()) {
    open_names += (open_names.empty() ? "" : ", ") + std::string("*");
  }
  if (!open_names.empty()) {
    console->Log(LogLevel::kWarning,
                 "--allow: missing for " +
                     Cut(open_names, kMaxStatusNames) +
                     ": every certificate that --tls-ca accepts can read it; "
                     "name the certificates that may, or give --allow NAME=" +
                     kEveryPeer);
  }
  const std::string line = "listening on " + address;
  if (arguments.common.json) {
    console->WriteLine(LogLevel::kInfo, line);
  } else if (!WriteResult(line + "\n")) {
    console->Log(LogLevel::kWarning,
                 "standard output: \"" + line + "\" could not be written");
  }
  std::string names;
  for (const ServedDatabase& database : arguments.options.databases) {
    names += (names.empty() ? "" : ", ") + database.name;
  }
  if (!arguments.options.tree.directory.empty()) {
    names += (names.empty() ? "" : ", ") + std::string("all below ") +
             arguments.options.tree.directory;
  }
  const Status notified =
      NotifyReady("serves " + Cut(names, kMaxStatusNames) + " on " + address);
  if (!notified.ok()) {
    console->Log(LogLevel::kWarning, notified.ToString());
  }
}

// A connected target sends a ping every 5 seconds. If no ping arrives for
// kStdioSilence, the target is lost, and the next process of serve may take
// over its snapshot.
constexpr std::chrono::seconds kStdioSilence{20};
// The value of ServeOptions::other_process_limit with --stdio.
constexpr std::chrono::seconds kStdioEarlier{60};

// Returns the address of the ssh client, such as "192.0.2.7:52114". If ssh does
// not report it, returns "stdio".
std::string StdioPeer() {
  const char* const connection = std::getenv("SSH_CONNECTION");
  std::istringstream words(connection != nullptr ? connection : "");
  std::string host;
  uint16_t port = 0;
  return words >> host >> port ? ToString(HostPort{host, port}) : "stdio";
}

// Makes a listener whose only connection is standard input and output. Other
// code of this process that writes to standard output then writes to standard
// error.
Status ListenStdio(std::unique_ptr<Listener>* listener) {
  const int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  const int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  const Descriptor nothing = OpenPath("/dev/null", O_RDONLY);
  if (in < 0 || out < 0 || !nothing.is_open() ||
      dup2(nothing.get(), STDIN_FILENO) < 0 ||
      dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    return MakeStatus(EndState::kInternal,
                      std::string("--stdio: ") + std::strerror(errno));
  }
  if (isatty(in) != 0 || isatty(out) != 0) {
    return MakeStatus(EndState::kRefused,
                      "--stdio: expected the stream of a pull from HOST:/DIR "
                      "or ssh://, which runs this, found a terminal");
  }
  return ListenStream(in, out, StdioPeer(), kStdioSilence, listener);
}

// Checks that all databases can be served, and logs them. Returns an error if
// one cannot be served, unless --allow-missing was given. Called before a
// target can connect.
Status CheckDatabases(const ServeArguments& arguments, Console* console) {
  const std::string& top = arguments.options.tree.directory;
  std::error_code error;
  if (!top.empty() && !arguments.allow_missing &&
      !std::filesystem::is_directory(top, error)) {
    return MakeStatus(EndState::kSourceError,
                      "--db-dir " + top +
                          ": expected a directory, found none "
                          "(--allow-missing starts without it)");
  }
  if (!top.empty() && std::filesystem::exists(top + "/CURRENT", error)) {
    return MakeStatus(EndState::kSourceError,
                      "--db-dir " + top +
                          ": expected a directory with databases below it, "
                          "found a database: give it as --db " + top);
  }
  for (const ServedDatabase& database : arguments.options.databases) {
    DatabaseFacts facts;
    const std::string what =
        "--db " + database.name + "=" + database.directory;
    const Status status = DescribeDatabase(
        database, {arguments.options.snapshot_dir, {}, false}, &facts);
    if (status.ok()) {
      console->Log(LogLevel::kInfo,
                   "serves " + database.name + " from " + database.directory +
                       ": " +
                       FormatCount(facts.families, "column family",
                                   "column families") +
                       ", " + FormatCount(facts.files, "file") + ", " +
                       FormatBytes(facts.bytes) +
                       ", sequence " + std::to_string(facts.sequence) +
                       " as of the last flush");
    } else if (arguments.allow_missing) {
      console->Log(LogLevel::kWarning,
                   what + ": cannot be served now: " + MessageOf(status));
    } else {
      return WithContext(
          status, EndState::kSourceError,
          what + " (--allow-missing starts without it)");
    }
  }
  return Status::OK();
}

// Refuses to reload the options if the allow list of a database has become
// empty: every certificate could then read the database.
Status CheckStillNamed(const ServeOptions& before, const ServeOptions& again) {
  std::string name;
  if (!before.tree.allowed.empty() && again.tree.allowed.empty()) {
    name = "*";
  }
  for (const ServedDatabase& database : again.databases) {
    for (const ServedDatabase& old : before.databases) {
      if (old.name == database.name && !old.allowed.empty() &&
          database.allowed.empty()) {
        name = database.name;
      }
    }
  }
  return name.empty()
             ? Status::OK()
             : Status::InvalidArgument(
                   "--allow " + name +
                   ": expected at least one SUBJECT, as before, found none; "
                   "--allow " +
                   name + "=" + kEveryPeer + " lets every certificate read it");
}

// Reads the command line, the config file and the TLS files again. Applies the
// changes only if there is no error in any of them.
void Reload(const std::vector<std::string>& words, const ReloadTls& reload_tls,
            ServeOptions* options, SourceServer* server,
            ServeMetrics* metrics, MetricsEndpoint* endpoint,
            Console* console) {
  ServeArguments again;
  Status status = ParseServe(words, &again);
  if (status.ok() && again.tls.empty() == static_cast<bool>(reload_tls)) {
    status = Status::InvalidArgument(
        "turning TLS on or off needs a restart of serve");
  }
  if (status.ok()) {
    status = CheckStillNamed(*options, again.options);
  }
  if (status.ok() && reload_tls) {
    status = reload_tls(again.tls);
  }
  if (status.ok() && endpoint != nullptr) {
    status = endpoint->Reload(again.tls);
  }
  if (status.ok()) {
    server->SetAllowed(again.options);
    options->databases = again.options.databases;
    options->tree.allowed = again.options.tree.allowed;
    metrics->SetCertificates(again.tls);
    LogTlsWarnings(again.tls, console);
    LogCertificateEnds(again.tls, console);
  }
  ApplyReload(status, again.common, again.options.max_rate_bytes_per_sec,
              [server](uint64_t rate) { server->SetMaxRate(rate); }, console);
  server->LookForDatabases();  // also if reading the command line failed
  if (status.ok() && reload_tls) {
    console->Log(LogLevel::kInfo,
                 "SIGHUP: new connections use the new certificates and allow "
                 "list");
  }
}

// Serves until SIGINT or SIGTERM arrives. With --once, serves until the first
// transfer has ended.
Status Serve(const std::vector<std::string>& words, ServeArguments* arguments,
             Console* console, Ledger* ledger) {
  std::unique_ptr<Listener> listener;
  ReloadTls reload_tls;
  LogTlsWarnings(arguments->tls, console);
  LogCertificateEnds(arguments->tls, console);
  const bool stdio = !arguments->stdio_directory.empty();
  // With --stdio, does not check the database here: the answer to the target's
  // first request reports a problem.
  RETURN_IF_ERROR(stdio ? Status::OK() : CheckDatabases(*arguments, console));
  Status status;
  if (stdio) {
    arguments->options.other_process_limit = kStdioEarlier;
    status = ListenStdio(&listener);
  } else if (arguments->listen.is_unix()) {
    status = ListenUnix(arguments->listen.host, arguments->allowed_uids,
                        &listener);
  } else if (arguments->tls.empty()) {
    status = ListenTcp(arguments->listen, &listener);
  } else {
    status = ListenTls(arguments->listen, arguments->tls, &listener,
                       &reload_tls);
  }
  if (!status.ok()) {
    return stdio ? status
                 : WithContext(status, EndState::kInternal,
                               "--listen " + ToString(arguments->listen));
  }
  std::unique_ptr<SourceServer> server;
  std::atomic<bool> stop_asked{false};
  std::atomic<StopWatcher*> watcher{nullptr};
  RateLimitedLog transfer_log;
  ServeMetrics metrics(&arguments->options, listener->address());
  metrics.SetCertificates(arguments->tls);
  const bool once = arguments->once;
  arguments->options.log = console->log_function();
  arguments->options.on_transfer_end = [&](const TransferReport& report) {
    metrics.Report(report);
    LogTransfer(report, &transfer_log, console);
    // Does not count a transfer that may resume because its snapshot is
    // retained. With --once, the transfer may resume only if its connection was
    // lost.
    if (report.kept_for.count() > 0 && (report.lost || !once)) {
      return;
    }
    ledger->Add(report);
    if (once) {
      watcher.load()->Trigger();
    }
  };
  RETURN_IF_ERROR(
      MakeSourceServer(arguments->options, std::move(listener), &server));
  // Starts the metrics before a target can connect, so that a failure here does
  // not interrupt a transfer.
  ShownMetrics shown;
  RETURN_IF_ERROR(ShowMetrics(
      arguments->metrics, arguments->tls,
      [&] { return metrics.Collect(server->state()).Text(); },
      [&] { return metrics.FileText(server->state()); }, console, &shown));
  const auto stop = [&] {
    stop_asked = true;
    NotifyStopping().PermitUncheckedError();  // best effort
    server->Stop();
  };
  ServeOptions allowed = arguments->options;
  StopWatcher stopper(stop, [&] {
    Reload(words, reload_tls, &allowed, server.get(), &metrics,
           shown.endpoint.get(), console);
  });
  watcher = &stopper;
  if (!stdio) {
    Announce(*arguments, server->address(), console);
  }
  status = server->Run();
  if ((stop_asked || stdio) && EndStateOf(status) == EndState::kCancelled) {
    status = Status::OK();  // the operator or ssh has ended the server
  }
  return status;
}

std::string ServeJson(const Summary& summary, const Ledger& ledger) {
  auto json =
      nlohmann::ordered_json::parse(SummaryToJson(summary, "serve"), nullptr,
                                    false);
  json["transfers"] = ledger.transfers();
  json["transfers_failed"] = ledger.failed();
  return json.dump(2) + "\n";
}

}  // namespace

int RunServe(const std::vector<std::string>& arguments) {
  ServeArguments serve;
  const Status usage = ParseServe(arguments, &serve);
  if (!usage.ok()) {
    return ReportUsage("serve", usage);
  }
  HoldReloadSignal();
  Console console(serve.common);
  Ledger ledger;
  Summary summary;
  summary.started_at = NowRfc3339();
  summary.source_versions = {SoftwareVersion(), RocksdbVersion()};
  for (const ServedDatabase& database : serve.options.databases) {
    summary.source += (summary.source.empty() ? "" : ",") + database.name;
  }
  if (!serve.options.tree.directory.empty()) {
    summary.source += (summary.source.empty() ? "" : ",") +
                      serve.options.tree.directory + "/*";
  }
  const auto started = std::chrono::steady_clock::now();
  summary.status = Serve(arguments, &serve, &console, &ledger);
  const std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - started;
  summary.seconds = elapsed.count();
  summary.finished_at = NowRfc3339();
  summary.peak_rss_bytes = PeakRssBytes();
  ledger.AddTo(&summary);
  if (serve.once && summary.status.ok() && ledger.transfers() > 0) {
    const TransferReport first = ledger.first();
    summary.status = first.status;
    summary.error_where = first.error_where;
    summary.transfer_id = first.transfer_id;
    summary.target = first.peer;
  }
  return FinishCommand("serve", summary.status, summary.error_where,
                serve.common.json ? ServeJson(summary, ledger) : "", &console);
}

}  // namespace sstferry
