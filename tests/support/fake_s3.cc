#include "tests/support/fake_s3.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "format/hex.h"
#include "pipeline/base/sha256.h"
#include "pipeline/archive/sigv4.h"

namespace sstferry {
namespace {

std::string Lower(std::string text) {
  for (char& c : text) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return text;
}

std::string Decoded(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out += static_cast<char>(HexByte(text[i + 1], text[i + 2]).value_or(0));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string DateNow(int64_t ahead_seconds) {
  const std::time_t now = std::time(nullptr) + ahead_seconds;
  std::tm utc = {};
  gmtime_r(&now, &utc);
  char text[64];
  std::strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &utc);
  return text;
}

// Appends received bytes to *buffer. Returns false at the end of the stream and
// after an error.
bool ReceiveMore(int fd, std::string* buffer) {
  char bytes[64 << 10];
  const ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
  if (n > 0) {
    buffer->append(bytes, static_cast<size_t>(n));
  }
  return n > 0;
}

bool SendAll(int fd, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n =
        send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (n <= 0) {
      return false;
    }
    at += static_cast<size_t>(n);
  }
  return true;
}

bool ReceiveRequest(int fd, std::string* buffer, FakeRequest* request) {
  size_t end;
  while ((end = buffer->find("\r\n\r\n")) == std::string::npos) {
    if (!ReceiveMore(fd, buffer)) {
      return false;
    }
  }
  const std::string head = buffer->substr(0, end + 2);
  buffer->erase(0, end + 4);
  const size_t first = head.find(' ');
  const size_t second = head.find(' ', first + 1);
  request->method = head.substr(0, first);
  std::string target = head.substr(first + 1, second - first - 1);
  const size_t question = target.find('?');
  if (question != std::string::npos) {
    std::string rest = target.substr(question + 1) + "&";
    target.resize(question);
    for (size_t at = 0; at < rest.size();) {
      const size_t next = rest.find('&', at);
      const std::string pair = rest.substr(at, next - at);
      const size_t equals = pair.find('=');
      request->query[pair.substr(0, equals)] =
          equals == std::string::npos ? "" : Decoded(pair.substr(equals + 1));
      at = next + 1;
    }
  }
  request->path = target;
  for (size_t at = head.find("\r\n") + 2; at < head.size();) {
    const size_t next = head.find("\r\n", at);
    const size_t colon = head.find(':', at);
    const size_t value = head.find_first_not_of(' ', colon + 1);
    request->headers[Lower(head.substr(at, colon - at))] =
        head.substr(value, next - value);
    at = next + 2;
  }
  const auto found = request->headers.find("content-length");
  const size_t length =
      found == request->headers.end() ? 0 : std::stoull(found->second);
  if (request->headers.count("expect") != 0 &&
      !SendAll(fd, "HTTP/1.1 100 Continue\r\n\r\n")) {
    return false;
  }
  while (buffer->size() < length) {
    if (!ReceiveMore(fd, buffer)) {
      return false;
    }
  }
  request->body = buffer->substr(0, length);
  buffer->erase(0, length);
  return true;
}

std::string ETagOf(const std::string& bytes) {
  return "\"" + ToHex(Sha256Of(bytes)).substr(0, 32) + "\"";
}

}  // namespace

FakeAnswer FakeError(int status, const std::string& code) {
  FakeAnswer answer;
  answer.status = status;
  answer.body = "<?xml version=\"1.0\"?><Error><Code>" + code +
                "</Code><Message>as told</Message></Error>";
  return answer;
}

FakeS3::FakeS3(Before before, After after)
    : before_(std::move(before)), after_(std::move(after)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener_, 128) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) !=
          0) {
    std::perror("fake S3");
    std::abort();
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

FakeS3::~FakeS3() {
  ending_ = true;
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  close(listener_);
  std::vector<std::thread> threads;
  {
    std::lock_guard<std::mutex> lock(mu_);
    for (const int fd : open_) {
      shutdown(fd, SHUT_RDWR);
    }
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

std::string FakeS3::url() const {
  return "http://127.0.0.1:" + std::to_string(port_);
}

std::map<std::string, std::string> FakeS3::Objects() const {
  std::lock_guard<std::mutex> lock(mu_);
  return objects_;
}

void FakeS3::Set(const std::string& path, const std::string& bytes) {
  std::lock_guard<std::mutex> lock(mu_);
  objects_[path] = bytes;
}

void FakeS3::Accept() {
  while (!ending_) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) {
      continue;
    }
    std::lock_guard<std::mutex> lock(mu_);
    open_.insert(fd);
    threads_.emplace_back([this, fd] { Serve(fd); });
  }
}

void FakeS3::Serve(int fd) {
  std::string buffer;
  FakeRequest request;
  while (!ending_ && ReceiveRequest(fd, &buffer, &request)) {
    requests_++;
    std::optional<FakeAnswer> instead;
    if (before_) {
      instead = before_(request);
    }
    FakeAnswer answer = instead.has_value() ? *instead : Answer(request);
    if (after_) {
      after_(request, &answer);
    }
    answer.headers.emplace("Date", DateNow(ahead_seconds_));
    const bool is_head = request.method == "HEAD";
    std::string bytes = "HTTP/1.1 " + std::to_string(answer.status) + " X\r\n";
    bytes += "Content-Length: " +
             answer.content_length.value_or(
                 std::to_string(answer.body.size())) +
             "\r\n";
    for (const auto& [name, value] : answer.headers) {
      bytes += name + ": " + value + "\r\n";
    }
    bytes += "\r\n" + (is_head ? "" : answer.body);
    if (answer.close_after.has_value()) {
      bytes.resize(std::min(bytes.size(), *answer.close_after));
    }
    if (!SendAll(fd, bytes) || answer.close_after.has_value()) {
      break;
    }
    request = {};
  }
  std::lock_guard<std::mutex> lock(mu_);
  open_.erase(fd);
  close(fd);
}

FakeAnswer FakeS3::Answer(const FakeRequest& request) {
  const auto sha256 = request.headers.find("x-amz-content-sha256");
  if (sha256 == request.headers.end() ||
      request.headers.count("authorization") == 0) {
    return FakeError(403, "AccessDenied");
  }
  if (sha256->second != ToHex(Sha256Of(request.body))) {
    return FakeError(400, "XAmzContentSHA256Mismatch");
  }
  std::lock_guard<std::mutex> lock(mu_);
  if (request.query.count("list-type") != 0) {
    return List(request);
  }
  return OfObject(request);
}

FakeAnswer FakeS3::List(const FakeRequest& request) {
  const std::string bucket = request.path;  // "/bucket/"
  const std::string prefix = request.query.at("prefix");
  const auto after = request.query.find("start-after");
  FakeAnswer answer;
  answer.body =
      "<ListBucketResult><EncodingType>url</EncodingType>"
      "<IsTruncated>false</IsTruncated>";
  for (const auto& [path, bytes] : objects_) {
    if (!path.starts_with(bucket + prefix)) {
      continue;
    }
    const std::string key = path.substr(bucket.size());
    if (after != request.query.end() && key <= after->second) {
      continue;
    }
    answer.body += "<Contents><Key>" + PercentEncode(key) + "</Key><Size>" +
                   std::to_string(bytes.size()) + "</Size><ETag>&quot;e&quot;"
                   "</ETag></Contents>";
  }
  answer.body += "</ListBucketResult>";
  return answer;
}

FakeAnswer FakeS3::OfObject(const FakeRequest& request) {
  FakeAnswer answer;
  const auto header = [&](const char* name) {
    const auto found = request.headers.find(name);
    return found == request.headers.end() ? std::string() : found->second;
  };
  const auto found = objects_.find(request.path);
  const bool is_there = found != objects_.end();
  if (request.query.count("delete") != 0) {
    answer.body = "<DeleteResult></DeleteResult>";
    for (size_t at = 0; (at = request.body.find("<Key>", at)) !=
                        std::string::npos; at += 5) {
      objects_.erase(request.path +
                     request.body.substr(
                         at + 5, request.body.find("</Key>", at) - at - 5));
    }
    return answer;
  }
  if (request.query.count("uploads") != 0 && request.method == "GET") {
    answer.body = "<ListMultipartUploadsResult>";
    if (parts_.count("U/open") != 0) {
      answer.body += "<Upload><Key>" + parts_["U/open"] +
                     "</Key><UploadId>U</UploadId><Initiated>"
                     "2026-11-25T12:00:00Z</Initiated></Upload>";
    }
    answer.body += "</ListMultipartUploadsResult>";
    return answer;
  }
  if (request.query.count("uploads") != 0) {
    answer.body =
        "<InitiateMultipartUploadResult><UploadId>U</UploadId>"
        "</InitiateMultipartUploadResult>";
    parts_["U/open"] = request.path.substr(request.path.find('/', 1) + 1);
    return answer;
  }
  if (request.query.count("uploadId") != 0) {
    if (parts_.count("U/open") == 0) {
      return FakeError(404, "NoSuchUpload");
    }
    if (request.method == "PUT") {
      parts_["U/" + request.query.at("partNumber")] = request.body;
      answer.headers["ETag"] = ETagOf(request.body);
    } else if (request.method == "DELETE") {
      parts_.clear();
      answer.status = 204;
    } else if (is_there && header("if-none-match") == "*") {
      return FakeError(412, "PreconditionFailed");
    } else {
      std::string whole;
      for (int i = 1; parts_.count("U/" + std::to_string(i)) != 0; ++i) {
        whole += parts_["U/" + std::to_string(i)];
      }
      parts_.clear();
      objects_[request.path] = whole;
      answer.body =
          "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>";
    }
    return answer;
  }
  if (request.method == "PUT") {
    if (is_there && header("if-none-match") == "*") {
      return FakeError(412, "PreconditionFailed");
    }
    objects_[request.path] = request.body;
    answer.headers["ETag"] = ETagOf(request.body);
    return answer;
  }
  if (request.method == "DELETE") {
    objects_.erase(request.path);
    answer.status = 204;
    return answer;
  }
  if (!is_there) {
    return FakeError(404, "NoSuchKey");
  }
  const std::string& bytes = found->second;
  answer.headers["ETag"] = ETagOf(bytes);
  if (!header("if-match").empty() &&
      header("if-match") != answer.headers["ETag"]) {
    return FakeError(412, "PreconditionFailed");
  }
  answer.body = bytes;
  unsigned long long first = 0;
  unsigned long long last = 0;
  if (std::sscanf(header("range").c_str(), "bytes=%llu-%llu", &first, &last) ==
      2) {
    if (first >= bytes.size()) {
      return FakeError(416, "InvalidRange");
    }
    last = std::min<unsigned long long>(last, bytes.size() - 1);
    answer.status = 206;
    answer.body = bytes.substr(first, last + 1 - first);
    answer.headers["Content-Range"] =
        "bytes " + std::to_string(first) + "-" + std::to_string(last) + "/" +
        std::to_string(bytes.size());
  }
  return answer;
}

}  // namespace sstferry
