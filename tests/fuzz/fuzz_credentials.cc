// Input: the JSON of a command or an endpoint, and a profile file. Accepted
// values must be valid in an HTTP header.
#include <algorithm>
#include <cstdlib>

#include "pipeline/archive/credential_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sstferry;
  const rocksdb::Slice text(reinterpret_cast<const char*>(data), size);
  Credentials credentials;
  if (ParseCredentialJson(text, &credentials).ok()) {
    const std::string all = credentials.access_key_id +
                            credentials.secret_access_key +
                            credentials.session_token;
    if (credentials.access_key_id.empty() ||
        credentials.secret_access_key.empty() ||
        !std::all_of(all.begin(), all.end(),
                     [](char c) { return c > 0x20 && c < 0x7f; })) {
      abort();
    }
  }
  for (const auto& [name, settings] : ParseProfileFile(text)) {
    if (name.empty() || name.find('\n') != std::string::npos) {
      abort();
    }
    for (const auto& [key, value] : settings) {
      if (key.find('\n') != std::string::npos ||
          value.find('\n') != std::string::npos) {
        abort();
      }
    }
  }
  return 0;
}
