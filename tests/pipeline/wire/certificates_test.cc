// Files that sstferry cert makes can be used by sstferry.
#include <sys/stat.h>

#include <filesystem>

#include "format/end_state.h"
#include "sstferry/transport.h"
#include "tests/support/catch.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::certificates_test {
namespace {

namespace fs = std::filesystem;

mode_t ModeOf(const std::string& path) {
  struct stat info;
  REQUIRE(stat(path.c_str(), &info) == 0);
  return info.st_mode & 0777;
}

TEST_CASE("A CA is made once, and only its owner can read its key",
          "[wire][tls]") {
  ScratchDir dir;
  REQUIRE_OK(MakeCertificateAuthority(dir / "pki"));
  REQUIRE(ModeOf(dir / "pki/ca.key") == 0600);
  const std::string key = BytesOf(dir / "pki/ca.key");
  const rocksdb::Status again = MakeCertificateAuthority(dir / "pki");
  REQUIRE(EndStateOf(again) == EndState::kRefused);
  REQUIRE(BytesOf(dir / "pki/ca.key") == key);
}

TEST_CASE("A certificate has a host's names, and does not replace another one",
          "[wire][tls]") {
  ScratchDir dir;
  TlsFiles files;
  uint64_t until = 0;
  REQUIRE(EndStateOf(IssueCertificate(dir / "pki", {"db1"}, 10, &files,
                                      &until)) == EndState::kRefused);
  REQUIRE_OK(MakeCertificateAuthority(dir / "pki"));
  for (const std::string name :
       {"", "../db1", "a/b", ".", "-db1", "db1,DNS:db2", "*.example"}) {
    INFO(name);
    REQUIRE(EndStateOf(IssueCertificate(dir / "pki", {"db1", name}, 10, &files,
                                        &until)) == EndState::kRefused);
  }
  REQUIRE_FALSE(fs::exists(dir / "pki/db1"));
  const auto now = static_cast<uint64_t>(time(nullptr));
  REQUIRE_OK(IssueCertificate(dir / "pki", {"db1", "::1"}, 10, &files, &until));
  REQUIRE(until > now + 9 * 86400);
  REQUIRE(until < now + 11 * 86400);
  REQUIRE(files.key == dir / "pki/db1/key.pem");
  REQUIRE(ModeOf(files.key) == 0600);
  REQUIRE(BytesOf(files.ca) == BytesOf(dir / "pki/ca.pem"));
  const std::string key = BytesOf(files.key);
  REQUIRE(EndStateOf(IssueCertificate(dir / "pki", {"db1"}, 10, &files,
                                      &until)) == EndState::kRefused);
  REQUIRE(BytesOf(dir / "pki/db1/key.pem") == key);
}

TEST_CASE("A CA with the key of another CA issues nothing", "[wire][tls]") {
  ScratchDir dir;
  REQUIRE_OK(MakeCertificateAuthority(dir / "a"));
  REQUIRE_OK(MakeCertificateAuthority(dir / "b"));
  fs::copy_file(dir / "b/ca.key", dir / "a/ca.key",
                fs::copy_options::overwrite_existing);
  TlsFiles files;
  uint64_t until = 0;
  REQUIRE(EndStateOf(IssueCertificate(dir / "a", {"db1"}, 10, &files,
                                      &until)) == EndState::kRefused);
  REQUIRE_FALSE(fs::exists(dir / "a/db1"));
}

}  // namespace
}  // namespace sstferry::certificates_test
