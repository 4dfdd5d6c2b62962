#include "pipeline/pull/pull_compression.h"

#include "format/frame.h"

namespace sstferry {

using std::chrono::steady_clock;

WireCompression PullCompression::Choose(const HelloAck& source) {
  const PullOptions& options = *options_;
  chosen_ = options.compression;
  if (chosen_ == WireCompression::kAuto &&
      (options.source.is_directory() || options.source.is_archive())) {
    chosen_ = WireCompression::kNone;  // no network link to the source
  }
  if ((source.features & kFeatureWireCompression) == 0) {
    chosen_ = WireCompression::kNone;
    if (options.compression == WireCompression::kZstd) {
      report_->Note("data is sent uncompressed: the source cannot compress it");
    }
  }
  return chosen_;
}

uint16_t PullCompression::frame_flags() const {
  return chosen_ != WireCompression::kNone ? kFrameFlagZstd : 0;
}

void PullCompression::LanesStart() {
  lanes_started_ = steady_clock::now();
  is_automatic_ = chosen_ == WireCompression::kAuto;
}

CompressionSample PullCompression::SampleOf(const Stats& theirs) const {
  const PullCounters& ours = *counters_;
  CompressionSample sample;
  sample.wall_micros = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(
          steady_clock::now() - lanes_started_)
          .count());
  sample.source_active_micros =
      theirs.read_build_micros + theirs.send_wait_micros;
  sample.source_blocked_micros = theirs.send_blocked_micros;
  for (const Stage stage : {Stage::kReceive, Stage::kStageWrite, Stage::kCheck,
                            Stage::kIngest, Stage::kSync}) {
    sample.target_active_micros += ours.stages.micros(stage);
  }
  sample.target_blocked_micros = ours.receive_blocked_micros;
  sample.sst_bytes = ours.sst_bytes;
  return sample;
}

std::optional<Compress> PullCompression::OnStats(const Stats& theirs) {
  if (!is_automatic_) {
    return std::nullopt;
  }
  const bool was_on = control_.on();
  Compress compress;
  compress.on = control_.Decide(SampleOf(theirs));
  if (compress.on == was_on) {
    return std::nullopt;
  }
  report_->Log(
      LogLevel::kInfo, compress.on
                           ? "compression on: the network is the bottleneck"
                           : "compression off: it does not help at present");
  return compress;
}

}  // namespace sstferry
