#include "pipeline/archive/open_store.h"

#include "format/printable.h"
#include "pipeline/archive/directory_store.h"
#include "pipeline/archive/s3_store.h"

namespace sstferry {

rocksdb::Status ParseStoreAddress(const std::string& text, StoreAddress* out) {
  *out = {};
  const auto wrong = [&](const std::string& expected) {
    return rocksdb::Status::InvalidArgument(
        "'" + Printable(text) + "': expected " + expected);
  };
  if (!text.starts_with(kS3Scheme)) {
    if (text.empty() || text[0] != '/') {
      return wrong("s3://BUCKET[/PREFIX] or an absolute path");
    }
    out->directory = text;
    return rocksdb::Status::OK();
  }
  std::string rest = text.substr(sizeof(kS3Scheme) - 1);
  while (!rest.empty() && rest.back() == '/') {
    rest.pop_back();
  }
  const size_t slash = rest.find('/');
  out->bucket = rest.substr(0, slash);
  out->prefix = slash == std::string::npos ? "" : rest.substr(slash + 1);
  // Servers differ in how they sign other bytes.
  if (!IsStoreKey(rest)) {
    return wrong("s3://BUCKET[/PREFIX] of A-Z a-z 0-9 _ . - between slashes");
  }
  return rocksdb::Status::OK();
}

std::string StoreAddress::ToString() const {
  return is_directory() ? directory
                        : "s3://" + bucket + (prefix.empty() ? "" : "/") +
                              prefix;
}

rocksdb::Status OpenStore(const StoreOptions& options,
                          std::unique_ptr<ObjectStore>* store) {
  return options.where.is_directory() ? OpenDirectoryStore(options, store)
                                      : MakeS3Store(options, {}, store);
}

}  // namespace sstferry
