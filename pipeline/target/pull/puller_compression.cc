// What a Puller has to say about compression on the wire.
#include "pipeline/target/pull/puller.h"

namespace sstferry {

using std::chrono::steady_clock;

WireCompression Puller::ChooseCompression() {
  const WireCompression wanted = options_.compression;
  compression_ = wanted;
  if (wanted == WireCompression::kAuto && options_.source.is_directory()) {
    compression_ = WireCompression::kNone;  // there is no link
  }
  if ((link_.session()->source().features & kFeatureWireCompression) == 0) {
    compression_ = WireCompression::kNone;
    if (wanted == WireCompression::kZstd) {
      notes_.push_back("not compressed: the source cannot");
    }
  }
  return compression_;
}

std::optional<Compress> Puller::OnStats(const Stats& theirs) {
  if (!controls_compression_) {
    return std::nullopt;
  }
  const PullCounters& ours = state_.counters;
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
  const bool was_on = compression_control_.on();
  Compress compress;
  compress.on = compression_control_.Decide(sample);
  if (compress.on == was_on) {
    return std::nullopt;
  }
  if (options_.log) {
    options_.log(LogLevel::kInfo,
                 compress.on ? "compression on: the link is what takes time"
                             : "compression off: it does not help now");
  }
  return compress;
}

}  // namespace sstferry
