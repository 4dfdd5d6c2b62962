// Measures the ceiling: how fast this machine copies the same files over the
// same number of connections if no program looks at a byte of them. The source
// uses sendfile; the target uses recv, write and fdatasync.
//
//   bench_ceiling source --dir DIR --listen 127.0.0.1:0
//   bench_ceiling target --dir DIR --connect HOST:PORT --lanes 4
//                        --mode buffered|direct
#include <sys/stat.h>

#include <string>
#include <vector>

#include "benchmarks/support/file_transfer.h"
#include "benchmarks/support/flags.h"
#include "benchmarks/support/report.h"

namespace sstferry::bench {
namespace {

using rocksdb::Status;

Status RunSource(const std::string& dir, const std::string& listen,
                 TransferTotals* totals) {
  Socket listener;
  Status s = Listen(listen, &listener);
  if (!s.ok()) return s;
  std::vector<Socket> lanes;
  std::vector<std::string> names;
  s = AcceptLanes(listener, &lanes);
  if (s.ok()) s = ListFiles(dir, &names);
  if (s.ok()) s = SendFiles(dir, names, &lanes, totals);
  return s;
}

Status RunTarget(const std::string& dir, const std::string& connect,
                 uint32_t lane_count, WriteMode mode, TransferTotals* totals) {
  if (mkdir(dir.c_str(), 0755) != 0) return ErrnoStatus(dir);
  std::vector<Socket> lanes;
  Status s = ConnectLanes(connect, lane_count, &lanes);
  if (s.ok()) s = ReceiveFiles(dir, mode, &lanes, totals);
  return s;
}

}  // namespace
}  // namespace sstferry::bench

int main(int argc, char** argv) {
  using namespace sstferry::bench;
  Flags flags(argc, argv);
  const std::string dir = flags.Required("dir");
  TransferTotals totals;
  rocksdb::Status s;
  Stopwatch watch;
  if (flags.role() == "source") {
    const std::string listen = flags.Text("listen", "127.0.0.1:0");
    flags.Done();
    s = RunSource(dir, listen, &totals);
  } else if (flags.role() == "target") {
    const std::string connect = flags.Required("connect");
    const auto lanes = static_cast<uint32_t>(flags.Number("lanes", 4));
    const std::string mode = flags.Text("mode", "buffered");
    flags.Done();
    if (mode != "buffered" && mode != "direct") WrongUsage("--mode " + mode);
    s = RunTarget(dir, connect, lanes,
                  mode == "direct" ? WriteMode::kDirect : WriteMode::kBuffered,
                  &totals);
  } else {
    WrongUsage("the first argument is source or target");
  }
  Report report;
  report.Add("files", totals.files);
  report.Add("bytes", totals.bytes);
  report.Add("seconds", watch.Seconds());
  return report.Finish(s);
}
