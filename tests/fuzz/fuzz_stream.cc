// Input: a byte that chooses the side, then a stream from the other side, which
// is cut at places that the bytes choose.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/wire/stream_channels.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sstferry;
  if (size == 0) {
    return 0;
  }
  MultiplexerOptions options;
  options.dials = (data[0] & 1) != 0;
  options.peer = "fuzz";
  options.credit_bytes = 64u << 10;
  options.max_channels = 8;
  StreamChannels channels(options);
  const WaitLimit now = WaitLimit::Within(std::chrono::milliseconds(0));
  std::vector<std::shared_ptr<StreamChannel>> own(options.dials ? 2 : 0);
  for (auto& channel : own) {
    channels.Open(&channel).PermitUncheckedError();
    const rocksdb::Slice hello("hello");
    channels.Write(channel, &hello, 1, now).PermitUncheckedError();
  }
  StreamParser parser(&channels);
  const rocksdb::Slice all(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t step = 1 + (data[0] >> 1) * 64u;
  rocksdb::Status status;
  std::string left;
  for (size_t at = 0; status.ok() && at < all.size(); at += step) {
    left.append(all.data() + at, std::min(step, all.size() - at));
    rocksdb::Slice input(left);
    status = parser.Take(&input);
    left = input.ToString();
    // Does the work of a multiplexer's threads, one after the other.
    for (const auto& channel : own) {
      char buffer[4096];
      size_t bytes = 0;
      channels.Read(channel, buffer, sizeof(buffer), now, &bytes)
          .PermitUncheckedError();
    }
  }
  channels.Drain(std::chrono::milliseconds(0));
  StreamChannels::Sending turn;
  while (channels.NextTurn(&turn)) {
    channels.EndTurn(turn);
  }
  channels.End(status.ok() ? parser.Close(left) : status);
  return 0;
}
