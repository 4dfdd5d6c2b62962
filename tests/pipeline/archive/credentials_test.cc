// Credentials are taken from the first source that has some and renewed before
// they expire. No message contains them.
#include "pipeline/archive/credential_chain.h"

#include <chrono>
#include <csignal>
#include <fstream>

#include "format/end_state.h"
#include "pipeline/archive/credential_text.h"
#include "pipeline/archive/s3_xml.h"
#include "tests/support/catch.h"
#include "tests/support/fake_s3.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::credentials_test {
namespace {

using Variables = std::map<std::string, std::string>;

// Returns a world with only these environment variables.
CredentialWorld WorldOf(const Variables& variables,
                        const UnixSeconds* now = nullptr) {
  CredentialWorld world;
  world.variable =
      [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt
                                    : std::optional(found->second);
  };
  if (now != nullptr) {
    world.now = [now] { return *now; };
  }
  return world;
}

std::string Write(const ScratchDir& scratch, const std::string& name,
                  const std::string& text) {
  const std::string path = scratch.path() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

std::string IdOf(const StoreOptions& options, const CredentialWorld& world) {
  CredentialChain chain(options, world);
  Credentials credentials;
  const rocksdb::Status got = chain.Get(&credentials);
  return got.ok() ? credentials.access_key_id
                  : EndStateName(EndStateOf(got)) + std::string(": ") +
                        MessageOf(got);
}

std::string SourceOf(const StoreOptions& options,
                     const CredentialWorld& world) {
  Credentials credentials;
  CHECK(CredentialChain(options, world).Get(&credentials).ok());
  return credentials.source;
}

std::string Json(const std::string& id, const std::string& expiration = "") {
  return "{\"AccessKeyId\":\"" + id +
         "\",\"SecretAccessKey\":\"hidden-key\",\"Token\":\"hidden-token\"" +
         (expiration.empty() ? "" : ",\"Expiration\":\"" + expiration + "\"") +
         "}";
}

}  // namespace

TEST_CASE("Credentials are taken from the first source that has some",
          "[archive]") {
  const ScratchDir scratch;
  FakeS3 server([&](const FakeRequest& request) -> std::optional<FakeAnswer> {
    FakeAnswer answer;
    const auto header = [&](const char* name) {
      const auto found = request.headers.find(name);
      return found == request.headers.end() ? "" : found->second;
    };
    if (request.path == "/container") {
      answer = header("authorization") == "Bearer t"
                   ? FakeAnswer{200, {}, Json("CONTAINER"), {}, {}}
                   : FakeError(401, "No");
    } else if (request.path == "/sts") {
      answer.body =
          request.body ==
                  "Action=AssumeRoleWithWebIdentity&RoleArn=arn%3Aaws%3Arole&"
                  "RoleSessionName=sstferry&Version=2011-06-15&"
                  "WebIdentityToken=hidden-web"
              ? "<AssumeRoleWithWebIdentityResponse>"
                "<AssumeRoleWithWebIdentityResult><Credentials>"
                "<AccessKeyId>WEB</AccessKeyId><SecretAccessKey>hidden-key"
                "</SecretAccessKey><SessionToken>hidden</SessionToken>"
                "<Expiration>2999-01-01T00:00:00Z</Expiration></Credentials>"
                "</AssumeRoleWithWebIdentityResult>"
                "</AssumeRoleWithWebIdentityResponse>"
              : "<Error/>";
    } else if (request.path == "/latest/api/token" &&
               request.method == "PUT") {
      answer.body = "imds";
    } else if (header("x-aws-ec2-metadata-token") != "imds") {
      answer = FakeError(401, "No");
    } else if (request.path.ends_with("/security-credentials/")) {
      answer.body = "role";
    } else if (request.path.ends_with("/security-credentials/role")) {
      answer.body = Json("MACHINE");
    } else {
      answer = FakeError(404, "No");
    }
    return answer;
  });
  const std::string token = Write(scratch, "token", "hidden-web\n");
  const std::string shared = Write(
      scratch, "credentials",
      "# comment\n[default]\naws_access_key_id = SHARED\n"
      "aws_secret_access_key = hidden-key\n[other]\nregion = r-1\n");
  const std::string config = Write(
      scratch, "config",
      "[profile other]\ncredential_process = echo '" + Json("PROCESS") +
          "'\n[profile sso]\nsso_session = x\n[profile region]\n"
          "region=r-2\ns3 =\n  addressing_style = path\n");
  StoreOptions options;
  Variables all = {
      {"AWS_ACCESS_KEY_ID", "ENVIRONMENT"},
      {"AWS_SECRET_ACCESS_KEY", "hidden-key"},
      {"AWS_SHARED_CREDENTIALS_FILE", shared},
      {"AWS_CONFIG_FILE", config},
      {"AWS_WEB_IDENTITY_TOKEN_FILE", token},
      {"AWS_ROLE_ARN", "arn:aws:role"},
      {"AWS_ENDPOINT_URL_STS", server.url() + "/sts"},
      {"AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url() + "/container"},
      {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "Bearer t"},
      {"AWS_EC2_METADATA_SERVICE_ENDPOINT", server.url() + "/"},
  };
  options.credentials_command = "echo '" + Json("COMMAND") + "'";
  CHECK(IdOf(options, WorldOf(all)) == "COMMAND");
  CHECK(SourceOf(options, WorldOf(all)) == "--credentials-command");
  options.credentials_command.clear();
  options.profile = "other";
  CHECK(IdOf(options, WorldOf(all)) == "PROCESS");
  options.profile = "default";
  CHECK(IdOf(options, WorldOf(all)) == "SHARED");
  options.profile = "sso";
  CHECK(IdOf(options, WorldOf(all)).find("REFUSED: credentials: profile 'sso' "
                                         "uses sso_session") == 0);
  options.profile = "none";
  CHECK(IdOf(options, WorldOf(all)) ==
        "DENIED: credentials: expected a profile 'none' in " + shared + " or " +
            config + ", found none");
  CHECK(IdOf(options, WorldOf({{"HOME", "/no"}})) ==
        "DENIED: credentials: expected a profile 'none' in "
        "/no/.aws/credentials or /no/.aws/config, found none");
  CHECK(IdOf(options, WorldOf({})) ==
        "DENIED: credentials: expected a profile 'none' in "
        "AWS_SHARED_CREDENTIALS_FILE (not set, nor HOME) or AWS_CONFIG_FILE "
        "(not set, nor HOME), found none");
  options.profile.clear();
  CHECK(IdOf(options, WorldOf(all)) == "ENVIRONMENT");
  CHECK(SourceOf(options, WorldOf(all)) == "AWS_ACCESS_KEY_ID");
  all.erase("AWS_ACCESS_KEY_ID");
  CHECK(IdOf(options, WorldOf(all)) == "SHARED");
  CHECK(SourceOf(options, WorldOf(all)) == "the profile 'default'");
  all["AWS_PROFILE"] = "other";
  CHECK(IdOf(options, WorldOf(all)) == "PROCESS");
  std::string region;
  CHECK(CredentialChain(options, WorldOf(all)).Region(&region).ok());
  CHECK(region == "r-1");
  all.erase("AWS_PROFILE");
  all.erase("AWS_SHARED_CREDENTIALS_FILE");
  CHECK(IdOf(options, WorldOf(all)) == "WEB");
  CHECK(SourceOf(options, WorldOf(all)) == "AWS_WEB_IDENTITY_TOKEN_FILE");
  all.erase("AWS_ROLE_ARN");
  CHECK(IdOf(options, WorldOf(all)) == "CONTAINER");
  CHECK(SourceOf(options, WorldOf(all)) == "the container's role");
  all["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = "wrong";
  CHECK(IdOf(options, WorldOf(all)).find("status 200, found 401") !=
        std::string::npos);
  all["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://example.com/c";
  CHECK(IdOf(options, WorldOf(all)).find("REFUSED: credentials: expected https")
        == 0);
  all.erase("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  CHECK(IdOf(options, WorldOf(all)) == "MACHINE");
  CHECK(SourceOf(options, WorldOf(all)) == "the machine's role");
  all["AWS_EC2_METADATA_DISABLED"] = "true";
  CHECK(IdOf(options, WorldOf(all)).find("DENIED: credentials: expected "
                                         "AWS_ACCESS_KEY_ID") == 0);
}

TEST_CASE("Credentials are renewed before they expire", "[archive]") {
  const ScratchDir scratch;
  const std::string file = scratch.path() + "/json";
  const std::string count = scratch.path() + "/count";
  UnixSeconds now = *ParseTime("2026-11-25T12:00:00Z");
  StoreOptions options;
  options.credentials_command = "echo x >>" + count + "; cat " + file;
  CredentialChain chain(options, WorldOf({}, &now));
  const auto id = [&] {
    Credentials credentials;
    const rocksdb::Status got = chain.Get(&credentials);
    CHECK(got.ToString().find("hidden") == std::string::npos);
    return got.ok() ? credentials.access_key_id : "none";
  };
  const auto asked = [&] {
    std::ifstream in(count);
    return std::count(std::istreambuf_iterator<char>(in), {}, 'x');
  };
  std::ofstream(file) << Json("ONE", "2026-11-25T13:00:00Z");
  CHECK(id() == "ONE");
  std::ofstream(file) << Json("TWO", "2026-11-25T14:00:00+00:00");
  now += 54 * 60;
  CHECK(id() == "ONE");
  CHECK(asked() == 1);
  now += 2 * 60;  // 12:56
  CHECK(id() == "TWO");
  CHECK(asked() == 2);
  // The command fails: the last credentials are used until they expire.
  std::ofstream(file) << "rubbish with hidden-key";
  now = *ParseTime("2026-11-25T13:58:00Z");
  CHECK(id() == "TWO");
  CHECK(id() == "TWO");
  CHECK(asked() == 3);
  now += 3 * 60;
  CHECK(id() == "none");
  std::ofstream(file) << Json("OLD", "2026-11-25T13:00:00Z");
  CHECK(id() == "none");
  // Credentials that are valid only for a short time are renewed after half of
  // it.
  std::ofstream(file) << Json("SHORT", "2026-11-25T14:03:00Z");
  CHECK(id() == "SHORT");
  std::ofstream(file) << Json("NEXT");
  now += 59;
  CHECK(id() == "SHORT");
  now += 2;
  CHECK(id() == "NEXT");
}

TEST_CASE("A command's output is bounded in bytes and in time", "[archive]") {
  std::string output;
  CHECK(RunForOutput("echo abc", 4, std::chrono::seconds(60), &output).ok());
  CHECK(output == "abc\n");
  const auto message = [&](const std::string& command,
                           std::chrono::milliseconds limit) {
    const rocksdb::Status run = RunForOutput(command, 100, limit, &output);
    CHECK(EndStateOf(run) == EndState::kRefused);
    return MessageOf(run);
  };
  CHECK(message("exit 3", std::chrono::seconds(60)) ==
        "the command ended with exit code 3");
  CHECK(message("yes", std::chrono::seconds(60)) ==
        "the command wrote more than 100 bytes");
  CHECK(message("tail -f /dev/null", std::chrono::milliseconds(100)) ==
        "the command did not end within 100 ms");
  CHECK(message("echo abc; exec >/dev/null; tail -f /dev/null",
                std::chrono::milliseconds(100)) ==
        "the command did not end within 100 ms");
}

TEST_CASE("A command's exit code is known even if the kernel reaps children",
          "[archive]") {
  std::string output;
  std::string failed_output;
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  const rocksdb::Status good =
      RunForOutput("echo abc", 100, std::chrono::seconds(20), &output);
  const rocksdb::Status failed = RunForOutput(
      "echo abc; exit 3", 100, std::chrono::seconds(20), &failed_output);
  std::signal(SIGCHLD, before);
  CHECK(good.ok());
  CHECK(output == "abc\n");
  CHECK(EndStateOf(failed) == EndState::kRefused);
  CHECK(MessageOf(failed) == "the command ended with exit code 3");
}

TEST_CASE("Credentials that an HTTP header cannot contain are refused",
          "[archive]") {
  Credentials credentials;
  CHECK(ParseCredentialJson(Json("ID", "2026-11-25T12:00:00.5Z"), &credentials)
            .ok());
  CHECK(credentials.expires == 1'795'608'000);
  CHECK(credentials.session_token == "hidden-token");
  for (const std::string& json :
       {std::string(), std::string("{}"), std::string("[]"), std::string("1"),
        std::string("{\"AccessKeyId\":\"A\"}"), Json("A B"), Json("A\\nB"),
        Json("A/B"), Json("A\\u00e9"), Json(std::string(300, 'A')),
        Json("A", "tomorrow"), Json("A") + "x",
        std::string("{\"AccessKeyId\":1,\"SecretAccessKey\":\"s\"}"),
        std::string("{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"s\","
                    "\"Expiration\":5}"),
        std::string(kMaxCredentialTextBytes + 1, ' '),
        std::string(60'000, '[')}) {
    INFO(json.substr(0, 100));
    const rocksdb::Status parsed = ParseCredentialJson(json, &credentials);
    CHECK(EndStateOf(parsed) == EndState::kRefused);
    CHECK(parsed.ToString().find("hidden") == std::string::npos);
  }
}

TEST_CASE("Times of stores and credentials are parsed exactly", "[archive]") {
  CHECK(ParseTime("2026-11-25T12:00:00Z") == 1'795'608'000);
  CHECK(ParseTime("2026-11-25T12:00:00.000Z") == 1'795'608'000);
  CHECK(ParseTime("2026-11-25T13:30:00+01:30") == 1'795'608'000);
  CHECK(ParseTime("2026-11-25T10:00:00-02:00") == 1'795'608'000);
  CHECK(ParseTime("2000-02-29T00:00:00Z") == 951'782'400);
  for (const char* text :
       {"", "2026-11-25", "2026-11-25T12:00:00", "2026-11-25T12:00:00+1",
        "2026-13-25T12:00:00Z", "2026-11-25T24:00:00Z", "x026-11-25T12:00:00Z",
        "2026-11-25 12:00:00Z", "1999-11-25T12:00:00Z",
        "2026-11-25T12:00:00+99:00", "2026-11-25T12:00:00.Zx"}) {
    INFO(text);
    CHECK_FALSE(ParseTime(text).has_value());
  }
}

}  // namespace sstferry::credentials_test
