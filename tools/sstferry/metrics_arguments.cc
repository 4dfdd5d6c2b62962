#include "tools/sstferry/metrics_arguments.h"

#include "format/end_state.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Returns true if the address has a port. There is no default, because readers
// would expect different ones.
bool HasPort(const std::string& text) {
  const size_t colon = text.rfind(':');
  return colon != std::string::npos &&
         text.find(']', colon) == std::string::npos;
}

}  // namespace

Status ReadMetrics(const OptionTexts& texts, const TlsFiles& tls,
                   MetricsArguments* out) {
  if (texts.Has("metrics")) {
    const std::string text = texts.Get("metrics");
    const Status status = ParseHostPort(text, &out->listen.emplace());
    if (!status.ok()) {
      return Status::InvalidArgument("--metrics", MessageOf(status));
    }
    if (!HasPort(text) || out->listen->is_unix()) {
      return Wrong("--metrics", "an address and a port such as 127.0.0.1:9420",
                   text);
    }
    if (tls.empty() && !out->insecure && !IsLoopback(out->listen->host)) {
      return Wrong("--metrics",
                   "a loopback address, such as 127.0.0.1:9420, or --tls DIR "
                   "(--metrics-insecure allows other addresses without TLS: "
                   "anyone who reaches the port can read names and sizes)",
                   text);
    }
  }
  if (texts.Has("metrics-file")) {
    out->file = texts.Get("metrics-file");
    if (!out->file.ends_with(".prom") || out->file.ends_with("/.prom")) {
      return Wrong("--metrics-file",
                   "a file name that ends in .prom, which node_exporter's "
                   "textfile collector reads",
                   out->file);
    }
  }
  return Status::OK();
}

}  // namespace sstferry
