#include "tools/sstferry/metrics_endpoint.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <sstream>
#include <system_error>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include "format/end_state.h"

namespace sstferry {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using rocksdb::Slice;
using rocksdb::Status;

constexpr size_t kMostConnections = 8;
constexpr uint32_t kMaxHeaderBytes = 8 * 1024;
constexpr size_t kReadBytes = 4 * 1024;
constexpr std::chrono::seconds kMaxRequestTime{5};

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return text;
}

using Parser = http::request_parser<http::string_body>;

// Reads one HTTP request. Returns false if no request arrives in time or the
// request is malformed.
bool ReadRequest(Connection* connection, const WaitLimit& limit,
                 Parser* parser) {
  parser->header_limit(kMaxHeaderBytes);
  parser->body_limit(kMaxHeaderBytes);
  parser->eager(true);
  beast::flat_buffer buffer(2 * kMaxHeaderBytes);
  while (!parser->is_done()) {
    if (buffer.size() + kReadBytes > buffer.max_size()) {
      return false;
    }
    size_t bytes = 0;
    const auto room = buffer.prepare(kReadBytes);
    if (!connection
             ->Read(static_cast<char*>(room.data()), kReadBytes, limit, &bytes)
             .ok() ||
        bytes == 0) {
      return false;
    }
    buffer.commit(bytes);
    beast::error_code error;
    buffer.consume(parser->put(buffer.data(), error));
    if (error && error != http::error::need_more) {
      return false;
    }
  }
  return true;
}

}  // namespace

Status MetricsEndpoint::Listen(const MetricsArguments& where,
                               const TlsFiles& tls) {
  const HostPort& listen = *where.listen;
  const bool is_local = IsLoopback(listen.host);
  const bool is_secure = !is_local && !where.insecure;
  const Status status = is_secure
                            ? ListenTls(listen, tls, &listener_, &reload_)
                            : ListenTcp(listen, &listener_);
  if (!status.ok()) {
    return MakeStatus(EndState::kRefused,
                      "--metrics " + ToString(listen) +
                          ": cannot listen there: " + MessageOf(status));
  }
  HostPort bound;
  RETURN_IF_ERROR(ParseHostPort(listener_->address(), &bound));
  // Checks the address again: a name such as "localhost" may resolve to another
  // address than before.
  if (is_local && !IsLoopback(bound.host)) {
    return MakeStatus(EndState::kRefused,
                      "--metrics " + ToString(listen) +
                          ": expected a loopback address, found " + bound.host);
  }
  if (is_local) {
    hosts_ = {"localhost", "127.0.0.1", "::1", Lower(bound.host),
              Lower(listen.host)};
  }
  url_ = (is_secure ? "https://" : "http://") + listener_->address() +
         "/metrics";
  return Status::OK();
}

Status MetricsEndpoint::Start(const MetricsArguments& where,
                              const TlsFiles& tls,
                              std::function<std::string()> text,
                              std::unique_ptr<MetricsEndpoint>* endpoint) {
  std::unique_ptr<MetricsEndpoint> made(new MetricsEndpoint(std::move(text)));
  RETURN_IF_ERROR(made->Listen(where, tls));
  made->accepting_ = std::thread(&MetricsEndpoint::Accept, made.get());
  *endpoint = std::move(made);
  return Status::OK();
}

MetricsEndpoint::~MetricsEndpoint() {
  if (!accepting_.joinable()) {
    return;  // Start() failed
  }
  listener_->Close();
  accepting_.join();
  for (Session& session : sessions_) {
    session.connection->Close();
    session.thread.join();
  }
}

Status MetricsEndpoint::Reload(const TlsFiles& tls) {
  return reload_ ? reload_(tls) : Status::OK();
}

void MetricsEndpoint::Accept() {
  std::unique_ptr<Connection> connection;
  while (listener_->Accept(&connection).ok()) {
    JoinEnded();
    // If there are too many connections, closes the new one below.
    if (sessions_.size() < kMostConnections) {
      Session& session = sessions_.emplace_back();
      session.connection = std::move(connection);
      try {
        session.thread = std::thread([this, &session] {
          Serve(session.connection.get());
          session.connection->Close();
          session.ended = true;
        });
      } catch (const std::system_error&) {
        sessions_.pop_back();  // no thread for it; closes the connection
      }
    }
    connection.reset();
  }
}

void MetricsEndpoint::JoinEnded() {
  sessions_.remove_if([](Session& session) {
    if (session.ended) {
      session.thread.join();
      return true;
    }
    return false;
  });
}

void MetricsEndpoint::Serve(Connection* connection) const {
  const WaitLimit limit = WaitLimit::Within(kMaxRequestTime);
  Parser parser;
  if (!connection->Handshake(limit).ok() ||
      !ReadRequest(connection, limit, &parser)) {
    return;
  }
  const auto& request = parser.get();
  const auto host = request.find(http::field::host);
  const std::string named(host == request.end() ? "" : host->value());
  const std::string answer =
      AnswerTo(std::string(request.method_string()),
               std::string(request.target()),
               host == request.end() ? nullptr : &named, request.version());
  const Slice part(answer);
  // Ignores errors, because the client may have disconnected.
  connection->Write(&part, 1, limit).PermitUncheckedError();
}

// Returns true if the Host header of a request has a name of this machine.
// Without this check, a web page in a browser on this machine could read the
// metrics. Its owner would let the host name of the page resolve to this
// machine (DNS rebinding).
bool MetricsEndpoint::IsForUs(const std::string* host) const {
  if (hosts_.empty() || host == nullptr) {
    return true;  // only HTTP/1.0 has no Host, and no browser uses HTTP/1.0
  }
  const size_t end = host->find(host->starts_with('[') ? ']' : ':');
  std::string name = host->substr(0, end);
  name.erase(0, name.starts_with('[') ? 1 : 0);
  return hosts_.contains(Lower(name));
}

std::string MetricsEndpoint::AnswerTo(const std::string& method,
                                      const std::string& target,
                                      const std::string* host,
                                      unsigned version) const {
  const bool is_get = method == "GET";
  http::response<http::string_body> answer;
  answer.version(version);
  answer.keep_alive(false);
  answer.set(http::field::content_type, "text/plain; charset=utf-8");
  if (!IsForUs(host)) {
    answer.result(http::status::forbidden);
    answer.body() = "Host: expected an address of this machine\n";
  } else if (is_get &&
             (target == "/metrics" || target.starts_with("/metrics?"))) {
    answer.set(http::field::content_type,
               "text/plain; version=0.0.4; charset=utf-8");
    answer.body() = text_();
  } else {
    answer.result(is_get ? http::status::not_found
                         : http::status::method_not_allowed);
    answer.set(http::field::allow, "GET");
    answer.body() = "sstferry shows its metrics at /metrics\n";
  }
  answer.prepare_payload();
  std::ostringstream text;
  text << answer;
  return text.str();
}

Status ShowMetrics(const MetricsArguments& where, const TlsFiles& tls,
                   std::function<std::string()> text,
                   std::function<std::string()> file_text, Console* console,
                   ShownMetrics* shown) {
  if (where.listen) {
    RETURN_IF_ERROR(MetricsEndpoint::Start(where, tls, std::move(text),
                                           &shown->endpoint));
    console->Log(LogLevel::kInfo, "metrics at " + shown->endpoint->url());
  }
  if (!where.file.empty()) {
    RETURN_IF_ERROR(WriteMetricsFile(where.file, file_text()));
    shown->file = std::make_unique<MetricsFileWriter>(
        where.file, std::move(file_text), console->log_function());
  }
  return Status::OK();
}

}  // namespace sstferry
