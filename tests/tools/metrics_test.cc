// Metrics: their values and text, the file between runs, HTTP, and the two
// commands that show them.
#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/serve_process.h"
#include "tools/sstferry/metric_set.h"
#include "tools/sstferry/metrics_endpoint.h"
#include "tools/sstferry/metrics_file.h"
#include "tools/sstferry/serve_metrics.h"

namespace sstferry {
namespace {

namespace fs = std::filesystem;
using boost::asio::ip::tcp;

// A whole answer; empty: the connection was closed without one.
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

bool Has(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
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

TEST_CASE("Metrics that last come back from their text, those of others not",
          "[tools][metrics]") {
  const std::string odd = "/data/a \"b\\c";
  MetricSet before;
  before.Set(metric::kPullRetries, {{"target", odd}}, 3);
  before.Set(metric::kPullRetries, {{"target", "/other"}}, 5);
  before.Set(metric::kPullDuration, {{"target", odd}}, 7);
  before.Set(metric::kPullLastEnd, {{"target", odd}}, 1795385083);
  MetricSet after;
  after.Restore(before.Text(), odd);
  REQUIRE(after.Get(metric::kPullRetries, {{"target", odd}}) == 3);
  REQUIRE(after.Get(metric::kPullLastEnd, {{"target", odd}}) == 1795385083);
  REQUIRE(after.Get(metric::kPullRetries, {{"target", "/other"}}) == 0);
  REQUIRE(after.Get(metric::kPullDuration, {{"target", odd}}) == 0);
}

TEST_CASE("What is no series of this program is left out of metrics",
          "[tools][metrics]") {
  const std::string name = "sstferry_pull_retries_total";
  for (const std::string& line :
       {std::string("\n"), std::string("# x"), name, name + "{",
        name + "{target", name + "{target=\"/t\"", name + "{target=\"/t\"}",
        name + "{target=\"/t\"} ", name + "{target=\"/t\"} -1",
        name + "{target=\"/t\"} nan", name + "{target=\"/t\"} 1 x",
        name + "{target=\"/t\\", std::string("other_total{target=\"/t\"} 1"),
        std::string("\0{", 2)}) {
    INFO(line);
    MetricSet set;
    set.Restore(line, "/t");
    REQUIRE(set.Get(metric::kPullRetries, {{"target", "/t"}}) == 0);
    REQUIRE(set.Text() == MetricSet().Text());
  }
}

TEST_CASE("serve's counters grow while a transfer runs and count it once",
          "[tools][metrics]") {
  ServeOptions options;
  options.databases.emplace_back();
  options.databases.back().name = "db";
  options.databases.back().directory = "/nowhere";
  ServeMetrics metrics(&options);
  const auto wire = [&](const ServerState& state) {
    return metrics.Collect(state).Get(metric::kServeWireBytes, kDb);
  };
  ServerState state;
  REQUIRE(metrics.Collect(state).Text().find(
              "sstferry_serve_wire_bytes_total{database=\"db\"} 0") !=
          std::string::npos);
  state.transfers = {Running("a", 100), Running("b", 50)};
  REQUIRE(wire(state) == 150);
  REQUIRE(metrics.Collect(state).Get(metric::kServeActive, kDb) == 2);
  state.transfers = {Running("a", 300)};
  REQUIRE(wire(state) == 350);  // b is neither running nor reported yet

  TransferReport left = Running("a", 400);
  left.kept_for = std::chrono::seconds(60);
  left.status = MakeStatus(EndState::kCancelled, "x");
  metrics.Report(left);
  REQUIRE(wire({}) == 450);
  metrics.Report(Running("b", 60));
  metrics.Report(Running("a", 500));
  const MetricSet end = metrics.Collect({});
  REQUIRE(end.Get(metric::kServeWireBytes, kDb) == 560);
  REQUIRE(end.Get(metric::kServeEntries, kDb) == 56);
  REQUIRE(end.Get(metric::kServeStages,
                  {{"database", "db"}, {"stage", "read_build"}}) ==
          Approx(5.6));
  REQUIRE(end.Get(metric::kServeTransfers,
                  {{"database", "db"}, {"status", "OK"}}) == 2);
  REQUIRE(end.Get(metric::kServeTransfers,
                  {{"database", "db"}, {"status", "CANCELLED"}}) == 0);
  REQUIRE(end.Get(metric::kServeInterruptions, kDb) == 1);
  REQUIRE(end.Get(metric::kServeLastSuccess, kDb) > 0);
  // One that is told again, and began to count anew, counts no less.
  state.transfers = {Running("a", 10)};
  REQUIRE(wire(state) == 560);
}

TEST_CASE("A metrics file is replaced as a whole, and others may read it",
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
  REQUIRE_OK(MetricsEndpoint::Start(
      {"127.0.0.1", 0}, [] { return std::string("answer 1\n"); }, &endpoint));
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
  // A name that somebody made mean this machine, and those that do.
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
  // No request, one that is too long, and a body that is announced as such.
  REQUIRE(Ask(url, "\x16\x03\x01 no HTTP\r\n\r\n").find("200") ==
          std::string::npos);
  REQUIRE(Get(url, "/" + std::string(20'000, 'a')).empty());
  REQUIRE(Ask(url, "GET /metrics HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n")
              .empty());
  REQUIRE(Get(url).find("HTTP/1.1 200") == 0);

  std::unique_ptr<MetricsEndpoint> second;
  const uint16_t port = static_cast<uint16_t>(
      std::stoi(url.substr(url.rfind(':') + 1)));
  REQUIRE(MessageOf(MetricsEndpoint::Start({"127.0.0.1", port},
                                           [] { return std::string(); },
                                           &second))
              .find("cannot listen there") != std::string::npos);
}

TEST_CASE("Nine connections to the endpoint at once are one too many",
          "[tools][metrics]") {
  std::unique_ptr<MetricsEndpoint> endpoint;
  REQUIRE_OK(MetricsEndpoint::Start(
      {"127.0.0.1", 0}, [] { return std::string("answer 1\n"); }, &endpoint));
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
  // On a machine that stood still the endpoint has given up the first eight.
  if (std::chrono::steady_clock::now() - begin < std::chrono::seconds(4)) {
    REQUIRE(ninth.empty());
  }
  open.pop_back();
  // The endpoint notices by and by.
  std::string answer;
  for (int i = 0; i < 1'000'000 && answer.empty(); ++i) {
    answer = Get(url);
  }
  REQUIRE(answer.find("HTTP/1.1 200") == 0);
}

TEST_CASE("serve shows what it sent", "[tools][metrics]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "db");
  ServeProcess serve({"--db", "db=" + (dir / "db"), "--metrics",
                      "127.0.0.1:0"});
  REQUIRE(serve.process().WaitForErr("/metrics\n"));
  const std::string url = UrlIn(serve.process().err());
  REQUIRE(Get(url).find("sstferry_build_info{") != std::string::npos);
  Process pull(Sstferry({"pull", serve.url(), dir / "t"}));
  REQUIRE(pull.Wait() == 0);
  REQUIRE(serve.process().WaitForErr(": OK, "));
  const std::string text = Get(url);
  INFO(text);
  REQUIRE(Has(text, "sstferry_serve_transfers_total{database=\"db\",status="
                    "\"OK\"} 1"));
  REQUIRE(Has(text, "sstferry_serve_entries_total{database=\"db\"} 2000"));
  REQUIRE(Has(text, "sstferry_serve_snapshots{database=\"db\"} 0"));
  REQUIRE(Has(text, "sstferry_serve_min_free_ratio 0.05"));
  REQUIRE(text.find("sstferry_serve_disk_free_bytes{database=\"db\"} ") !=
          std::string::npos);
}

TEST_CASE("A pull that fails keeps in its metrics file when one succeeded",
          "[tools][metrics]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "db");
  const std::string file = dir / "m.prom";
  const std::string label = "{target=\"" + (dir / "t") + "\"}";
  const auto pull = [&](const std::string& source) {
    Process process(
        Sstferry({"refresh", source, dir / "t", "--metrics-file", file}));
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
  REQUIRE(Has(good, "sstferry_pull_runs_total{status=\"OK\",target=\"" +
                        (dir / "t") + "\"} 1"));
  REQUIRE(Has(good, "sstferry_pull_consecutive_failures" + label + " 0"));
  REQUIRE(Has(good, "sstferry_pull_running" + label + " 0"));
  REQUIRE(Has(good, "sstferry_pull_entries" + label + " 2000"));
  REQUIRE(good.find("sstferry_pull_bytes{kind=\"rebuilt\"") !=
          std::string::npos);

  REQUIRE(pull(dir / "none") != 0);
  REQUIRE(pull(dir / "none") != 0);
  const std::string bad = ReadMetricsFile(file);
  INFO(bad);
  REQUIRE(Has(bad, "sstferry_pull_consecutive_failures" + label + " 2"));
  REQUIRE(Has(bad, "sstferry_pull_runs_total{status=\"OK\",target=\"" +
                       (dir / "t") + "\"} 1"));
  REQUIRE(Has(bad, "sstferry_pull_entries" + label + " 0"));
  for (const char* name :
       {"sstferry_pull_last_success_timestamp_seconds",
        "sstferry_pull_replica_snapshot_timestamp_seconds"}) {
    REQUIRE(line_of(bad, name) == line_of(good, name));
  }

  // A new file of a replica that is there knows how old it is.
  fs::remove(file);
  REQUIRE(pull(dir / "none") != 0);
  REQUIRE(line_of(ReadMetricsFile(file),
                  "sstferry_pull_replica_snapshot_timestamp_seconds") ==
          line_of(good, "sstferry_pull_replica_snapshot_timestamp_seconds"));
  REQUIRE(pull(dir / "db") == 0);
  REQUIRE(Has(ReadMetricsFile(file),
              "sstferry_pull_consecutive_failures" + label + " 0"));
}

TEST_CASE("A pull whose metrics nobody can have still pulls",
          "[tools][metrics]") {
  const ScratchDir dir;
  MakeSampleDatabase(dir / "db");
  std::unique_ptr<MetricsEndpoint> taken;
  REQUIRE_OK(MetricsEndpoint::Start({"127.0.0.1", 0},
                                    [] { return std::string(); }, &taken));
  const std::string url = taken->url();
  const std::string port =
      url.substr(url.rfind(':') + 1,
                 url.rfind('/') - url.rfind(':') - 1);
  Process pull(Sstferry({"pull", dir / "db", dir / "t", "--metrics",
                         "127.0.0.1:" + port, "--metrics-file",
                         dir / "none/m.prom"}));
  REQUIRE(pull.Wait() == 0);
  INFO(pull.err());
  REQUIRE(pull.err().find("error --metrics 127.0.0.1:" + port) !=
          std::string::npos);
  REQUIRE(pull.err().find("error --metrics-file: cannot create") !=
          std::string::npos);

  Process serve(Sstferry({"serve", "--db", "db=" + (dir / "db"), "--listen",
                          "127.0.0.1:0", "--metrics", "127.0.0.1:" + port}));
  REQUIRE(serve.Wait() == 1);
  REQUIRE(serve.out().empty());
  REQUIRE(serve.err().find("REFUSED: --metrics 127.0.0.1:" + port) !=
          std::string::npos);
}

}  // namespace sstferry
