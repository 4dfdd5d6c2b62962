#include <algorithm>
#include <cctype>
#include <cstring>

#include "sstferry/options.h"

namespace sstferry {

std::string ShellWord(const std::string& text) {
  const bool plain =
      !text.empty() &&
      std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return c >= 0x80 || isalnum(c) || strchr("@%+=:,./-_", c) != nullptr;
      });
  if (plain) {
    return text;
  }
  std::string quoted = "'";
  for (const char c : text) {
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return quoted + "'";
}

namespace {

// Returns " NAME VALUE", or an empty string if the value is the default
// `unset`.
std::string OptionWords(const char* name, const std::string& value,
                        const std::string& unset = "") {
  return value == unset ? "" : " " + (name + (" " + ShellWord(value)));
}

// Returns the option --tls DIR if all files are in one directory and have the
// names that --tls expects. Otherwise returns one option for each file.
std::string TlsWords(const TlsFiles& tls) {
  const std::string dir = tls.cert.substr(0, tls.cert.rfind('/'));
  return tls.cert == dir + "/cert.pem" && tls.key == dir + "/key.pem" &&
                 tls.ca == dir + "/ca.pem"
             ? OptionWords("--tls", dir)
             : OptionWords("--tls-cert", tls.cert) +
                   OptionWords("--tls-key", tls.key) +
                   OptionWords("--tls-ca", tls.ca);
}

}  // namespace

std::string AccessWords(const SourceAccess& access,
                        const SourceAddress& source) {
  if (source.is_archive()) {
    const StoreOptions& store = access.store;
    return OptionWords("--endpoint", store.endpoint) +
           OptionWords("--region", store.region) +
           OptionWords("--ca-file", store.ca_file) +
           OptionWords("--credentials-command", store.credentials_command) +
           OptionWords("--key-file", store.key_file);
  }
  if (!source.is_directory() && !source.is_ssh()) {
    return access.tls.empty() ? "" : TlsWords(access.tls);
  }
  const std::string ssh =
      source.is_ssh() ? OptionWords("--ssh-command", access.ssh.ssh,
                                    SshCommands().ssh) +
                            OptionWords("--remote-command", access.ssh.remote,
                                        SshCommands().remote)
                      : "";
  return ssh + OptionWords("--snapshot-dir", access.snapshot_dir) +
         OptionWords("--wal-dir", access.wal_dir);
}

}  // namespace sstferry
