// Metrics: their values and text, the file kept between runs, the HTTP
// endpoint, and the commands that show metrics.
#include <signal.h>
#include <sys/stat.h>

#include <array>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "tests/support/catch.h"
#include "tests/support/certificates.h"
#include "tests/support/edited_options.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/serve_process.h"
#include "tools/sstferry/metric_set.h"
#include "tools/sstferry/metrics_endpoint.h"
#include "tools/sstferry/metrics_file.h"
#include "tools/sstferry/serve_metrics.h"
#include "tools/sstferry/standby_metrics.h"

namespace sstferry::metrics_test {
namespace {

namespace fs = std::filesystem;
using boost::asio::ip::tcp;

// Sends a request and returns the whole answer; empty if the endpoint closed
// the connection without one.
std::string Ask(const std::string& url, const std::string& request) {
  const size_t port = url.rfind(':') + 1;
  boost::asio::io_context context;
  tcp::socket socket(context);
  socket.connect({boost::asio::ip::make_address("127.0.0.1"),
                  static_cast<uint16_t>(std::stoi(url.substr(port)))});
  boost::system::error_code error;
  boost::asio::write(socket, boost::asio::buffer(request), error);
  std::string answer;
  boost::asio::read(socket, boost::asio::dynamic_buffer(answer), error);
  return answer;
}

std::string Get(const std::string& url, const std::string& path = "/metrics") {
  return Ask(url, "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

std::string UrlIn(const std::string& log) {
  const size_t begin = log.find("http://");
  REQUIRE(begin != std::string::npos);
  return log.substr(begin, log.find('\n', begin) - begin);
}

rocksdb::Status StartEndpoint(const HostPort& listen,
                              std::unique_ptr<MetricsEndpoint>* endpoint) {
  MetricsArguments where;
  where.listen = listen;
  return MetricsEndpoint::Start(
      where, TlsFiles(), [] { return std::string("answer 1\n"); }, endpoint);
}

bool Has(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

size_t Count(const std::string& text, const std::string& begin) {
  size_t count = 0;
  for (size_t at = text.find("\n" + begin); at != std::string::npos;
       at = text.find("\n" + begin, at + 1)) {
    ++count;
  }
  return count;
}

TransferReport Running(const std::string& id, uint64_t bytes) {
  TransferReport report;
  report.transfer_id = id;
  report.name = "db";
  report.connected = true;
  report.entries = bytes / 10;
  report.wire_bytes = bytes;
  report.stage_seconds["read_build"] = static_cast<double>(bytes) / 100;
  return report;
}

const MetricLabels kDb = {{"database", "db"}};

}  // namespace

TEST_CASE("Restore reads only the lasting metrics of the given target",
          "[tools][metrics]") {
  const std::string odd = "/data/a \"b\\c";
  MetricSet before;
  before.Set(metric::kReplicaRetries, {{"target", odd}}, 3);
  before.Set(metric::kReplicaRetries, {{"target", "/other"}}, 5);
  before.Set(metric::kLastRunDuration, {{"target", odd}}, 7);
  before.Set(metric::kReplicaLastEnd, {{"target", odd}}, 1795385083);
  MetricSet after;
  after.Restore(before.Text(), "target", odd);
  REQUIRE(after.Get(metric::kReplicaRetries, {{"target", odd}}) == 3);
  REQUIRE(after.Get(metric::kReplicaLastEnd, {{"target", odd}}) == 1795385083);
  REQUIRE(after.Get(metric::kReplicaRetries, {{"target", "/other"}}) == 0);
  REQUIRE(after.Get(metric::kLastRunDuration, {{"target", odd}}) == 0);
}

TEST_CASE("Restore ignores lines that are no series of this program",
          "[tools][metrics]") {
  const std::string name = "sstferry_replica_retries_total";
  for (const std::string& line :
       {std::string("\n"), std::string("# x"), name, name + "{",
        name + "{target", name + "{target=\"/t\"", name + "{target=\"/t\"}",
        name + "{target=\"/t\"} ", name + "{target=\"/t\"} -1",
        name + "{target=\"/t\"} nan", name + "{target=\"/t\"} 1 x",
        name + "{target=\"/t\\", std::string("other_total{target=\"/t\"} 1"),
        std::string("\0{", 2)}) {
    INFO(line);
    MetricSet set;
    set.Restore(line, "target", "/t");
    REQUIRE(set.Get(metric::kReplicaRetries, {{"target", "/t"}}) == 0);
    REQUIRE(set.Text() == MetricSet().Text());
  }
}

TEST_CASE("serve's counters grow while a transfer runs and count it once",
          "[tools][metrics]") {
  ServeOptions options;
  options.databases.emplace_back();
  options.databases.back().name = "db";
  options.databases.back().directory = "/nowhere";
  ServeMetrics metrics(&options, "127.0.0.1:7420");
  const auto wire = [&](const ServerState& state) {
    return metrics.Collect(state).Get(metric::kSourceWireBytes, kDb);
  };
  ServerState state;
  state.databases = options.databases;
  const ServerState quiet = state;
  REQUIRE(metrics.Collect(state).Text().find(
              "sstferry_source_wire_bytes_total{database=\"db\"} 0") !=
          std::string::npos);
  state.transfers = {Running("a", 100), Running("b", 50)};
  REQUIRE(wire(state) == 150);
  REQUIRE(metrics.Collect(state).Get(metric::kSourceActive, kDb) == 2);
  state.transfers = {Running("a", 300)};
  REQUIRE(wire(state) == 350);  // b has ended but is not reported yet

  TransferReport left = Running("a", 400);
  left.kept_for = std::chrono::seconds(60);
  left.status = MakeStatus(EndState::kCancelled, "x");
  metrics.Report(left);
  REQUIRE(wire(quiet) == 450);
  metrics.Report(Running("b", 60));
  metrics.Report(Running("a", 500));
  const MetricSet end = metrics.Collect(quiet);
  REQUIRE(end.Get(metric::kSourceWireBytes, kDb) == 560);
  REQUIRE(end.Get(metric::kSourceEntries, kDb) == 56);
  REQUIRE(end.Get(metric::kSourceStages,
                  {{"database", "db"}, {"stage", "read_build"}}) ==
          Approx(5.6));
  REQUIRE(end.Get(metric::kSourceTransfers,
                  {{"database", "db"}, {"status", "OK"}}) == 2);
  REQUIRE(end.Get(metric::kSourceTransfers,
                  {{"database", "db"}, {"status", "CANCELLED"}}) == 0);
  REQUIRE(end.Get(metric::kSourceInterruptions, kDb) == 1);
  REQUIRE(end.Get(metric::kSourceLastSuccess, kDb) > 0);
  // A reported transfer that runs again from zero does not lower the total.
  state.transfers = {Running("a", 10)};
  REQUIRE(wire(state) == 560);
}

TEST_CASE("serve adds and removes series with its databases",
          "[tools][metrics]") {
  ServeOptions options;
  ServeMetrics metrics(&options, "127.0.0.1:7420");
  const auto text = [&](const ServerState& state) {
    return metrics.Collect(state).Text();
  };
  const std::string line = "sstferry_source_wire_bytes_total{database=\"db\"}";
  ServerState state;
  REQUIRE(text(state).find("\"db\"") == std::string::npos);
  state.databases.emplace_back();
  state.databases.back().name = "db";
  state.databases.back().directory = "/nowhere";
  REQUIRE(text(state).find(line + " 0\n") != std::string::npos);
  state.transfers = {Running("a", 100)};
  REQUIRE(text(state).find(line + " 100\n") != std::string::npos);
  state.databases.clear();  // removed during its transfer
  REQUIRE(text(state).find(line + " 100\n") != std::string::npos);
  metrics.Report(Running("a", 120));
  state.transfers.clear();
  REQUIRE(text(state).find("\"db\"") == std::string::npos);
}

TEST_CASE("A standby's metrics have its fault and its source's last answer",
          "[tools][metrics]") {
  const MetricLabels labels = {{"target", "/s"}};
  StandbyMetrics metrics("/s", TlsFiles());
  StandbyState state;
  state.cut_micros = 1'795'385'000'000'000;
  metrics.Take(state);
  REQUIRE(Count(metrics.Collect().Text(), "sstferry_standby_heard") == 0);
  REQUIRE(Count(metrics.Collect().Text(), "sstferry_standby_source_open") == 0);
  REQUIRE(metrics.Collect().Get(metric::kStandbyFault, labels) == 0);
  state.fault = "000012.sst is missing";
  metrics.Take(state);
  REQUIRE(metrics.Collect().Get(metric::kStandbyFault, labels) == 1);
  state.heard_micros = 1'795'385'083'500'000;
  for (const bool is_open : {true, false}) {
    state.source_process =
        is_open ? SourceProcess::kOpen : SourceProcess::kClosed;
    metrics.Take(state);
    const MetricSet set = metrics.Collect();
    REQUIRE(set.Get(metric::kStandbyHeard, labels) == Approx(1795385083.5));
    REQUIRE(set.Get(metric::kStandbySourceOpen, labels) == (is_open ? 1 : 0));
    REQUIRE(Has(metrics.FileText(),
                std::string("sstferry_standby_source_open{target=\"/s\"} ") +
                    (is_open ? "1" : "0")));
  }
}

TEST_CASE("A metrics file is replaced atomically and readable by others",
          "[tools][metrics]") {
  const ScratchDir dir;
  const std::string file = dir / "m.prom";
  REQUIRE(ReadMetricsFile(file).empty());
  const mode_t mask = umask(0077);
  const rocksdb::Status written = WriteMetricsFile(file, "one\n");
  umask(mask);
  REQUIRE_OK(written);
  REQUIRE(ReadMetricsFile(file) == "one\n");
  struct stat found{};
  REQUIRE(stat(file.c_str(), &found) == 0);
  REQUIRE((found.st_mode & 07777) == 0644);
  REQUIRE_OK(WriteMetricsFile(file, "two\n"));
  REQUIRE(ReadMetricsFile(file) == "two\n");
  const std::string large(3'000'000, 'x');  // of a mirror
  REQUIRE_OK(WriteMetricsFile(file, large));
  REQUIRE(ReadMetricsFile(file) == large);
  REQUIRE(std::distance(fs::directory_iterator(dir.path()), {}) == 1);

  REQUIRE(MessageOf(WriteMetricsFile(dir / "none/m.prom", "x"))
              .find("cannot create " + (dir / "none/m.prom")) !=
          std::string::npos);
  fs::create_directory(dir / "d.prom");
  REQUIRE_FALSE(WriteMetricsFile(dir / "d.prom", "x").ok());
  REQUIRE(ReadMetricsFile(dir / "d.prom").empty());
  REQUIRE(std::distance(fs::directory_iterator(dir.path()), {}) == 2);
}

TEST_CASE("The endpoint answers GET /metrics and nothing else",
          "[tools][metrics]") {
  std::unique_ptr<MetricsEndpoint> endpoint;
  REQUIRE_OK(StartEndpoint(HostPort{"127.0.0.1", 0}, &endpoint));
  const std::string url = endpoint->url();
  const std::string answer = Get(url);
  REQUIRE(answer.find("HTTP/1.1 200 OK\r\n") == 0);
  REQUIRE(answer.ends_with("\r\n\r\nanswer 1\n"));
  REQUIRE(Get(url, "/metrics?x=1").find("HTTP/1.1 200") == 0);
  REQUIRE(Get(url, "/").find("HTTP/1.1 404") == 0);
  REQUIRE(Get(url, "/metricsx").find("HTTP/1.1 404") == 0);
  REQUIRE(Ask(url,
              "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
              "0\r\n\r\n")
              .find("HTTP/1.1 405") == 0);
  // Host names other than this machine's are refused: DNS may point any name
  // at it.
  for (const char* host : {"evil.example", "evil.example:9420", "[::2]", ""}) {
    REQUIRE(Ask(url, "GET /metrics HTTP/1.1\r\nHost: " + std::string(host) +
                         "\r\n\r\n")
                .find("HTTP/1.1 403") == 0);
  }
  for (const char* host : {"LocalHost:9420", "127.0.0.1:1", "[::1]:9420"}) {
    REQUIRE(Ask(url, "GET /metrics HTTP/1.1\r\nHost: " + std::string(host) +
                         "\r\n\r\n")
                .find("HTTP/1.1 200") == 0);
  }
  REQUIRE(Ask(url, "GET /metrics HTTP/1.0\r\n\r\n").find(" 200 ") !=
          std::string::npos);
  // Not HTTP, a request that is too long, and one that announces a body.
  REQUIRE(Ask(url, "\x16\x03\x01 no HTTP\r\n\r\n").find("200") ==
          std::string::npos);
  REQUIRE(Get(url, "/" + std::string(20'000, 'a')).empty());
  REQUIRE(Ask(url, "GET /metrics HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n")
              .empty());
  REQUIRE(Get(url).find("HTTP/1.1 200") == 0);

  std::unique_ptr<MetricsEndpoint> second;
  const uint16_t port = static_cast<uint16_t>(
      std::stoi(url.substr(url.rfind(':') + 1)));
  REQUIRE(MessageOf(StartEndpoint(HostPort{"127.0.0.1", port}, &second))
              .find("cannot listen there") != std::string::npos);
}

TEST_CASE("The endpoint closes a ninth concurrent connection",
          "[tools][metrics]") {
  std::unique_ptr<MetricsEndpoint> endpoint;
  REQUIRE_OK(StartEndpoint(HostPort{"127.0.0.1", 0}, &endpoint));
  const std::string url = endpoint->url();
  const auto port = static_cast<uint16_t>(
      std::stoi(url.substr(url.rfind(':') + 1)));
  const auto begin = std::chrono::steady_clock::now();
  boost::asio::io_context context;
  std::vector<tcp::socket> open;
  for (int i = 0; i < 8; ++i) {
    open.emplace_back(context);
    open.back().connect({boost::asio::ip::make_address("127.0.0.1"), port});
  }
  const std::string ninth = Get(url);
  // After a long stall the endpoint may have closed the first eight already.
  if (std::chrono::steady_clock::now() - begin < std::chrono::seconds(4)) {
    REQUIRE(ninth.empty());
  }
  open.pop_back();
  // The endpoint notices the closed connection after a while.
  std::string answer;
  for (int i = 0; i < 1'000'000 && answer.empty(); ++i) {
    answer = Get(url);
  }
  REQUIRE(answer.find("HTTP/1.1 200") == 0);
}

// Asks over TLS with the certificate in `files` and returns the answer; empty
// if there was none.
std::string GetOverTls(const std::string& url, const TlsFiles& files) {
  const size_t port = url.rfind(':') + 1;
  std::unique_ptr<Dialer> dialer;
  REQUIRE_OK(MakeTlsDialer(
      {"127.0.0.1", static_cast<uint16_t>(std::stoi(url.substr(port)))}, files,
      &dialer));
  const WaitLimit limit = WaitLimit::Within(std::chrono::seconds(60));
  std::unique_ptr<Connection> connection;
  REQUIRE_OK(dialer->Dial(limit, &connection));
  std::string answer;
  if (connection->Handshake(limit).ok()) {
    const rocksdb::Slice request("GET /metrics HTTP/1.1\r\nHost: db1\r\n\r\n");
    REQUIRE_OK(connection->Write(&request, 1, limit));
    std::array<char, 4096> buffer{};
    size_t bytes = 0;
    while (connection->Read(buffer.data(), buffer.size(), limit, &bytes).ok() &&
           bytes > 0) {
      answer.append(buffer.data(), bytes);
    }
  }
  return answer;
}

TEST_CASE("Metrics on other than loopback need a certificate on both sides",
          "[tools][metrics][tls]") {
  const TestPki& pki = GoodPki();
  const ScratchDir dir;
  const TestCa other(dir.path(), "Another CA");
  MetricsArguments where;
  where.listen = HostPort{"0.0.0.0", 0};
  std::unique_ptr<MetricsEndpoint> endpoint;
  REQUIRE_OK(MetricsEndpoint::Start(
      where, pki.server, [] { return std::string("answer 1\n"); }, &endpoint));
  const std::string url = endpoint->url();
  REQUIRE(url.starts_with("https://0.0.0.0:"));
  const std::string answer = GetOverTls(url, pki.client);
  REQUIRE(answer.starts_with("HTTP/1.1 200 OK\r\n"));
  REQUIRE(answer.ends_with("\r\n\r\nanswer 1\n"));
  TlsFiles stranger = other.Issue({"stranger"});
  stranger.ca = pki.client.ca;
  REQUIRE(GetOverTls(url, stranger).empty());
  REQUIRE(Get(url).find("answer 1") == std::string::npos);  // plain HTTP

  // Reloaded files apply to new connections. Bad files change nothing.
  TlsFiles bad = pki.server;
  bad.cert = dir / "none.pem";
  REQUIRE(EndStateOf(endpoint->Reload(bad)) == EndState::kRefused);
  REQUIRE(GetOverTls(url, pki.client) == answer);
  TlsFiles renewed = pki.server;
  renewed.ca = stranger.ca = other.file();
  REQUIRE_OK(endpoint->Reload(renewed));
  REQUIRE(GetOverTls(url, pki.client).empty());

  // With `insecure` the endpoint answers without TLS, for any host name.
  where.insecure = true;
  std::unique_ptr<MetricsEndpoint> open;
  REQUIRE_OK(MetricsEndpoint::Start(
      where, pki.server, [] { return std::string("answer 1\n"); }, &open));
  REQUIRE(open->url().starts_with("http://0.0.0.0:"));
  REQUIRE(Ask(open->url(), "GET /metrics HTTP/1.1\r\nHost: db1:9420\r\n\r\n")
              .find("HTTP/1.1 200") == 0);
}

TEST_CASE("serve shows metrics over TLS, and when its certificate expires",
          "[tools][metrics][tls]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "db");
  const TestPki& pki = GoodPki();
  const TlsFiles files =
      pki.ca.Issue({"source", {"IP:127.0.0.1"}, -3600, 3 * 86400});
  const std::vector<std::string> words = {
      "--db",      "db=" + (dir / "db"), "--tls-cert", files.cert, "--tls-key",
      files.key,   "--tls-ca",           files.ca,     "--metrics",
      "0.0.0.0:0"};
  ServeProcess serve(words);
  REQUIRE(serve.process().WaitForErr("/metrics\n"));
  const std::string log = serve.process().err();
  INFO(log);
  REQUIRE(log.find("info --tls-cert ends on 20") != std::string::npos);
  REQUIRE(log.find(": expires on 20") != std::string::npos);
  const size_t begin = log.find("https://0.0.0.0:");
  REQUIRE(begin != std::string::npos);
  const std::string text = GetOverTls(
      log.substr(begin, log.find('\n', begin) - begin), pki.client);
  INFO(text);
  const CertificateEnds ends = EndsOfCertificates(files);
  const auto now = static_cast<uint64_t>(std::time(nullptr));
  REQUIRE(ends.cert_seconds > now + 3 * 86400 - 3600);
  REQUIRE(ends.cert_seconds <= now + 3 * 86400);
  REQUIRE(ends.ca_seconds > ends.cert_seconds);
  for (const auto& [name, seconds] :
       {std::pair("cert", ends.cert_seconds),
        std::pair("ca", ends.ca_seconds)}) {
    REQUIRE(Has(text, std::string("sstferry_tls_certificate_not_after_"
                                  "timestamp_seconds{certificate=\"") +
                          name + "\",listen=\"" + serve.address() + "\"} " +
                          std::to_string(seconds)));
  }

  std::vector<std::string> plain = {"serve",     "--db",
                                    words[1],    "--metrics",
                                    "0.0.0.0:0", "--listen",
                                    "127.0.0.1:0"};
  Process refused(Sstferry(plain));
  REQUIRE(refused.Wait() == 2);
  REQUIRE(refused.err().find("or --tls DIR (--metrics-insecure allows") !=
          std::string::npos);
}

TEST_CASE("A server's metrics file has the time when it was written",
          "[tools][metrics]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "db");
  const std::string file = dir / "m.prom";
  const std::string name = "sstferry_source_written_timestamp_seconds{";
  {
    ServeProcess serve({"--db", "db=" + (dir / "db"), "--metrics-file", file});
    const std::string first = ReadMetricsFile(file);
    REQUIRE(Count(first, name + "listen=\"" + serve.address() + "\"}") == 1);
    Process pull(Sstferry({"pull", serve.url(), dir / "t"}));
    REQUIRE(pull.Wait() == 0);
    REQUIRE(serve.process().WaitForErr(": OK, "));
    serve.process().Signal(SIGTERM);
    REQUIRE(serve.process().Wait() == 0);
  }
  const std::string last = ReadMetricsFile(file);
  INFO(last);
  REQUIRE(Has(last, "sstferry_source_transfers_total{database=\"db\",status="
                    "\"OK\"} 1"));
  REQUIRE(Count(last, name) == 1);

  Process nowhere(Sstferry({"serve", "--db", "db=" + (dir / "db"), "--listen",
                            "127.0.0.1:0", "--metrics-file",
                            dir / "none/m.prom"}));
  REQUIRE(nowhere.Wait() != 0);
  REQUIRE(nowhere.out().empty());
  REQUIRE(nowhere.err().find("--metrics-file: cannot create") !=
          std::string::npos);
}

TEST_CASE("A first pull that is killed leaves a metrics file without success",
          "[tools][metrics]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "db");
  const std::string file = dir / "m.prom";
  const std::string label = "{target=\"" + (dir / "t") + "\"}";
  Process pull(Sstferry({"swap", dir / "db", dir / "t", "--metrics-file", file,
                         "--max-rate", "1K", "--progress", "json",
                         "--progress-interval", "20ms"}));
  REQUIRE(pull.WaitForErr("\"transfer\""));
  pull.Signal(SIGKILL);
  REQUIRE(pull.Wait() == 128 + SIGKILL);
  const std::string text = ReadMetricsFile(file);
  INFO(text);
  REQUIRE(
      Has(text, "sstferry_replica_last_success_timestamp_seconds" + label +
                    " 0"));
  REQUIRE(Count(text, "sstferry_replica_snapshot_timestamp_seconds") == 0);
}

TEST_CASE("serve's metrics show the transfers that it served",
          "[tools][metrics]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "db");
  ServeProcess serve({"--db", "db=" + (dir / "db"), "--metrics",
                      "127.0.0.1:0"});
  REQUIRE(serve.process().WaitForErr("/metrics\n"));
  const std::string url = UrlIn(serve.process().err());
  REQUIRE(Get(url).find("sstferry_build_info{") != std::string::npos);
  Process pull(
      Sstferry({"pull", serve.url(), dir / "t", "--method", "ingest"}));
  REQUIRE(pull.Wait() == 0);
  REQUIRE(serve.process().WaitForErr(": OK, "));
  const std::string text = Get(url);
  INFO(text);
  REQUIRE(Has(text, "sstferry_source_transfers_total{database=\"db\",status="
                    "\"OK\"} 1"));
  REQUIRE(Has(text, "sstferry_source_entries_total{database=\"db\"} 2000"));
  REQUIRE(Has(text, "sstferry_source_snapshots{database=\"db\"} 0"));
  REQUIRE(Has(text, "sstferry_source_min_free_ratio{database=\"db\"} 0.05"));
  // Only end states that occurred have a series, and OK.
  REQUIRE(Count(text, "sstferry_source_transfers_total{") == 1);
  REQUIRE(text.find("sstferry_source_written_timestamp") == std::string::npos);
  REQUIRE(text.find("sstferry_source_disk_free_bytes{database=\"db\"} ") !=
          std::string::npos);
}

TEST_CASE("Unknown options are reported with their values and counted",
          "[tools][metrics]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "db");
  const std::string method = GENERATE(as<std::string>(), "clone", "ingest");
  INFO(method);
  const std::string metric = "sstferry_source_unknown_options{database=\"db\"}";
  const std::string said = "'shape_of_a_fork' = 'round' (the database)";
  ServeProcess serve({"--db", "db=" + (dir / "db"), "--metrics",
                      "127.0.0.1:0"});
  REQUIRE(serve.process().WaitForErr("/metrics\n"));
  const std::string url = UrlIn(serve.process().err());
  REQUIRE(Count(Get(url), metric) == 0);  // not read yet
  const auto pull = [&](const std::string& target) {
    const std::string report = OutputOf(
        {"pull", serve.url(), dir / target, "--method", method, "--json"}, 0);
    INFO(report);
    // The source counts the options at the end of a transfer.
    const std::string field = "\"transfer_id\": \"";
    const size_t id = report.find(field);
    REQUIRE(id != std::string::npos);
    REQUIRE(serve.process().WaitForErr(
        "transfer " + report.substr(id + field.size(), 32) + " of db to "));
    return report.find(said) != std::string::npos;
  };
  REQUIRE(!pull("a"));
  REQUIRE(Has(Get(url), metric + " 0"));
  test::EditOptions(dir / "db", "[DBOptions]\n",
                    "[DBOptions]\n  shape_of_a_fork=round\n");
  REQUIRE(pull("b"));
  REQUIRE(serve.process().WaitForErr(" warning db: OPTIONS: this sstferry"));
  INFO(serve.process().err());
  REQUIRE(serve.process().err().find(said) != std::string::npos);
  REQUIRE(Has(Get(url), metric + " 1"));
}

TEST_CASE(
    "A failed pull keeps the time of the last success in its metrics file",
    "[tools][metrics]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "db");
  const std::string file = dir / "m.prom";
  const std::string label = "{target=\"" + (dir / "t") + "\"}";
  const auto pull = [&](const std::string& source) {
    Process process(Sstferry({"refresh", source, dir / "t", "--method",
                              "ingest", "--metrics-file", file}));
    const int code = process.Wait();
    INFO(process.err());
    return code;
  };
  REQUIRE(pull(dir / "db") == 0);
  const std::string good = ReadMetricsFile(file);
  INFO(good);
  const auto line_of = [](const std::string& text, const std::string& name) {
    const size_t begin = text.find("\n" + name + "{");
    REQUIRE(begin != std::string::npos);
    return text.substr(begin + 1, text.find('\n', begin + 1) - begin - 1);
  };
  REQUIRE(Has(good, "sstferry_replica_runs_total{status=\"OK\",target=\"" +
                        (dir / "t") + "\"} 1"));
  REQUIRE(Has(good, "sstferry_replica_consecutive_failures" + label + " 0"));
  REQUIRE(Count(good, "sstferry_replica_runs_total{") == 1);
  REQUIRE(Count(good, "sstferry_replica_disk_free_bytes{") == 1);
  REQUIRE(Has(good, "sstferry_replica_last_run_entries" + label + " 2000"));
  REQUIRE(good.find("sstferry_replica_last_run_bytes{kind=\"rebuilt\"") !=
          std::string::npos);

  REQUIRE(pull(dir / "none") != 0);
  REQUIRE(pull(dir / "none") != 0);
  const std::string bad = ReadMetricsFile(file);
  INFO(bad);
  REQUIRE(Has(bad, "sstferry_replica_consecutive_failures" + label + " 2"));
  REQUIRE(Has(bad, "sstferry_replica_runs_total{status=\"OK\",target=\"" +
                       (dir / "t") + "\"} 1"));
  REQUIRE(Has(bad, "sstferry_replica_last_run_entries" + label + " 0"));
  REQUIRE(Has(bad, "sstferry_replica_runs_total{status=\"SOURCE_ERROR\","
                   "target=\"" + (dir / "t") + "\"} 2"));
  for (const char* name :
       {"sstferry_replica_last_success_timestamp_seconds",
        "sstferry_replica_snapshot_timestamp_seconds"}) {
    REQUIRE(line_of(bad, name) == line_of(good, name));
  }

  // A new metrics file of an existing replica has its snapshot time.
  fs::remove(file);
  REQUIRE(pull(dir / "none") != 0);
  REQUIRE(line_of(ReadMetricsFile(file),
                  "sstferry_replica_snapshot_timestamp_seconds") ==
          line_of(good, "sstferry_replica_snapshot_timestamp_seconds"));
  REQUIRE(pull(dir / "db") == 0);
  REQUIRE(Has(ReadMetricsFile(file),
              "sstferry_replica_consecutive_failures" + label + " 0"));
}

TEST_CASE("pull succeeds without its metrics file, serve fails without its "
          "metrics port",
          "[tools][metrics]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "db");
  std::unique_ptr<MetricsEndpoint> taken;
  REQUIRE_OK(StartEndpoint(HostPort{"127.0.0.1", 0}, &taken));
  const std::string url = taken->url();
  const std::string port =
      url.substr(url.rfind(':') + 1,
                 url.rfind('/') - url.rfind(':') - 1);
  Process pull(Sstferry({"pull", dir / "db", dir / "t", "--metrics-file",
                         dir / "none/m.prom"}));
  REQUIRE(pull.Wait() == 0);
  INFO(pull.err());
  REQUIRE(pull.err().find("error --metrics-file: cannot create") !=
          std::string::npos);

  Process serve(Sstferry({"serve", "--db", "db=" + (dir / "db"), "--listen",
                          "127.0.0.1:0", "--metrics", "127.0.0.1:" + port}));
  REQUIRE(serve.Wait() == 1);
  REQUIRE(serve.out().empty());
  REQUIRE(serve.err().find("REFUSED: --metrics 127.0.0.1:" + port) !=
          std::string::npos);
}

}  // namespace sstferry::metrics_test
