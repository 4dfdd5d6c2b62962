#include "pipeline/archive/credential_chain.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "format/end_state.h"
#include "format/printable.h"
#include "pipeline/archive/credential_text.h"
#include "pipeline/archive/s3_xml.h"
#include "pipeline/archive/url.h"
#include "pipeline/wire/ssh_process.h"
#include "sstferry/descriptor.h"
#include "sstferry/own_file.h"
#include "sstferry/spawn.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;
using std::chrono::milliseconds;

constexpr UnixSeconds kRenewBeforeSeconds = 5 * 60;
// Time after which a provider that did not answer is asked again, while the
// current credentials are still valid.
constexpr UnixSeconds kAskAgainSeconds = 30;
constexpr milliseconds kCommandLimit{60'000};
constexpr milliseconds kMachineLimit{1'000};
constexpr milliseconds kContainerLimit{10'000};
constexpr size_t kMaxTokenFileBytes = 64u << 10;

Status None(const std::string& what) {
  return MakeStatus(EndState::kDenied, "credentials: " + what);
}

// Reads a file that contains credentials, or a command to obtain them. Permits
// a symbolic link, because a mounted secret often is one.
Status ReadSmallFile(const std::string& path, size_t max_bytes,
                     std::string* bytes) {
  RETURN_IF_ERROR(WithContext(ReadOwn(path, /*account=*/0, bytes),
                              EndState::kRefused, "credentials"));
  return bytes->size() <= max_bytes
             ? Status::OK()
             : MakeStatus(EndState::kRefused,
                          "credentials: " + path + ": expected at most " +
                              std::to_string(max_bytes) + " bytes, found " +
                              std::to_string(bytes->size()));
}

// Returns true if `path` does not exist. Also returns true if this account may
// not search its directory, unless a variable names the file (`is_named`): a
// service may run with root's HOME.
bool IsMissing(const std::string& path, bool is_named) {
  struct stat info;
  return stat(path.c_str(), &info) != 0 &&
         (errno == ENOENT || errno == ENOTDIR ||
          (errno == EACCES && !is_named));
}

// Returns true for a token or a name that is safe in a header or a path,
// because it is printable and contains no space.
bool IsClean(const std::string& text, size_t max_bytes) {
  return !text.empty() && text.size() <= max_bytes &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return c > 0x20 && c < 0x7f; });
}

std::string WithoutLineEnd(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) {
    text.pop_back();
  }
  return text;
}

Status Fetch(HttpClient* client, const std::string& url,
             const std::string& method,
             const std::map<std::string, std::string>& headers,
             Clock::time_point until, std::string* body) {
  Url parts;
  RETURN_IF_ERROR(ParseUrl(url, &parts));
  HttpRequest request;
  request.method = method;
  request.host = parts.host_port();
  request.path = parts.path.empty() ? "/" : parts.path;
  request.headers = headers;
  const SliceSource nothing("");
  HttpAnswer answer;
  const HttpResult result = client->Perform(
      {.scheme = parts.scheme,
       .request = &request,
       .body = method == "PUT" ? &nothing : nullptr,
       .streams = nullptr,
       .sink = nullptr,
       .max_body_bytes = kMaxCredentialTextBytes,
       .until = until},
      &answer);
  const std::string place = parts.scheme + "://" + request.host;
  if (result.end == HttpEnd::kCancelled) {
    return MakeStatus(EndState::kCancelled, place + ": cancelled");
  }
  if (result.end != HttpEnd::kAnswered) {
    return MakeStatus(EndState::kDeadPeer, place + ": " + result.what);
  }
  if (answer.status != 200) {
    return MakeStatus(answer.status >= 500 || answer.status == 429
                          ? EndState::kDeadPeer
                          : EndState::kRefused,
                      place + ": expected status 200, found " +
                          std::to_string(answer.status));
  }
  *body = std::move(answer.body);
  return Status::OK();
}

// Returns true if the container's token may be sent to this address: it uses
// https, or its host is one of kHosts.
bool MayBeContainerEndpoint(const Url& url) {
  static const char* const kHosts[] = {"169.254.170.2", "169.254.170.23",
                                       "[fd00:ec2::23]", "127.0.0.1", "[::1]",
                                       "localhost"};
  return url.scheme == "https" ||
         std::any_of(std::begin(kHosts), std::end(kHosts),
                     [&](const char* host) { return url.host == host; });
}

// A script that runs the command $1 and writes its exit code to descriptor 3.
// If the application ignores SIGCHLD, waitpid(2) cannot return the exit code.
constexpr char kTellExitCode[] = "/bin/sh -c \"$1\" 3>&-; echo $? >&3";

Status MakePipe(Descriptor* out, Descriptor* in) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return MakeStatus(EndState::kInternal,
                      std::string("pipe: ") + std::strerror(errno));
  }
  *out = Descriptor(ends[0]);
  *in = Descriptor(ends[1]);
  return Status::OK();
}

// Appends the next bytes of a pipe to *text. Closes the pipe after its last
// byte or after an error.
void ReadSome(Descriptor* pipe, std::string* text) {
  char buffer[4096];
  const ssize_t n = read(pipe->get(), buffer, sizeof(buffer));
  if (n > 0) {
    text->append(buffer, static_cast<size_t>(n));
  } else if (n == 0 || errno != EINTR) {
    *pipe = Descriptor();
  }
}

}  // namespace

Status RunForOutput(const std::string& command, size_t max_bytes,
                    milliseconds limit, std::string* output) {
  output->clear();
  Descriptor out;
  Descriptor told;
  pid_t pid = 0;
  {
    Descriptor out_end;
    Descriptor told_end;
    RETURN_IF_ERROR(MakePipe(&out, &out_end));
    RETURN_IF_ERROR(MakePipe(&told, &told_end));
    ProgramStart start;
    start.words = {"/bin/sh", "-c", kTellExitCode, "/bin/sh", command};
    start.out = out_end.get();
    start.third = told_end.get();
    start.own_group = true;  // children of the command are killed, too
    RETURN_IF_ERROR(Spawn(start, &pid));
  }
  const Clock::time_point until = Clock::now() + limit;
  std::string exit_code;
  bool is_late = false;
  while (output->size() <= max_bytes && (out.is_open() || told.is_open())) {
    const auto left =
        std::chrono::ceil<milliseconds>(until - Clock::now()).count();
    // poll() ignores a closed pipe, whose descriptor is -1.
    pollfd waiting[2] = {{out.get(), POLLIN, 0}, {told.get(), POLLIN, 0}};
    const int ready =
        left <= 0 ? 0 : poll(waiting, 2, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) {
      continue;
    }
    if (ready <= 0) {
      is_late = true;
      break;
    }
    if (waiting[0].revents != 0) {
      ReadSome(&out, output);
    }
    if (waiting[1].revents != 0) {
      ReadSome(&told, &exit_code);
    }
  }
  const bool is_large = output->size() > max_bytes;
  if (is_late || is_large) {
    SignalChild(pid, SIGKILL, /*whole_group=*/true);
  }
  const int status = AwaitChild(pid);
  if (is_late) {
    return MakeStatus(EndState::kRefused, "the command did not end within " +
                                              std::to_string(limit.count()) +
                                              " ms");
  }
  if (is_large) {
    return MakeStatus(EndState::kRefused, "the command wrote more than " +
                                              std::to_string(max_bytes) +
                                              " bytes");
  }
  exit_code = WithoutLineEnd(exit_code);
  if (exit_code == "0") {
    return Status::OK();
  }
  return MakeStatus(EndState::kRefused,
                    "the command " +
                        (exit_code.empty()
                             ? DescribeExit(status)
                             : "ended with exit code " + exit_code));
}

CredentialChain::CredentialChain(const StoreOptions& options,
                                 CredentialWorld world)
    : options_(options),
      world_(std::move(world)),
      outside_({.proxy = options.proxy,
                .ca_file = options.ca_file,
                .connect = options.timeouts.connect,
                .idle = kContainerLimit}),
      container_({.proxy = "",
                  .no_proxy = true,
                  .ca_file = "",
                  .connect = kContainerLimit,
                  .idle = kContainerLimit}),
      machine_({.proxy = "",
                .no_proxy = true,
                .ca_file = "",
                .connect = kMachineLimit,
                .idle = kMachineLimit}) {
  if (!world_.variable) {
    world_.variable =
        [](const std::string& name) -> std::optional<std::string> {
      const char* value = std::getenv(name.c_str());
      if (value != nullptr) {
        return std::string(value);
      }
      // systemd starts services of root without HOME.
      return name == "HOME" ? std::optional(FindAccount(geteuid()).home)
                            : std::nullopt;
    };
  }
  if (!world_.now) {
    world_.now = [] { return static_cast<UnixSeconds>(std::time(nullptr)); };
  }
}

void CredentialChain::Cancel() {
  outside_.Cancel();
  container_.Cancel();
  machine_.Cancel();
}

Status CredentialChain::Get(Credentials* credentials) {
  std::lock_guard<std::mutex> lock(mu_);
  const UnixSeconds now = world_.now();
  if (!current_.has_value() || (renew_at_ != 0 && now >= renew_at_)) {
    Credentials fresh;
    const Status asked = Ask(&fresh);
    if (asked.ok()) {
      current_ = fresh;
      const UnixSeconds life = fresh.expires - now;
      renew_at_ = fresh.expires == 0
                      ? 0
                      : now + std::max(life / 2, life - kRenewBeforeSeconds);
      if (fresh.expires != 0 && life <= 0) {
        current_.reset();
        return MakeStatus(EndState::kRefused,
                          "credentials: the given credentials expired " +
                              std::to_string(-life) + " s ago");
      }
    } else if (!current_.has_value() || current_->expires <= now) {
      return asked;
    } else {
      renew_at_ = now + kAskAgainSeconds;
    }
  }
  *credentials = *current_;
  return Status::OK();
}

void CredentialChain::Renew(const Credentials& refused) {
  std::lock_guard<std::mutex> lock(mu_);
  if (current_.has_value() &&
      current_->session_token == refused.session_token &&
      current_->access_key_id == refused.access_key_id) {
    current_.reset();
  }
}

std::string CredentialChain::Variable(const char* name) const {
  return world_.variable(name).value_or("");
}

std::string CredentialChain::HomeFile(const char* variable,
                                      const char* name) const {
  const std::string path = Variable(variable);
  if (!path.empty()) {
    return path;
  }
  const std::string home = Variable("HOME");
  return home.empty() ? "" : home + "/.aws/" + name;
}

Status CredentialChain::Profile(
    const std::string& name,
    std::optional<std::map<std::string, std::string>>* settings) const {
  settings->reset();
  // Reads the credentials file first, because its settings take precedence.
  for (const auto& [variable, file] :
       {std::pair("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
        std::pair("AWS_CONFIG_FILE", "config")}) {
    const std::string path = HomeFile(variable, file);
    if (path.empty() || IsMissing(path, !Variable(variable).empty())) {
      continue;
    }
    std::string text;
    RETURN_IF_ERROR(ReadSmallFile(path, kMaxProfileFileBytes, &text));
    const ProfileFile profiles = ParseProfileFile(text);
    const auto found = profiles.find(name);
    if (found != profiles.end()) {
      if (!settings->has_value()) {
        settings->emplace();
      }
      (*settings)->insert(found->second.begin(), found->second.end());
    }
  }
  return Status::OK();
}

Status CredentialChain::Region(std::string* region) const {
  for (const char* variable : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
    *region = Variable(variable);
    if (!region->empty()) {
      return Status::OK();
    }
  }
  const std::string name = options_.profile.empty() ? Variable("AWS_PROFILE")
                                                    : options_.profile;
  std::optional<std::map<std::string, std::string>> settings;
  RETURN_IF_ERROR(Profile(name.empty() ? "default" : name, &settings));
  if (settings.has_value() && settings->count("region") > 0) {
    *region = settings->at("region");
  }
  return Status::OK();
}

Status CredentialChain::Ask(Credentials* credentials) {
  std::string source;
  const Status status = Find(&source, credentials);
  credentials->source = source;
  return status;
}

Status CredentialChain::Find(std::string* source, Credentials* credentials) {
  bool found = false;
  if (!options_.credentials_command.empty()) {
    *source = "--credentials-command";
    return OfCommand(options_.credentials_command, credentials);
  }
  const auto profile_text = [](const std::string& name) {
    return "the profile '" + Printable(name) + "'";
  };
  if (!options_.profile.empty()) {
    *source = profile_text(options_.profile);
    return OfProfile(options_.profile, true, &found, credentials);
  }
  credentials->access_key_id = Variable("AWS_ACCESS_KEY_ID");
  if (!credentials->access_key_id.empty()) {
    *source = "AWS_ACCESS_KEY_ID";
    credentials->secret_access_key = Variable("AWS_SECRET_ACCESS_KEY");
    credentials->session_token = Variable("AWS_SESSION_TOKEN");
    return FinishCredentials("", credentials);
  }
  const std::string named = Variable("AWS_PROFILE");
  const std::string profile = named.empty() ? "default" : named;
  RETURN_IF_ERROR(OfProfile(profile, !named.empty(), &found, credentials));
  if (found) {
    *source = profile_text(profile);
    return Status::OK();
  }
  const std::string token_file = Variable("AWS_WEB_IDENTITY_TOKEN_FILE");
  const std::string role = Variable("AWS_ROLE_ARN");
  if (!token_file.empty() && !role.empty()) {
    *source = "AWS_WEB_IDENTITY_TOKEN_FILE";
    return OfWebIdentity(token_file, role, Variable("AWS_ROLE_SESSION_NAME"),
                         credentials);
  }
  const std::string relative =
      Variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  const std::string full = Variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (!relative.empty() || !full.empty()) {
    *source = "the container's role";
    return OfContainer(
        relative.empty() ? full : "http://169.254.170.2" + relative,
        credentials);
  }
  if (Variable("AWS_EC2_METADATA_DISABLED") != "true") {
    *source = "the machine's role";
    const Status asked = OfMachine(credentials);
    if (asked.ok() || EndStateOf(asked) == EndState::kCancelled) {
      return asked;
    }
  }
  return None(
      "expected AWS_ACCESS_KEY_ID, a profile, a web identity, a container's or "
      "a machine's role, found none");
}

Status CredentialChain::OfProfile(const std::string& name, bool must_exist,
                                  bool* found, Credentials* credentials) {
  *found = false;
  std::optional<std::map<std::string, std::string>> settings;
  RETURN_IF_ERROR(Profile(name, &settings));
  if (!settings.has_value()) {
    const auto shown = [this](const char* variable, const char* file) {
      const std::string path = HomeFile(variable, file);
      return path.empty() ? std::string(variable) + " (not set, nor HOME)"
                          : Printable(path);
    };
    return must_exist
               ? None("expected a profile '" + Printable(name) + "' in " +
                      shown("AWS_SHARED_CREDENTIALS_FILE", "credentials") +
                      " or " + shown("AWS_CONFIG_FILE", "config") +
                      ", found none")
               : Status::OK();
  }
  const auto get = [&](const char* key) {
    const auto at = settings->find(key);
    return at == settings->end() ? std::string() : at->second;
  };
  *found = true;
  if (!get("aws_access_key_id").empty()) {
    credentials->access_key_id = get("aws_access_key_id");
    credentials->secret_access_key = get("aws_secret_access_key");
    credentials->session_token = get("aws_session_token");
    return FinishCredentials("", credentials);
  }
  if (!get("credential_process").empty()) {
    return OfCommand(get("credential_process"), credentials);
  }
  if (!get("web_identity_token_file").empty() && !get("role_arn").empty()) {
    return OfWebIdentity(get("web_identity_token_file"), get("role_arn"),
                         get("role_session_name"), credentials);
  }
  for (const char* key : {"sso_session", "sso_start_url", "role_arn",
                          "credential_source", "login_session"}) {
    if (!get(key).empty()) {
      return MakeStatus(
          EndState::kRefused,
          "credentials: profile '" + Printable(name) + "' uses " + key +
              ", which sstferry does not support; give --credentials-command "
              "'aws configure export-credentials --profile NAME'");
    }
  }
  *found = false;  // no credentials, but perhaps a region
  return must_exist ? None("expected credentials in profile '" +
                           Printable(name) + "', found none")
                    : Status::OK();
}

Status CredentialChain::OfCommand(const std::string& command,
                                  Credentials* credentials) {
  std::string json;
  RETURN_IF_ERROR(WithContext(
      RunForOutput(command, kMaxCredentialTextBytes, kCommandLimit, &json),
      EndState::kRefused, "credentials"));
  return ParseCredentialJson(json, credentials);
}

Status CredentialChain::OfWebIdentity(const std::string& token_file,
                                      const std::string& role,
                                      const std::string& session,
                                      Credentials* credentials) {
  std::string token;
  RETURN_IF_ERROR(ReadSmallFile(token_file, kMaxTokenFileBytes, &token));
  token = WithoutLineEnd(token);
  if (!IsClean(token, kMaxTokenFileBytes) || !IsClean(role, 2048)) {
    return MakeStatus(EndState::kRefused,
                      "credentials: the web identity's token or role is empty, "
                      "too long or not printable");
  }
  std::string endpoint = Variable("AWS_ENDPOINT_URL_STS");
  if (endpoint.empty()) {
    std::string region = options_.region;
    if (region.empty()) {
      RETURN_IF_ERROR(Region(&region));
    }
    endpoint = region.empty() ? "https://sts.amazonaws.com"
                              : "https://sts." + region + ".amazonaws.com";
  }
  Url url;
  RETURN_IF_ERROR(ParseUrl(endpoint, &url));
  // Sends the token in the body, because proxies log the query.
  const std::string form = EncodeQuery(
      {{"Action", "AssumeRoleWithWebIdentity"},
       {"RoleArn", role},
       {"RoleSessionName", session.empty() ? "sstferry" : session},
       {"Version", "2011-06-15"},
       {"WebIdentityToken", token}});
  const SliceSource body(form);
  HttpRequest request;
  request.method = "POST";
  request.host = url.host_port();
  request.path = url.path.empty() ? "/" : url.path;
  request.headers["content-type"] = "application/x-www-form-urlencoded";
  HttpAnswer answer;
  const HttpResult result = outside_.Perform(
      {.scheme = url.scheme,
       .request = &request,
       .body = &body,
       .streams = nullptr,
       .sink = nullptr,
       .max_body_bytes = kMaxCredentialTextBytes,
       .until = std::min(options_.until, Clock::now() + 3 * kContainerLimit)},
      &answer);
  const std::string place = "credentials: " + url.scheme + "://" + request.host;
  if (result.end == HttpEnd::kCancelled) {
    return MakeStatus(EndState::kCancelled, place + ": cancelled");
  }
  if (result.end != HttpEnd::kAnswered) {
    return MakeStatus(EndState::kDeadPeer, place + ": " + result.what);
  }
  if (answer.status != 200) {
    S3Error error;
    static_cast<void>(ParseS3Error(answer.body, &error));
    return MakeStatus(
        answer.status >= 500 ? EndState::kDeadPeer : EndState::kDenied,
        place + ": status " + std::to_string(answer.status) + " " + error.code);
  }
  return WithContext(ParseAssumedRole(answer.body, credentials),
                     EndState::kRefused, place);
}

Status CredentialChain::OfContainer(const std::string& text,
                                    Credentials* credentials) {
  Url url;
  RETURN_IF_ERROR(ParseUrl(text, &url));
  if (!MayBeContainerEndpoint(url)) {
    return MakeStatus(EndState::kRefused,
                      "credentials: expected https in "
                      "AWS_CONTAINER_CREDENTIALS_FULL_URI, or http to "
                      "localhost, 127.0.0.1, [::1], 169.254.170.2, "
                      "169.254.170.23 or [fd00:ec2::23], found " +
                          Printable(url.scheme + "://" + url.host));
  }
  std::map<std::string, std::string> headers;
  std::string token = Variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  const std::string token_file =
      Variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  if (!token_file.empty()) {
    RETURN_IF_ERROR(ReadSmallFile(token_file, kMaxTokenFileBytes, &token));
  }
  token = WithoutLineEnd(token);
  if (!token.empty()) {
    // Checks only for line ends. IsClean() would also refuse a space, which a
    // token like "Basic ..." contains.
    if (token.find_first_of("\r\n") != std::string::npos) {
      return MakeStatus(EndState::kRefused,
                        "credentials: expected the container's token on one "
                        "line, found several lines");
    }
    headers["authorization"] = token;
  }
  std::string json;
  RETURN_IF_ERROR(WithContext(
      Fetch(&container_, text, "GET", headers,
            Clock::now() + kContainerLimit, &json),
      EndState::kDeadPeer, "credentials"));
  return ParseCredentialJson(json, credentials);
}

Status CredentialChain::OfMachine(Credentials* credentials) {
  std::string endpoint = Variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (endpoint.empty()) {
    endpoint = "http://169.254.169.254";
  }
  while (endpoint.back() == '/' && endpoint.size() > 1) {
    endpoint.pop_back();
  }
  const Clock::time_point until = Clock::now() + kMachineLimit;
  std::string token;
  RETURN_IF_ERROR(Fetch(&machine_, endpoint + "/latest/api/token", "PUT",
                        {{"x-aws-ec2-metadata-token-ttl-seconds", "21600"}},
                        until, &token));
  token = WithoutLineEnd(token);
  if (!IsClean(token, 4096)) {
    return None("the machine's metadata service gave no token");
  }
  const std::map<std::string, std::string> headers = {
      {"x-aws-ec2-metadata-token", token}};
  const std::string roles =
      endpoint + "/latest/meta-data/iam/security-credentials/";
  std::string role;
  RETURN_IF_ERROR(Fetch(&machine_, roles, "GET", headers, until, &role));
  role = role.substr(0, role.find('\n'));
  if (!IsClean(role, 256) || PercentEncode(role) != role) {
    return None("the machine's metadata service named no role");
  }
  std::string json;
  RETURN_IF_ERROR(
      Fetch(&machine_, roles + role, "GET", headers, until, &json));
  return ParseCredentialJson(json, credentials);
}

}  // namespace sstferry
