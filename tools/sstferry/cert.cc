// Implements the command sstferry cert.
#include <nlohmann/json.hpp>

#include "tools/sstferry/command_arguments.h"
#include "tools/sstferry/console.h"
#include "tools/sstferry/result_json.h"
#include "tools/sstferry/run.h"

namespace sstferry {
namespace {

using nlohmann::ordered_json;
using rocksdb::Status;

std::string ToJson(const CertArguments& asked, const Status& status,
                   const TlsFiles& files, uint64_t until_seconds) {
  ordered_json json = ResultJson("cert", status, asked.dir);
  json["ca"] = asked.dir + "/ca.pem";
  for (const char* name : {"cert", "key", "valid_until"}) {
    json[name] = nullptr;
  }
  if (status.ok() && !files.cert.empty()) {
    json["cert"] = files.cert;
    json["key"] = files.key;
  }
  const uint64_t end =
      until_seconds != 0
          ? until_seconds
          : EndsOfCertificates({"", "", asked.dir + "/ca.pem"}).ca_seconds;
  if (status.ok() && end != 0) {
    json["valid_until"] = Rfc3339(end);
  }
  return DumpJson(json);
}

std::string Text(const CertArguments& asked, uint64_t until_seconds) {
  if (asked.hosts.empty()) {
    return "made: " + asked.dir + "/ca.pem and " + asked.dir +
           "/ca.key; keep ca.key on this machine\nnext: sstferry cert issue " +
           ShellWord(asked.dir) + " HOST\n";
  }
  const std::string dir = asked.dir + "/" + asked.hosts[0];
  return "issued: " + dir + ", valid until " + Rfc3339(until_seconds) +
         "\nnext: copy that directory to " + asked.hosts[0] +
         ", and name it there with --tls\n";
}

}  // namespace

int RunCert(const std::vector<std::string>& arguments) {
  CertArguments parsed;
  const Status usage = ParseCert(arguments, &parsed);
  if (!usage.ok()) {
    return ReportUsage("cert", usage);
  }
  Console console(parsed.common);
  TlsFiles files;
  uint64_t until_seconds = 0;
  const Status status =
      parsed.hosts.empty()
          ? MakeCertificateAuthority(parsed.dir)
          : IssueCertificate(parsed.dir, parsed.hosts, parsed.days, &files,
                             &until_seconds);
  std::string text;
  if (parsed.common.json) {
    text = ToJson(parsed, status, files, until_seconds);
  } else if (status.ok()) {
    text = Text(parsed, until_seconds);
  }
  return FinishCommand("cert", status, "", text, &console);
}

}  // namespace sstferry
