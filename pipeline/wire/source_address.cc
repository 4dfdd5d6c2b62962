// Parses the addresses of sources and archives that operators write. Their
// syntax is in sstferry/options.h and sstferry/store_options.h.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <string>

#include "format/archive.h"
#include "format/printable.h"
#include "sstferry/options.h"
#include "sstferry/store_options.h"
#include "sstferry/transport.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

constexpr char kScheme[] = "sst://";
constexpr char kSshScheme[] = "ssh://";

}  // namespace

Status ParseStoreAddress(const std::string& text, StoreAddress* out) {
  *out = {};
  const auto wrong = [&](const std::string& expected) {
    return Status::InvalidArgument(
        "'" + Printable(text) + "': expected " + expected);
  };
  if (!text.starts_with(kS3Scheme)) {
    if (text.empty() || text[0] != '/') {
      return wrong("s3://BUCKET[/PREFIX] or an absolute path");
    }
    out->directory = text;
    return Status::OK();
  }
  std::string rest = text.substr(sizeof(kS3Scheme) - 1);
  while (!rest.empty() && rest.back() == '/') {
    rest.pop_back();
  }
  const size_t slash = rest.find('/');
  out->bucket = rest.substr(0, slash);
  out->prefix = slash == std::string::npos ? "" : rest.substr(slash + 1);
  // Refuses other characters. S3 servers encode them in different ways when
  // they check the signature of a request.
  if (!IsStoreKey(rest)) {
    return wrong("s3://BUCKET[/PREFIX] of A-Z a-z 0-9 _ . - between slashes");
  }
  return Status::OK();
}

std::string StoreAddress::ToString() const {
  return is_directory() ? directory
                        : "s3://" + bucket + (prefix.empty() ? "" : "/") +
                              prefix;
}

std::string SourceAddress::ToString() const {
  if (is_archive()) {
    return archive->ToString() + (set.empty() ? "" : "@") + set;
  }
  if (is_directory()) {
    return directory;
  }
  const HostPort where{host, port};
  if (is_ssh()) {
    const std::string at = sstferry::ToString(where);
    return kSshScheme + (user.empty() ? "" : user + "@") +
           (port == 0 ? at.substr(0, at.rfind(':')) : at) + directory;
  }
  const std::string text =
      (where.is_unix() ? "" : kScheme) + sstferry::ToString(where);
  return name.empty() ? text : text + (where.is_unix() ? ":" : "/") + name;
}

namespace {

// Parses `where`, which is "[USER@]HOST[:PORT]", into *out. `directory` is the
// path that followed in the address.
Status ReadSshPlace(const std::string& where, const std::string& directory,
                    SourceAddress* out) {
  const size_t at = where.rfind('@');
  std::string host = at == std::string::npos ? where : where.substr(at + 1);
  out->user = where.substr(0, at == std::string::npos ? 0 : at);
  if (at == 0) {
    return Status::InvalidArgument("found an empty user");
  }
  const bool has_port =
      host.find(':', host.rfind(']') + 1) != std::string::npos;
  HostPort host_port;
  RETURN_IF_ERROR(ParseHostPort(host, &host_port));
  if (host_port.is_unix() || (has_port && host_port.port == 0)) {
    return Status::InvalidArgument("found no host and port for ssh");
  }
  out->host = host_port.host;
  out->port = has_port ? host_port.port : 0;
  out->directory = directory;
  out->name = kStdioDatabase;
  return CheckSshPlace({out->user, out->host, out->port, directory, {}, {}});
}

// Parses "s3://BUCKET[/PREFIX][@SET]" or "file:///DIR[@SET]" into *out. SET
// begins after the first @, because buckets and prefixes contain no @.
Status ReadArchive(const std::string& text, SourceAddress* out) {
  const bool is_file = Slice(text).starts_with(kFileScheme);
  const std::string place =
      is_file ? text.substr(std::strlen(kFileScheme)) : text;
  const size_t at = place.find('@');
  out->set = at == std::string::npos ? "" : place.substr(at + 1);
  return at != std::string::npos && out->set.empty()
             ? Status::InvalidArgument("found no set after @")
             : ParseStoreAddress(place.substr(0, at), &out->archive.emplace());
}

// Returns true if `text` begins with "HOST:/", and sets *colon to the position
// of the colon. To name a local directory like this, operators write "./"
// before it.
bool IsRemotePath(const std::string& text, size_t* colon) {
  const size_t slash = std::min(text.find('/'), text.size());
  *colon = slash - 1;
  return slash > 1 && slash < text.size() && text[slash - 1] == ':';
}

}  // namespace

std::string MeantBucket(const std::string& text) {
  std::string lower = text.substr(0, text.find('/'));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  const size_t begin = text.find_first_not_of('/', lower.size());
  const bool is_meant =
      (lower == "s3:" && !text.starts_with(kS3Scheme)) ||
      ((lower == "https:" || lower == "http:") &&
       text.find("//") == lower.size());
  return is_meant && begin != std::string::npos ? kS3Scheme + text.substr(begin)
                                                : "";
}

Status ParseSourceAddress(const std::string& text, SourceAddress* out) {
  *out = SourceAddress();
  const std::string meant = MeantBucket(text);
  if (!meant.empty() && !Slice(text).starts_with("http")) {
    return Status::InvalidArgument(
        "database address: expected s3://BUCKET[/PREFIX][@SET], found \"" +
        text + "\"; did you mean " + meant + "?");
  }
  const std::string expected =
      "expected a directory, [USER@]HOST:/DIR, ssh://[USER@]HOST[:PORT]/DIR, "
      "sst://HOST[:PORT]/NAME, unix:/PATH:NAME, s3://BUCKET[/PREFIX][@SET] or "
      "file:///DIR[@SET], found \"" +
      text + "\"";
  if (text.empty()) {
    return Status::InvalidArgument("database address: " + expected);
  }
  if (text.find(std::string(",") + kScheme) != std::string::npos) {
    return Status::InvalidArgument(
        "database address: expected one address, found several in \"" + text +
        "\"");
  }
  if (Slice(text).starts_with(kS3Scheme) ||
      Slice(text).starts_with(kFileScheme)) {
    const Status status = ReadArchive(text, out);
    if (!status.ok()) {
      *out = SourceAddress();
    }
    return status.ok() ? status
                       : Status::InvalidArgument("database address: " + expected,
                                                 status.getState());
  }
  const bool is_unix = Slice(text).starts_with(kUnixScheme);
  size_t colon = 0;
  const bool is_url = Slice(text).starts_with(kSshScheme);
  if (is_url || (!is_unix && text.find("://") == std::string::npos &&
                 IsRemotePath(text, &colon))) {
    const size_t begin = is_url ? std::strlen(kSshScheme) : 0;
    const size_t end =
        is_url ? std::min(text.find('/', begin), text.size()) : colon;
    const std::string where = text.substr(begin, end - begin);
    const Status status =
        where == "sst" || where == "ssh"
            ? Status::InvalidArgument("found only one / after " + where + ":")
            : ReadSshPlace(where, text.substr(is_url ? end : end + 1), out);
    if (!status.ok()) {
      *out = SourceAddress();
    }
    return status.ok()
               ? status
               : Status::InvalidArgument("database address: " + expected,
                                         status.getState());
  }
  if (!is_unix && !Slice(text).starts_with(kScheme)) {
    const size_t scheme_end = text.find("://");
    if (scheme_end != std::string::npos &&
        text.find('/') == scheme_end + 1) {
      return Status::InvalidArgument("database address: " + expected);
    }
    out->directory = text;
    return Status::OK();
  }
  // NAME follows a slash, or a colon if the address is a Unix socket. Neither a
  // host nor the path of a socket contains that character.
  const size_t begin = std::strlen(is_unix ? kUnixScheme : kScheme);
  const size_t end = text.find(is_unix ? ':' : '/', begin);
  HostPort host_port;
  const Status status = ParseHostPort(
      is_unix ? text.substr(0, end) : text.substr(begin, end - begin),
      &host_port);
  if (!status.ok() || is_unix != host_port.is_unix()) {
    return Status::InvalidArgument("database address: " + expected,
                                   MessageOf(status));
  }
  if (host_port.port == 0 && !is_unix) {
    return Status::InvalidArgument(
        "database address: port: expected 1 to 65535, found 0 in \"" + text +
        "\"");
  }
  std::string name =
      end == std::string::npos ? std::string() : text.substr(end + 1);
  if (!name.empty() && !IsValidDatabaseName(name)) {
    return Status::InvalidArgument(
        std::string("database name: expected ") + kDatabaseNameGrammar +
        ", found \"" + name + "\" in \"" + text + "\"");
  }
  out->host = host_port.host;
  out->port = host_port.port;
  out->name = std::move(name);
  return Status::OK();
}

}  // namespace sstferry
