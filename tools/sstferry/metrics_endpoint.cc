#include "tools/sstferry/metrics_endpoint.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "format/end_state.h"
#include "format/printable.h"

namespace sstferry {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using boost::asio::ip::tcp;
using rocksdb::Status;
using Text = std::function<std::string()>;

constexpr int kMaxConnections = 8;
constexpr uint32_t kMaxHeaderBytes = 8 * 1024;
constexpr std::chrono::seconds kMaxRequestTime{5};
constexpr std::chrono::milliseconds kPauseAfterError{200};

// One connection: one request, one answer. Owned by its pending call.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, const Text& text,
          const std::set<std::string>& hosts, int* connections)
      : stream_(std::move(socket)),
        text_(text),
        hosts_(hosts),
        connections_(connections) {
    ++*connections_;
    parser_.header_limit(kMaxHeaderBytes);
    parser_.body_limit(kMaxHeaderBytes);
  }
  ~Session() { --*connections_; }

  void Run() {
    stream_.expires_after(kMaxRequestTime);
    http::async_read(stream_, buffer_, parser_,
                     [self = shared_from_this()](beast::error_code error,
                                                 std::size_t) {
                       if (!error) {
                         self->Answer();
                       }
                     });
  }

 private:
  // A web page whose name was made to mean this machine says that name.
  bool IsForUs(const http::request<http::string_body>& request) const {
    const auto field = request.find(http::field::host);
    if (field == request.end()) {
      return true;  // HTTP/1.0, which no browser speaks
    }
    std::string host(field->value());
    const size_t end = host.find(host.starts_with('[') ? ']' : ':');
    host = host.substr(0, end);
    host.erase(0, host.starts_with('[') ? 1 : 0);
    std::transform(host.begin(), host.end(), host.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    return hosts_.count(host) > 0;
  }

  void Answer() {
    const auto& request = parser_.get();
    const bool is_get = request.method() == http::verb::get;
    const bool found =
        request.target() == "/metrics" ||
        request.target().substr(0, 9) == beast::string_view("/metrics?");
    answer_.version(request.version());
    answer_.keep_alive(false);
    answer_.set(http::field::content_type, "text/plain; charset=utf-8");
    if (!IsForUs(request)) {
      answer_.result(http::status::forbidden);
      answer_.body() = "Host: expected an address of this machine\n";
    } else if (is_get && found) {
      answer_.set(http::field::content_type,
                  "text/plain; version=0.0.4; charset=utf-8");
      answer_.body() = text_();
    } else {
      answer_.result(is_get ? http::status::not_found
                            : http::status::method_not_allowed);
      answer_.set(http::field::allow, "GET");
      answer_.body() = "sstferry shows its metrics at /metrics\n";
    }
    answer_.prepare_payload();
    http::async_write(stream_, answer_,
                      [self = shared_from_this()](beast::error_code error,
                                                  std::size_t) {
                        self->stream_.socket().shutdown(
                            tcp::socket::shutdown_send, error);
                      });
  }

  beast::tcp_stream stream_;
  const Text& text_;
  const std::set<std::string>& hosts_;
  int* const connections_;
  beast::flat_buffer buffer_{2 * kMaxHeaderBytes};
  http::request_parser<http::string_body> parser_;
  http::response<http::string_body> answer_;
};

}  // namespace

struct MetricsEndpoint::Server {
  explicit Server(Text metrics) : text(std::move(metrics)) {}

  Status Listen(const HostPort& listen) {
    beast::error_code error;
    tcp::resolver resolver(context);
    const auto found = resolver.resolve(
        listen.host, std::to_string(listen.port), error);
    const tcp::endpoint where =
        error ? tcp::endpoint() : found.begin()->endpoint();
    // A name may mean another address by now.
    if (!error && !where.address().is_loopback()) {
      return MakeStatus(EndState::kRefused,
                        "--metrics " + ToString(listen) +
                            ": expected an address of this machine only, "
                            "found " + where.address().to_string());
    }
    if (!error) {
      acceptor.open(where.protocol(), error);
    }
    if (!error) {
      acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    }
    if (!error) {
      acceptor.bind(where, error);
    }
    if (!error) {
      acceptor.listen(kMaxConnections, error);
    }
    if (error) {
      return MakeStatus(EndState::kRefused,
                        "--metrics " + ToString(listen) +
                            ": cannot listen there: " + error.message());
    }
    hosts.insert(where.address().to_string());
    std::string named = listen.host;
    std::transform(named.begin(), named.end(), named.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    hosts.insert(named);
    url = "http://" +
          ToString({where.address().to_string(),
                    acceptor.local_endpoint(error).port()}) +
          "/metrics";
    return Status::OK();
  }

  void Accept() {
    acceptor.async_accept([this](beast::error_code error, tcp::socket socket) {
      if (error) {
        AcceptLater();
        return;
      }
      // One over the limit is closed as it goes out of scope.
      if (connections < kMaxConnections) {
        std::make_shared<Session>(std::move(socket), text, hosts, &connections)
            ->Run();
      }
      Accept();
    });
  }

  // Without descriptors every call would fail at once.
  void AcceptLater() {
    timer.expires_after(kPauseAfterError);
    timer.async_wait([this](beast::error_code error) {
      if (!error) {
        Accept();
      }
    });
  }

  const Text text;
  std::string url;
  // Names by which this machine is asked.
  std::set<std::string> hosts = {"localhost", "127.0.0.1", "::1"};
  int connections = 0;  // the thread's
  boost::asio::io_context context{1};
  tcp::acceptor acceptor{context};
  boost::asio::steady_timer timer{context};
  std::thread thread;
};

MetricsEndpoint::MetricsEndpoint(std::unique_ptr<Server> server)
    : server_(std::move(server)) {}

MetricsEndpoint::~MetricsEndpoint() {
  server_->context.stop();
  server_->thread.join();
}

const std::string& MetricsEndpoint::url() const { return server_->url; }

Status MetricsEndpoint::Start(const HostPort& listen, Text text,
                              std::unique_ptr<MetricsEndpoint>* endpoint) {
  auto server = std::make_unique<Server>(std::move(text));
  RETURN_IF_ERROR(server->Listen(listen));
  server->Accept();
  Server* const running = server.get();
  server->thread = std::thread([running] { running->context.run(); });
  endpoint->reset(new MetricsEndpoint(std::move(server)));
  return Status::OK();
}

}  // namespace sstferry
